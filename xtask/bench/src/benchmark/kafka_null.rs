//! A topic, read exactly once and thrown away, beside bare loops over the same partitions.

use anyhow::Result;

use super::{TO_NULL, Topics, topic_to_its_end};
use crate::broker::{PARTITIONS, Topic};
use crate::report::Row;
use crate::rounds::{Contestant, in_turn};
use crate::site::Site;

/// A loop with the default properties is so slow that it gets this part of the records.
const PART_FOR_DEFAULTS: u64 = 20;

pub(super) fn measure(site: &Site, topics: &mut Topics) -> Result<Vec<Row>> {
    let mut rows = of_topic(site, &*topics.small_records(site)?, 100)?;
    rows.extend(of_topic(site, &*topics.filled(site.scaled(3_000_000), 1024)?, 1024)?);
    Ok(rows)
}

fn of_topic(site: &Site, topic: &Topic, bytes: usize) -> Result<Vec<Row>> {
    let pipeline =
        site.pipeline("kafka-null", &format!("{}{TO_NULL}", topic_to_its_end(topic)?))?;
    let (name, records) = (topic.name.as_str(), topic.records);
    let some = (records / PART_FOR_DEFAULTS).max(1);
    let yardstick = |words: &[&str], records: u64| {
        let mut command = site.itself([&["yardstick"], words].concat());
        command.args([name, &records.to_string()]);
        site.speed(records, command)
    };
    let found = in_turn(
        site,
        vec![
            Contestant::new("lockgate, Kafka to null, records/s", || {
                let state = site.gone("state")?;
                site.speed(records, site.lockgate_run(&pipeline, &state))
            }),
            Contestant::new("batch call, records/s", || yardstick(&["batch"], records)),
            Contestant::new("poll, tuned, records/s", || yardstick(&["poll"], records)),
            Contestant::new("poll, defaults, records/s", || {
                yardstick(&["poll", "--defaults"], some)
            }),
        ],
    )?;
    let case = format!("{records} records of {bytes} B, {PARTITIONS} partitions");
    let compared = |place: usize, yardstick: &str, aim: f64| {
        let (ours, theirs) = (&found[0], &found[place]);
        Row::compared("kafka-null", &case, "records/s", ours, (yardstick, theirs), Some(aim))
    };
    Ok(vec![
        compared(1, "batch call", 0.9),
        compared(2, "poll, tuned", 1.5),
        compared(3, "poll, defaults", 10.0)
            .noted(format!("the loop with default properties read {some} records only")),
    ])
}
