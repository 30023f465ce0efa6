//! Settings that change while records flow between topics.

use std::time::Duration;

use crate::api::{Api, reload_again_and_again};
use crate::cluster::{Topic, shared};
use crate::scaled;
use crate::site::Site;

const PARTITIONS: u32 = 6;

/// Other limits for the partitions, the input and the steps for each `n`.
fn pipeline(n: u64, from: &str, to: &str) -> String {
    format!(
        "name: changing\ncontrol: {{listen: \"127.0.0.1:0\"}}\ncheckpoint_interval: {interval}ms\n\
         max_batch_records: {batch}\nmin_batch_records: {batch}\n\
         inputs:\n  in:\n    kafka:\n      brokers: \"{servers}\"\n      topic: {from}\n\
         \x20     max_pending_records: {pending}\n      max_queued_records: {queued}\n\
         outputs:\n  out:\n    kafka: {{brokers: \"{servers}\", topic: {to}, partition: kept}}\n",
        servers = shared(),
        interval = 200 + n % 5 * 100,
        batch = 50 * (1 + n % 6),
        pending = 1 + n % 9 * 50,
        queued = 10 + n % 11 * 100,
    )
}

/// The partition contexts of the shipped reader pause, drain, take over and resume, again and again.
#[test]
fn twenty_reloads_a_second_under_load_lose_nothing_and_leave_nothing_stuck() {
    let length = Duration::from_secs(scaled(60, 4));
    let from = Topic::new(&shared(), "rl-from", PARTITIONS, 1);
    let to = Topic::new(&shared(), "rl-to", PARTITIONS, 1);
    let site = Site::new(&pipeline(0, &from.name, &to.name));
    let mut running = site.start();
    let api = Api::of(&site, "changing", &mut running);
    let mut last = 0;
    let each = from.fed_while(|| {
        let pipeline = |n| pipeline(n, &from.name, &to.name);
        last = reload_again_and_again(&site, &api, length, pipeline);
    });
    to.grows(&mut running, 0);
    let status = api.status();
    assert_eq!(status["reloads"]["pending"], false, "{status:#}");
    assert_eq!(status["inputs"][0]["paused"], serde_json::json!([]));
    let lag = |text: &str| text.contains("lockgate_input_lag");
    assert!(lag(&api.get("metrics").1));
    to.completed_by(running, &each);
    assert!(last > 0);
}
