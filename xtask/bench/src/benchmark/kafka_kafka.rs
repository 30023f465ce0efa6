//! A topic to a topic in transactions, beside a bare loop that consumes, produces and commits as often.

use anyhow::Result;

use super::{Topics, topic_to_its_end};
use crate::broker::{self, PARTITIONS, Topic};
use crate::report::Row;
use crate::rounds::{Contestant, in_turn};
use crate::site::Site;

pub(super) fn measure(site: &Site, topics: &mut Topics) -> Result<Vec<Row>> {
    let mut rows = vec![of_topic(site, &*topics.filled(site.scaled(5_000_000), 100)?, 100)?];
    rows.push(of_topic(site, &*topics.filled(site.scaled(1_000_000), 1024)?, 1024)?);
    Ok(rows)
}

fn of_topic(site: &Site, from: &Topic, bytes: usize) -> Result<Row> {
    let (inputs, servers) = (topic_to_its_end(from)?, broker::servers()?);
    let records = from.records;
    let found = in_turn(
        site,
        vec![
            Contestant::new("lockgate, Kafka to Kafka, records/s", || {
                let to = Topic::new("to", PARTITIONS)?;
                let out = format!(
                    "outputs: {{out: {{kafka: {{brokers: \"{servers}\", topic: {}, partition: kept}}}}}}\n",
                    to.name
                );
                let pipeline = site.pipeline("kafka-kafka", &format!("{inputs}{out}"))?;
                let state = site.gone("state")?;
                site.speed(records, site.lockgate_run(&pipeline, &state))
            }),
            Contestant::new("bare loop with transactions, records/s", || {
                let to = Topic::new("to", PARTITIONS)?;
                let records_text = records.to_string();
                let words = ["yardstick", "relay", &from.name, &to.name, &records_text];
                site.speed(records, site.itself(words))
            }),
        ],
    )?;
    let case = format!("{records} records of {bytes} B, {PARTITIONS} partitions");
    let yardstick = ("bare loop with transactions", &found[1]);
    Ok(Row::compared("kafka-kafka", case, "records/s", &found[0], yardstick, Some(0.9)))
}
