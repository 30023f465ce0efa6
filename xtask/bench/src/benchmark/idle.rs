//! One busy topic, alone and beside partitions and inputs that have nothing to say.
//!
//! Measured between two looks at a run that goes on for ever, so that opening thousands of partitions does not count.

use std::fmt::Write as _;
use std::fs;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

use super::{TO_NULL, Topics};
use crate::broker::{self, Topic};
use crate::report::Row;
use crate::rounds::{Contestant, in_turn};
use crate::running::Running;
use crate::site::Site;
use crate::spread::Spread;
use crate::yardstick::Window;

/// More partitions than this in one request are too many for a controller.
const PARTITIONS_OF_TOPIC: u32 = 1000;

/// Between two looks at a run.
const LOOKS: Duration = Duration::from_millis(100);

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
    // What the client library does beside as many partitions, with nothing of lockgate around it.
    let bare = [&alone, &crowds[0].1, &crowds[1].1];
    for (name, crowd) in [
        "batch call, nothing idle",
        "batch call, 1,000 idle partitions",
        "batch call, 10,000 idle partitions",
    ]
    .iter()
    .zip(bare)
    {
        let name: &str = name;
        contestants.push(Contestant::new(name, move || crowd.bare_speed(site)));
    }
    let found = in_turn(site, contestants)?;
    let (ours, bare) = found.split_at(1 + crowds.len());
    let case = |name: &str| format!("records of 100 B beside {name}");
    let compared = |((name, _), spread): (&(&str, Crowd<'_>), &Spread)| {
        let yardstick = ("nothing idle", &ours[0]);
        Row::compared("idle", case(name), "records/s", spread, yardstick, Some(0.95))
    };
    let mut rows: Vec<Row> = crowds.iter().zip(&ours[1..]).map(compared).collect();
    let names = ["nothing idle", crowds[0].0, crowds[1].0];
    for ((name, ours), bare) in names.iter().zip(ours).zip(bare) {
        let yardstick = ("batch call beside the same", bare);
        rows.push(Row::compared("idle", case(name), "records/s", ours, yardstick, None));
    }
    Ok(rows)
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
        let mut window = Window::new(self.busy.records);
        let speed = running.until("the middle of all records", |running| {
            let (seconds, records) = running.progress()?;
            let speed = window.saw(seconds, records);
            if speed.is_none() {
                // Looking costs something where there is much to see.
                thread::sleep(LOOKS);
            }
            Ok(speed)
        })?;
        running.kill()?;
        Ok(speed)
    }

    /// The same of a bare loop around the batch call.
    fn bare_speed(&self, site: &Site) -> Result<f64> {
        let mut command = site.itself(["yardstick", "batch", "--window", &self.busy.name]);
        command.arg(self.busy.records.to_string());
        command.args(self.topics.iter().map(|topic| &topic.name));
        site.time(command)?.stdout.trim().parse().context("it said no number")
    }
}
