//! The page on a phone, in the dark, without movement, and for those who see little or nothing.

use serde_json::{Value, json};

use crate::watched::{PIPELINE, Watched};

const DARK: (&str, &str) = ("prefers-color-scheme", "dark");
const LIGHT: (&str, &str) = ("prefers-color-scheme", "light");

#[test]
fn a_phone_shows_all_of_it_without_scrolling_sideways() {
    let watched = Watched::start(PIPELINE);
    let browser = &watched.browser;
    for (prefers, name) in [(LIGHT, "phone-light"), (DARK, "phone-dark")] {
        browser.wears(360, 740, &[prefers]);
        watched.waits_for_card("orders", "3 records");
        browser.evaluates(
            "document.querySelectorAll('.card footer button').forEach(key => key.click())",
        );
        browser.waits_for("document.querySelector('.stage svg').clientWidth < 360");
        let wide = browser.evaluates("return document.documentElement.scrollWidth - innerWidth");
        assert_eq!(wide, 0, "{name}");
        // What is to be pressed is large enough for a finger.
        let small = browser.evaluates(
            "return [...document.querySelectorAll('button')].filter(key => key.offsetParent && key.offsetHeight < 30).map(key => key.textContent)",
        );
        assert_eq!(small, json!([]));
        browser.is_pictured(name);
    }
}

/// WCAG's AA: text has a contrast of 4.5 with what is behind it, large text of 3.
#[test]
fn text_can_be_read_in_the_light_and_in_the_dark() {
    let watched = Watched::start(PIPELINE);
    let browser = &watched.browser;
    watched.waits_for_card("orders", "3 records");
    browser.clicks("button[aria-label='Pause clicks']");
    watched.waits_for_card("clicks", "paused by a user");
    let mut backgrounds = Vec::new();
    for prefers in [LIGHT, DARK] {
        browser.wears(1280, 900, &[prefers, ("prefers-reduced-motion", "reduce")]);
        backgrounds
            .push(browser.evaluates("return getComputedStyle(document.body).backgroundColor"));
        let faint = browser.evaluates(
            "const parts = color => (color.match(/[\\d.]+/g) || []).map(Number); \
             const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4) \
               .reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0); \
             const behind = node => { for (; node; node = node.parentElement) { const color = parts(getComputedStyle(node).backgroundColor); \
               if (color.length === 3) return color; } return [255, 255, 255]; }; \
             const faint = []; \
             for (const node of document.querySelectorAll('body *')) { \
               const own = [...node.childNodes].some(child => child.nodeType === 3 && child.data.trim()); \
               if (!own || !node.getClientRects().length || node.closest('svg, script, style, .unseen, :disabled')) continue; \
               const style = getComputedStyle(node), size = parseFloat(style.fontSize); \
               const large = size >= 24 || size >= 18.66 && style.fontWeight >= 700; \
               const [a, b] = [light(parts(style.color)), light(behind(node))]; \
               const contrast = (Math.max(a, b) + .05) / (Math.min(a, b) + .05); \
               if (contrast < (large ? 3 : 4.5)) faint.push(node.textContent + ': ' + contrast.toFixed(2)); } \
             return faint",
        );
        assert_eq!(faint, json!([]), "{prefers:?}");
    }
    assert_ne!(backgrounds[0], backgrounds[1]);
    browser.is_pictured("dark");
}

#[test]
fn nothing_moves_for_those_who_do_not_want_it() {
    let watched = Watched::start(PIPELINE);
    let browser = &watched.browser;
    let moving = "document.getAnimations().filter(one => one.playState === 'running').length";
    browser.waits_for(&format!("{moving} > 0"));
    browser.wears(1280, 900, &[("prefers-reduced-motion", "reduce")]);
    browser.waits_for(&format!("{moving} === 0"));
}

/// What a screen reader goes by.
#[test]
fn everything_has_a_name_and_a_place() {
    let watched = Watched::start(PIPELINE);
    let browser = &watched.browser;
    watched.waits_for_card("orders", "3 records");
    let faults: Value = browser.evaluates(
        "const faults = [], ids = new Set(); \
         for (const node of document.querySelectorAll('[id]')) { if (ids.has(node.id)) faults.push('two are called ' + node.id); ids.add(node.id); } \
         for (const name of ['aria-labelledby', 'aria-describedby', 'for']) for (const node of document.querySelectorAll('[' + name + ']')) \
           if (!document.getElementById(node.getAttribute(name))) faults.push(name + ' leads nowhere: ' + node.getAttribute(name)); \
         for (const node of document.querySelectorAll('button, [role=img], [role=meter], section')) \
           if (!(node.getAttribute('aria-label') || node.getAttribute('aria-labelledby') || node.textContent.trim())) faults.push('has no name: ' + node.outerHTML); \
         for (const node of document.querySelectorAll('*')) for (const { name } of node.attributes) if (name.startsWith('on')) faults.push(name); \
         if (document.querySelectorAll('h1, main').length !== 2) faults.push('one heading and one main part'); \
         if (!document.documentElement.lang) faults.push('no language'); \
         return faults",
    );
    assert_eq!(faults, json!([]));
}
