//! What exactly once costs: the same pipeline with and without journal, hashes and checkpoints.

use anyhow::Result;

use super::TO_NULL;
use crate::report::Row;
use crate::rounds::{Contestant, in_turn};
use crate::site::{LINE_BYTES, Site};

pub(super) fn measure(site: &Site) -> Result<Vec<Row>> {
    let lines = site.scaled(10_000_000);
    let bytes = lines * LINE_BYTES;
    let input = site.lines(lines)?;
    let pipeline = |name: &str, delivery: &str| {
        let inputs = format!("inputs: {{in: {{file: {{paths: {}}}}}}}\n", input.display());
        site.pipeline(name, &format!("delivery: {delivery}\n{inputs}{TO_NULL}"))
    };
    let (once, none) = (pipeline("once", "exactly_once")?, pipeline("none", "none")?);
    let run = |pipeline| {
        let state = site.gone("state")?;
        site.speed(bytes, site.lockgate_run(pipeline, &state))
    };
    let found = in_turn(
        site,
        vec![
            Contestant::new("delivery: exactly_once, B/s", || run(&once)),
            Contestant::new("delivery: none, B/s", || run(&none)),
        ],
    )?;
    let case = format!("{lines} lines of {LINE_BYTES} B to null");
    let yardstick = ("delivery: none", &found[1]);
    Ok(vec![Row::compared("exactly-once", case, "B/s", &found[0], yardstick, Some(0.95))])
}
