//! What does not work, said in words.
//!
//! Where no trouble of that kind can be had at will, the page is given a status that tells of it: what is looked at is
//! the page.

use crate::chromium::Browser;
use crate::watched::{self, PIPELINE, Watched};

/// A page that gets the status after `change`, a piece of JavaScript, has changed `status`.
fn told(change: &str) -> Watched {
    let browser = Browser::start();
    browser.prepares(&format!(
        "const real = window.fetch; window.fetch = async (...request) => {{ const answer = await real(...request); \
         if (!String(request[0]).endsWith('/status') || !answer.ok) return answer; \
         const status = await answer.json(); {change}; return new Response(JSON.stringify(status)); }}"
    ));
    let watched = Watched::with(watched::site(PIPELINE), browser);
    watched.opens_page();
    watched.browser.waits_for("document.querySelector('#input-cards li')");
    watched
}

#[test]
fn a_file_that_is_truncated_under_its_reader_is_said_in_words() {
    let watched = Watched::start(PIPELINE);
    watched.waits_for_card("copy", "3 records");
    watched.site.write("orders.log", "a\n");
    watched.waits_for_card("orders", "files that were truncated and begun again: 1");
    watched.browser.waits_for_words("input orders: files that were truncated and begun again: 1");
    let complaints = watched.browser.complaints();
    assert!(complaints.is_empty(), "{complaints:?}");
}

/// A fault that ends an input ends the run: the page says that, and keeps what it knew.
#[test]
fn an_input_that_fails_ends_the_run_and_the_page_says_so() {
    let pipeline = PIPELINE
        .replace("paths: orders.log", "paths: orders.log, max_record_bytes: 16B, overlong: stop");
    let mut watched = Watched::start(&pipeline);
    watched.waits_for_card("orders", "3 records");
    watched.site.append("orders.log", "a line that is longer than it may be\n");
    watched.running.until(|| false);
    assert_ne!(watched.running.child.wait().unwrap().code(), Some(0));
    watched.browser.waits_for("!document.querySelector('#gone').hidden");
    watched.browser.waits_for_words("has ended");
    watched.waits_for_card("orders", "3 records");
    watched.browser.is_pictured("failed-input");
}

#[test]
fn faults_come_first_and_close_gates() {
    let watched = told(
        "status.inputs[0].stalled = true; status.inputs[0].errors = {transport: 4}; \
         status.inputs[0].last_error = 'the broker closed the connection'; \
         status.inputs[1].paused = ['backpressure']; status.outputs[0].trouble = 'connection refused'; \
         status.outputs[0].retries = 41; \
         status.conditions = [{severity: 'error', about: 'pipeline', text: 'nothing can be stored: the disk is full'}, \
         {severity: 'error', about: 'input orders', text: 'its reader does not answer'}, \
         {severity: 'warning', about: 'input orders', text: 'overlong_skipped: 1204'}]",
    );
    let browser = &watched.browser;
    browser.waits_for("document.querySelector('#phase').textContent === 'running, with 2 errors'");
    browser.waits_for("document.title.startsWith('(!)')");
    browser.waits_for_words("nothing can be stored: the disk is full");
    browser.waits_for_words("records left out, longer than max_record_bytes: 1,204");
    watched.waits_for_card("orders", "stalled: its reader is silent");
    watched.waits_for_card("orders", "4 errors: transport");
    watched.waits_for_card("orders", "The last: the broker closed the connection");
    watched.waits_for_card("clicks", "held back: nothing can be stored");
    watched.waits_for_card("copy", "connection refused");
    // Two inputs and the output.
    browser.waits_for("document.querySelectorAll('.gate.bad').length === 3");
    browser.is_pictured("faults");
}

#[test]
fn a_replay_is_seen_to_go_on() {
    let watched = told(
        "status.phase = 'replaying'; status.steps.to_replay = 300; status.steps.replayed = 120",
    );
    let browser = &watched.browser;
    browser.waits_for_words("Replaying: 120 of 300 steps");
    let bar = "const bar = document.querySelector('[role=progressbar]'); \
               return [bar.getAttribute('aria-valuenow'), bar.getAttribute('aria-valuemax')]";
    assert_eq!(browser.evaluates(bar), serde_json::json!(["120", "300"]));
    browser.is_pictured("replaying");
}

/// Names are checked by the pipeline file, but errors and paths come from anywhere.
#[test]
fn hostile_words_are_text_and_do_not_break_the_page() {
    let watched = told(
        "const hostile = '<script>document.title=\"taken\"</script><b class=hostile>' + '\"\\'&'.repeat(3) + 'x'.repeat(400); \
         status.pipeline = hostile; status.file = hostile; status.inputs[0].name = hostile; status.inputs[1].name = '__proto__'; \
         status.outputs[0].name = hostile; status.inputs[0].last_error = hostile; status.inputs[0].kind = hostile; \
         status.outputs[0].trouble = hostile; status.inputs[0].policies = {constructor: 1}; \
         status.conditions = [{severity: 'error', about: hostile, text: hostile}]; \
         status.reloads.last = {at: status.started_at, changes: [{path: hostile, was: hostile, is: null}], error: hostile}; \
         status.inputs[0].records = 2 ** 53; status.inputs[0].bytes = 2 ** 60",
    );
    let browser = &watched.browser;
    for width in [1280, 360] {
        browser.wears(width, 800, &[]);
        browser.waits_for(&format!("document.querySelector('.stage svg').clientWidth < {width}"));
        browser.waits_for("document.querySelector('h1').textContent.startsWith('<script>')");
        let found = browser.evaluates("return document.querySelectorAll('.hostile').length");
        assert_eq!(found, 0);
        let wide = browser.evaluates("return document.documentElement.scrollWidth - innerWidth");
        assert_eq!(wide, 0, "at {width}");
        browser.is_pictured(&format!("hostile-{width}"));
    }
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "{complaints:?}");
}
