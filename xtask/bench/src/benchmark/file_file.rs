//! Lines of a file to a file, beside copying it.

use std::process::Command;

use anyhow::Result;

use crate::report::Row;
use crate::rounds::{Contestant, in_turn};
use crate::site::{LINE_BYTES, Site};

pub(super) fn measure(site: &Site) -> Result<Vec<Row>> {
    let lines = site.scaled(10_000_000);
    let bytes = lines * LINE_BYTES;
    let input = site.lines(lines)?;
    let pipeline = site.pipeline(
        "file-file",
        &format!(
            "inputs: {{in: {{file: {{paths: {}}}}}}}\noutputs: {{out: {{file: {{path: out.log}}}}}}\n",
            input.display()
        ),
    )?;
    let found = in_turn(
        site,
        vec![
            Contestant::new("lockgate, file to file, B/s", || {
                let state = site.gone("state")?;
                site.gone("out.log")?;
                site.speed(bytes, site.lockgate_run(&pipeline, &state))
            }),
            Contestant::new("cat and sync, B/s", || {
                let output = site.gone("out.log")?;
                let mut command = Command::new("sh");
                command.args(["-c", "cat \"$1\" > \"$2\" && sync \"$2\"", "sh"]);
                command.arg(&input).arg(&output);
                site.speed(bytes, command)
            }),
        ],
    )?;
    site.gone("out.log")?;
    let case = format!("{lines} lines of {LINE_BYTES} B");
    let yardstick = ("cat and sync", &found[1]);
    Ok(vec![Row::compared("file-file", case, "B/s", &found[0], yardstick, Some(0.7))])
}
