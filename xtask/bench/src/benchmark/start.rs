//! What it takes to start, by itself: whole processes that have next to nothing to do.

use anyhow::Result;

use super::replay::Crashed;
use super::{TO_NULL, topic_to_its_end};
use crate::broker::{PARTITIONS, Topic};
use crate::report::Row;
use crate::rounds::{Contestant, in_turn};
use crate::site::Site;

/// Records that are journaled and in no checkpoint.
const JOURNALED: u64 = 1_000_000;

pub(super) fn measure(site: &Site) -> Result<Vec<Row>> {
    let input = site.lines(1)?;
    let inputs = format!("inputs: {{in: {{file: {{paths: {}}}}}}}\n", input.display());
    let file = site.pipeline("start-file", &format!("{inputs}{TO_NULL}"))?;
    let topic = Topic::filled("start", 6, 100)?;
    let kafka = site.pipeline("start-kafka", &format!("{}{TO_NULL}", topic_to_its_end(&topic)?))?;
    let journaled = site.scaled(JOURNALED);
    let crashed = Crashed::new(site, journaled)?;
    let ms = |command| Ok(site.time(command)?.took.as_secs_f64() * 1e3);
    let again = |name: &str, pipeline| {
        let state = site.path(name);
        if !state.exists() {
            site.time(site.lockgate_run(pipeline, &state))?;
        }
        ms(site.lockgate_run(pipeline, &state))
    };
    let names = [
        "first start, a file of one line".to_owned(),
        "start from a checkpoint, a file that has ended".to_owned(),
        format!("first start, a topic of {PARTITIONS} partitions"),
        format!("start from a checkpoint, a topic of {PARTITIONS} partitions"),
        format!("recovery of {journaled} journaled records of a file"),
    ];
    let found = in_turn(
        site,
        vec![
            Contestant::new(&names[0], || ms(site.lockgate_run(&file, &site.gone("state")?))),
            Contestant::new(&names[1], || again("start-file", &file)),
            Contestant::new(&names[2], || ms(site.lockgate_run(&kafka, &site.gone("state")?))),
            Contestant::new(&names[3], || again("start-kafka", &kafka)),
            Contestant::new(&names[4], || {
                ms(site.lockgate_run(&crashed.pipeline, &crashed.copy(site)?))
            }),
        ],
    )?;
    let told = |(name, found): (&String, &_)| Row::told("start", name, "ms", Clone::clone(found));
    Ok(names.iter().zip(&found).map(told).collect())
}
