//! Pausing, resuming, checkpoints and reloads from the page, by mouse and by keyboard.

use serde_json::json;

use crate::chromium::{ENTER, ESCAPE};
use crate::watched::{PIPELINE, Watched};

#[test]
fn an_input_is_paused_and_resumed_by_a_click() {
    let watched = Watched::start(PIPELINE);
    let browser = &watched.browser;
    watched.waits_for_card("orders", "3 records");
    browser.clicks("button[aria-label='Pause orders']");
    watched.waits_for_card("orders", "paused by a user");
    browser.waits_for("document.querySelector('#answer').textContent === 'orders is paused.'");
    let inputs = &watched.status()["inputs"];
    assert_eq!(inputs[0]["paused"], json!(["user"]));
    assert_eq!(inputs[1]["paused"], json!([]));
    browser.waits_for_words("lets it read again");
    browser.is_pictured("paused");

    // The other one goes on.
    watched.site.append("orders.log", "held\n");
    watched.site.append("clicks.log", "a\n");
    watched.waits_for_card("copy", "4 records, 16 B");
    assert_eq!(watched.status()["inputs"][0]["records"], 3);

    browser.clicks("button[aria-label='Resume orders']");
    watched.waits_for_card("copy", "5 records, 21 B");
    browser.waits_for("document.querySelector(\"button[aria-label='Pause orders']\")");
    assert_eq!(watched.status()["inputs"][0]["paused"], json!([]));
}

#[test]
fn everything_can_be_done_without_a_mouse() {
    let watched = Watched::start(PIPELINE);
    let browser = &watched.browser;
    watched.waits_for_card("orders", "3 records");
    browser.tabs_to("focus.getAttribute('aria-label') === 'Pause orders'");
    let outline = browser.evaluates(
        "const style = getComputedStyle(document.activeElement); return style.outlineStyle + parseFloat(style.outlineWidth)",
    );
    assert_eq!(outline, "solid3", "the focus cannot be seen");
    browser.types(ENTER);
    watched.waits_for_card("orders", "paused by a user");
    // The focus is where it was, and the same key takes it back.
    browser.waits_for("document.activeElement.getAttribute('aria-label') === 'Resume orders'");
    browser.types(ENTER);
    browser.waits_for("document.activeElement.getAttribute('aria-label') === 'Pause orders'");

    // The question is left with Escape, and the focus is back where it came from.
    browser.evaluates("document.querySelector('.skip').focus()");
    browser.tabs_to("focus.textContent === 'Stop…'");
    browser.types(ENTER);
    browser.waits_for("document.querySelector('#ask').open");
    assert_eq!(browser.evaluates("return document.activeElement.textContent"), "Let it run");
    browser.types(ESCAPE);
    browser.waits_for("!document.querySelector('#ask').open");
    assert_eq!(browser.evaluates("return document.activeElement.textContent"), "Stop…");
    assert_eq!(watched.status()["phase"], "running");
}

/// Those who hear the page are told what is new, and not again every second.
#[test]
fn what_is_new_is_said_once() {
    let watched = Watched::start(PIPELINE);
    let browser = &watched.browser;
    watched.waits_for_card("orders", "3 records");
    browser.evaluates(
        "window.heard = []; new MutationObserver(() => { const text = document.querySelector('#spoken').textContent; \
         if (text) heard.push(text); }).observe(document.querySelector('#spoken'), {childList: true, characterData: true, subtree: true})",
    );
    browser.clicks("button[aria-label='Pause orders']");
    browser.waits_for("heard.some(text => text.includes('input orders: paused by a user'))");
    // Three more looks at the pipeline.
    let looks = "performance.getEntriesByType('resource').filter(one => one.name.endsWith('/status')).length";
    let before = browser.evaluates(&format!("return {looks}"));
    browser.waits_for(&format!("{looks} >= {before} + 3"));
    let times =
        browser.evaluates("return heard.filter(text => text.includes('paused by a user')).length");
    assert_eq!(times, 1);
}

#[test]
fn a_checkpoint_is_taken_when_somebody_wants_one() {
    let watched = Watched::start(PIPELINE);
    let browser = &watched.browser;
    watched.waits_for_card("orders", "3 records");
    browser.clicks("button[data-do='checkpoint']");
    browser.waits_for_words("is stored.");
    let step = watched.status()["checkpoints"]["step"].to_string();
    assert_ne!(step, "0");
    browser
        .waits_for(&format!("document.querySelector('#checkpoints td').textContent === '{step}'"));
}

#[test]
fn a_reload_is_told_with_what_changed_or_why_nothing_did() {
    let watched = Watched::start(PIPELINE);
    let browser = &watched.browser;
    let changed = PIPELINE.replace("checkpoint_interval: 1h", "checkpoint_interval: 2h");
    watched.site.write("pipeline.yaml", &changed);
    browser.clicks("button[data-do='reload']");
    browser.waits_for(
        "[...document.querySelectorAll('#changes td')].some(cell => cell.textContent === 'checkpoint_interval')",
    );
    browser.waits_for("document.querySelector('#reload-state').textContent === 'in force'");

    watched.site.write("pipeline.yaml", "name: watched\nmisspelt: 1\n");
    browser.clicks("button[data-do='reload']");
    browser.waits_for("document.querySelector('#answer').classList.contains('bad')");
    browser.waits_for("document.querySelector('#reload-state').textContent === 'refused'");
    browser.waits_for_words("misspelt");
    browser.is_pictured("reload-refused");
}
