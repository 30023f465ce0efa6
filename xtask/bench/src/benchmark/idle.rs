//! One busy topic, alone and beside partitions and inputs that have nothing to say.
//!
//! Measured between two looks at a run that goes on for ever, so that opening thousands of partitions does not count.

use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::Result;

use super::{TO_NULL, Topics};
use crate::broker::{self, Topic};
use crate::report::Row;
use crate::rounds::{Contestant, in_turn};
use crate::running::Running;
use crate::site::Site;
use crate::spread::Spread;

/// More partitions than this in one request are too many for a controller.
const PARTITIONS_OF_TOPIC: u32 = 1000;

/// The part of all records at which it is looked first, and last.
const FROM: f64 = 0.1;
const TO: f64 = 0.85;

pub(super) fn measure(site: &Site, topics: &mut Topics) -> Result<Vec<Row>> {
    let busy = topics.small_records(site)?;
    let idle = (0..10)
        .map(|number| Topic::new(&format!("idle-{number}"), PARTITIONS_OF_TOPIC))
        .collect::<Result<Vec<Topic>>>()?;
    let alone = Crowd { busy: &busy, topics: &[], files: 0 };
    let crowds = [
        ("1,000 idle partitions", Crowd { topics: &idle[..1], ..alone }),
        ("10,000 idle partitions", Crowd { topics: &idle, ..alone }),
        ("1,000 idle inputs", Crowd { files: 1000, ..alone }),
    ];
    let mut contestants = vec![Contestant::new("nothing idle, records/s", || alone.speed(site))];
    for (name, crowd) in &crowds {
        contestants.push(Contestant::new(name, || crowd.speed(site)));
    }
    let found = in_turn(site, contestants)?;
    let compared = |((name, _), ours): (&(&str, Crowd<'_>), &Spread)| {
        let case = format!("{} records of 100 B beside {name}", busy.records);
        let yardstick = ("nothing idle", &found[0]);
        Row::compared("idle", case, "records/s", ours, yardstick, Some(0.95))
    };
    Ok(crowds.iter().zip(&found[1..]).map(compared).collect())
}

/// A busy topic, and what is idle.
#[derive(Clone, Copy)]
struct Crowd<'a> {
    busy: &'a Topic,
    topics: &'a [Topic],
    files: u32,
}

impl Crowd<'_> {
    /// Records of the busy topic in a second, while nothing else happens.
    fn speed(&self, site: &Site) -> Result<f64> {
        let topics: Vec<&str> =
            [self.busy].into_iter().chain(self.topics).map(|topic| topic.name.as_str()).collect();
        let (servers, topics) = (broker::servers()?, topics.join(", "));
        let mut text =
            format!("inputs:\n  busy: {{kafka: {{brokers: \"{servers}\", topics: [{topics}]}}}}\n");
        for number in 0..self.files {
            let path = site.path(&format!("idle-{number}.log"));
            fs::write(&path, "")?;
            let _ = writeln!(
                text,
                "  idle-{number}: {{file: {{paths: {}, follow: true}}}}",
                path.display()
            );
        }
        let pipeline = site.pipeline("idle", &format!("{text}{TO_NULL}"))?;
        let state = site.gone("state")?;
        let mut running = Running::start(site, &pipeline, &state)?;
        let reached = |running: &Running, part: f64| {
            let (seconds, records) = running.progress()?;
            let enough = records as f64 >= self.busy.records as f64 * part;
            Ok(enough.then_some((seconds, records)))
        };
        let (from, before) =
            running.until("a tenth of the records", |running| reached(running, FROM))?;
        // Looking costs something where there is much to see, so it is looked seldom.
        thread::sleep(Duration::from_millis(200));
        let (now, after) = running.progress()?;
        let left = self.busy.records as f64 * TO - after as f64;
        let speed = (after - before) as f64 / (now - from).max(0.001);
        if left > 0.0 && speed > 0.0 {
            thread::sleep(Duration::from_secs_f64((left / speed).min(60.0)));
        }
        let (to, after) = running.progress()?;
        running.kill()?;
        Ok((after - before) as f64 / (to - from).max(0.001))
    }
}
