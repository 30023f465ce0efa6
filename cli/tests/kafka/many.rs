//! Many partitions of which few have anything to say.

use std::fs;

use crate::cluster::{Topic, shared};
use crate::scaled;
use crate::site::Site;

const PARTITIONS: u32 = 1000;
const BUDGET: u64 = 64 << 20;
/// What the program takes with a budget near nothing, and the steps in flight.
const BESIDES: u64 = 48 << 20;

/// K25: with many partitions the client's queues took many times what they were allowed. The limit is held by the
/// client and what was announced together; the steps in flight and the program itself take some besides.
#[test]
fn k25_the_memory_for_a_thousand_partitions_stays_bounded() {
    let topic = Topic::new(&shared(), "many", PARTITIONS, 1).filled(scaled(2_000, 400));
    let site = Site::new(&format!(
        "name: many\ninputs: {{in: {{kafka: {{brokers: \"{}\", topic: {}, max_queued_bytes: {BUDGET}}}}}}}\n\
         outputs: {{out: {{file: {{path: out.log}}}}}}\n",
        shared(),
        topic.name
    ));
    let mut running = site.start();
    let bytes = scaled(150_000_000, 30_000_000);
    assert!(running.until(|| site.size(".") > bytes), "{}", running.stderr());
    let status = fs::read_to_string(format!("/proc/{}/status", running.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    println!("peak of resident memory: {} MiB of {} MiB", peak / 1024, BUDGET >> 20);
    assert!(peak * 1024 < BUDGET + BESIDES, "{peak} kB");
}
