//! What the page shows of a pipeline to which all is well.

use crate::watched::{PIPELINE, Watched};

#[test]
fn what_is_read_is_shown_a_moment_later() {
    let watched = Watched::start(PIPELINE);
    let browser = &watched.browser;
    watched.waits_for_card("orders", "3 records, 14 B");
    watched.waits_for_card("copy", "3 records, 14 B");
    browser.waits_for_words("All is well");
    browser.waits_for("document.title === 'watched · running · lockgate'");

    watched.site.append("orders.log", "four\nfive\n");
    watched.site.append("clicks.log", "a\n");
    watched.waits_for_card("orders", "5 records, 24 B");
    watched.waits_for_card("clicks", "1 record, 2 B");
    watched.waits_for_card("copy", "6 records, 26 B");
    let step = watched.status()["steps"]["last"].to_string();
    browser
        .waits_for(&format!("document.querySelector('.boat .step').textContent === 'step {step}'"));
    browser.is_pictured("running");
}

#[test]
fn nothing_is_asked_of_others_and_nothing_complains() {
    let watched = Watched::start(PIPELINE);
    let browser = &watched.browser;
    watched.waits_for_card("orders", "3 records, 14 B");
    // All that can be opened is opened.
    browser
        .evaluates("document.querySelectorAll('.card footer button').forEach(key => key.click())");
    watched.waits_for_card("orders", "Waiting for records to pass");
    watched.site.append("orders.log", "four\n");
    watched.waits_for_card("orders", "offset 14");
    let own = format!("http://{}/", watched.address);
    let requests = browser.requests();
    assert!(requests.iter().any(|url| url.contains("/api/v1/status")), "{requests:?}");
    let is_own = |url: &&String| url.starts_with(&own) || url.starts_with("data:");
    let foreign: Vec<_> = requests.iter().filter(|url| !is_own(url)).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    let complaints = browser.complaints();
    assert!(complaints.is_empty(), "{complaints:?}");
}

#[test]
fn records_that_pass_are_seen_as_text_only() {
    let watched = Watched::start(PIPELINE);
    let browser = &watched.browser;
    watched.waits_for_card("orders", "3 records");
    browser.clicks("button[aria-label='Peek at records: orders']");
    watched.waits_for_card("orders", "Waiting for records to pass");
    let hostile =
        "<img src=x onerror=\"document.title='taken'\"><script>document.title='taken'</script>";
    watched.site.append("orders.log", &format!("{hostile}\n"));
    browser.waits_for("document.querySelector('.more pre')");
    let shown = browser.evaluates("return document.querySelector('.more pre').textContent");
    assert_eq!(shown, hostile);
    let inside = browser.evaluates("return document.querySelectorAll('.more pre *').length");
    assert_eq!(inside, 0);
    assert_ne!(browser.evaluates("return document.title"), "taken");
}

#[test]
fn where_an_input_stands_is_shown_when_asked_for() {
    let watched = Watched::start(PIPELINE);
    watched.waits_for_card("orders", "3 records");
    watched.browser.clicks("button[aria-label='Where it stands: orders']");
    watched.waits_for_card("orders", "orders.log140");
}

/// One row for each is enough when there are many, and the page can be searched.
#[test]
fn many_inputs_stay_usable() {
    let mut pipeline = "name: watched\ncontrol: {listen: '127.0.0.1:0'}\ninputs:\n".to_owned();
    for number in 0..50 {
        pipeline +=
            &format!("  in-{number:02}: {{file: {{paths: {number:02}.log, follow: true}}}}\n");
    }
    pipeline += "outputs: {copy: {file: {path: out/all.log}}}\n";
    let watched = Watched::start(&pipeline);
    let browser = &watched.browser;
    browser.waits_for("document.querySelectorAll('#input-cards > li').length === 50");
    let height = browser.evaluates("return document.querySelector('#input-cards').offsetHeight");
    assert!(height.as_u64().unwrap() < 50 * 70, "{height}");
    browser.is_pictured("many-inputs");

    browser.clicks("#filter");
    browser.types("in-17");
    browser.waits_for("document.querySelectorAll('#input-cards > li').length === 1");
    browser.clicks("button[aria-label='More: in-17']");
    browser.waits_for_words("Where it stands");
    browser.clicks("button[aria-label='Pause in-17']");
    watched.waits_for_card("in-17", "paused by a user");
    assert_eq!(watched.status()["inputs"][17]["paused"], serde_json::json!(["user"]));
}
