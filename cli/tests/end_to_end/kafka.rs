//! What the program does without a broker. With one, its parts are tested in the adapter.

use std::time::{Duration, Instant};

use crate::site::Site;

/// A secret that must show up nowhere.
const CANARY: &str = "c4nary-9f3e";

/// Nobody listens on this port.
const NOBODY: &str = "127.0.0.1:1";

fn site() -> Site {
    let site = Site::new(&format!(
        "name: p\ninputs:\n  a:\n    kafka:\n      brokers: '{NOBODY}'\n      topic: orders\n      \
         properties:\n        security.protocol: sasl_plaintext\n        sasl.mechanism: PLAIN\n        \
         sasl.username: reader\n        sasl.password: {{file: secret}}\n        debug: all\n\
         outputs: {{n: {{null: }}}}\n"
    ));
    site.write("secret", format!("{CANARY}\n"));
    site
}

/// Story (L3): a password was printed in a log at the finest level.
#[test]
fn an_absent_broker_is_named_and_no_secret_is_shown_or_stored() {
    let site = site();
    let output = site.command(&["run", "pipeline.yaml"]).env("LOCKGATE_LOG", "trace").output();
    let output = output.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(69), "{stderr}");
    assert!(stderr.contains(&format!("connecting to Kafka at {NOBODY}")), "{stderr}");
    assert!(stderr.contains(&format!("lockgate: input a: asking the Kafka brokers {NOBODY}")));
    assert!(!stderr.contains(CANARY), "{stderr}");
    for (name, content) in site.files(".lockgate/p") {
        assert!(!content.windows(CANARY.len()).any(|part| part == CANARY.as_bytes()), "{name}");
    }
    let shown = site.lockgate(&["check", "pipeline.yaml"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("sasl.password") && !shown.stdout.contains(CANARY));
}

#[test]
fn a_stop_while_the_broker_is_waited_for_ends_in_order() {
    let site = site();
    let mut running = site.start();
    let log = running.log();
    let log = || std::fs::read_to_string(&log).unwrap_or_default();
    assert!(running.until(|| log().contains("connecting to Kafka")), "{}", log());
    let begun = Instant::now();
    running.signal("TERM");
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(ended.stderr.contains("stopped before anything was read"), "{}", ended.stderr);
    assert!(begun.elapsed() < Duration::from_secs(10), "it waited for the broker all the same");
}

#[test]
fn what_the_client_does_not_know_is_found_before_a_broker_is_asked() {
    let check = |input: &str, output: &str, said: [&str; 2]| {
        let site = Site::new(&format!(
            "name: p\ninputs: {{a: {{kafka: {{brokers: '{NOBODY}', topic: t, {input}}}}}}}\n\
             outputs: {{b: {{kafka: {{brokers: '{NOBODY}', topic: u, {output}}}}}}}\n"
        ));
        for command in ["check", "run"] {
            let ended = site.lockgate(&[command, "pipeline.yaml"]);
            assert_eq!(ended.code, 78, "{}", ended.stderr);
            assert!(said.iter().all(|said| ended.stderr.contains(said)), "{}", ended.stderr);
        }
    };
    check("properties: {fetch.wiat.max.ms: 5}", "", ["input a", "fetch.wiat.max.ms"]);
    check("properties: {group.id: g}", "", ["input a", "`group.id` cannot be set"]);
    check("", "properties: {compression.type: zip}", ["output b", "compression.type"]);
    let longer = "commit_interval: 20s, properties: {transaction.timeout.ms: 9000}";
    check("", longer, ["output b", "transaction.timeout.ms"]);
}
