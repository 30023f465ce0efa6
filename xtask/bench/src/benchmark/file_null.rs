//! Lines of a file, read, hashed, journaled and thrown away, beside a loop that only finds where they end.

use anyhow::Result;

use super::TO_NULL;
use crate::report::Row;
use crate::rounds::{Contestant, in_turn};
use crate::site::{LINE_BYTES, Site};

pub(super) fn measure(site: &Site) -> Result<Vec<Row>> {
    let lines = site.scaled(10_000_000);
    let bytes = lines * LINE_BYTES;
    let input = site.lines(lines)?;
    let inputs = format!("inputs: {{in: {{file: {{paths: {}}}}}}}\n", input.display());
    let pipeline = site.pipeline("file-null", &format!("{inputs}{TO_NULL}"))?;
    let found = in_turn(
        site,
        vec![
            Contestant::new("lockgate, file to null, B/s", || {
                let state = site.gone("state")?;
                site.speed(bytes, site.lockgate_run(&pipeline, &state))
            }),
            Contestant::new("splitting into lines, B/s", || {
                site.speed(bytes, site.itself(["yardstick", "split", &input.to_string_lossy()]))
            }),
        ],
    )?;
    let case = format!("{lines} lines of {LINE_BYTES} B");
    let yardstick = ("splitting into lines", &found[1]);
    Ok(vec![Row::compared("file-null", case, "B/s", &found[0], yardstick, Some(0.7))])
}
