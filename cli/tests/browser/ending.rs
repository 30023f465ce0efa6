//! The end of a pipeline, as its page tells it.

use crate::chromium::Browser;
use crate::site::Running;
use crate::watched::{self, PIPELINE, Watched};

/// Waits for the end of the process, which must be a good one.
fn ends_well(running: &mut Running) {
    running.until(|| false);
    assert_eq!(running.child.wait().unwrap().code(), Some(0), "{}", running.stderr());
}

#[test]
fn a_stop_wants_a_second_click_and_ends_in_order() {
    let mut watched = Watched::start(PIPELINE);
    watched.waits_for_card("copy", "3 records");
    let browser = &watched.browser;
    browser.clicks("button[data-do='stop']");
    browser.waits_for("document.querySelector('#ask').open");
    browser.is_pictured("stop");
    browser.clicks("#ask-no");
    browser.waits_for("!document.querySelector('#ask').open");
    assert_eq!(watched.status()["phase"], "running");

    browser.clicks("button[data-do='stop']");
    browser.clicks("#ask-yes");
    ends_well(&mut watched.running);
    assert_eq!(watched.site.read("out/all.log"), b"one\ntwo\nthree\n");
    browser.waits_for_words("has ended, as was asked for here");
    browser.waits_for_words("The last data is from");
    browser.waits_for("document.title === 'watched · ended · lockgate'");
    browser.is_pictured("stopped");
}

#[test]
fn a_suspended_pipeline_ends_with_a_checkpoint() {
    let mut watched = Watched::start(PIPELINE);
    watched.waits_for_card("copy", "3 records");
    watched.browser.clicks("button[data-do='suspend']");
    watched.browser.clicks("#ask-yes");
    ends_well(&mut watched.running);
    watched.browser.waits_for_words("has ended, as was asked for here");
    let state = watched.site.lockgate(&["inspect", ".lockgate/watched", "--json"]);
    let state: serde_json::Value = serde_json::from_str(&state.stdout).unwrap();
    assert_eq!(state["journal"], serde_json::json!([]));
}

/// A page that goes on to show old numbers as if nothing had happened is worse than none.
#[test]
fn a_killed_process_is_missed_and_found_again() {
    let port = watched::free_port();
    let pipeline = PIPELINE.replace("127.0.0.1:0", &format!("127.0.0.1:{port}"));
    let Watched { site, running, browser, .. } = Watched::start(&pipeline);
    browser.waits_for_words("All is well");
    let pid = running.child.id();
    assert!(running.kill());
    browser.waits_for_words(&format!(
        "The connection to lockgate is lost: the process {pid} has ended, was killed, or cannot be reached."
    ));
    browser.waits_for_words("The last data is from");
    browser.waits_for("document.querySelector('#phase').textContent === 'no answer'");
    browser.waits_for("document.title.startsWith('(!)')");
    browser.waits_for(
        "[...document.querySelectorAll('.card .keys button:not(.unfold)')].every(key => key.disabled)",
    );
    assert!(
        !browser
            .evaluates("return document.body.innerText")
            .as_str()
            .unwrap()
            .contains("All is well")
    );
    browser.is_pictured("killed");

    let watched = Watched::with(site, browser);
    watched.browser.waits_for_words(&format!("process {}", watched.running.child.id()));
    watched.browser.waits_for("document.querySelector('#gone').hidden");
    watched.site.append("orders.log", "four\n");
    watched.waits_for_card("copy", "records");
    watched.browser.waits_for_words("All is well");
}

/// With a token the page is empty until somebody knows it.
#[test]
fn a_token_is_asked_for_and_kept_in_the_tab() {
    let pipeline = PIPELINE.replace("'127.0.0.1:0'", "'127.0.0.1:0', token_file: token");
    let site = watched::site(&pipeline);
    let token = "correct-horse-battery-staple-0123456789";
    site.write("token", token);
    let watched = Watched::with(site, Browser::start());
    watched.opens_page();
    let browser = &watched.browser;
    browser.waits_for("!document.querySelector('#token').hidden");
    browser.is_pictured("token");
    browser.types("not the right one");
    browser.clicks("#token button");
    browser.waits_for_words("This token is not the right one.");
    browser.waits_for("document.activeElement.id === 'secret'");
    browser.types(token);
    browser.clicks("#token button");
    watched.waits_for_card("orders", "3 records");
    browser.clicks("button[aria-label='Pause orders']");
    watched.waits_for_card("orders", "paused by a user");

    let kept = "return [JSON.stringify(sessionStorage), JSON.stringify(localStorage), document.cookie, location.href, \
                document.documentElement.outerHTML].map(text => text.includes('battery'))";
    assert_eq!(browser.evaluates(kept), serde_json::json!([true, false, false, false, false]));
    // The same tab knows it still.
    watched.opens_page();
    watched.waits_for_card("orders", "paused by a user");
}
