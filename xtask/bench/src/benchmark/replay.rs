//! Recovery of steps that are journaled and in no checkpoint, beside reading the same for the first time.
//!
//! The crash is made once: a run that never takes a checkpoint is killed when everything is journaled. Each round
//! recovers a copy of what it left, and reads the same file from nothing; both are whole runs with a checkpoint at
//! the end.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::TO_NULL;
use crate::report::Row;
use crate::rounds::{Contestant, in_turn};
use crate::running::Running;
use crate::site::{LINE_BYTES, Site};

pub(super) fn measure(site: &Site) -> Result<Vec<Row>> {
    let lines = site.scaled(10_000_000);
    let bytes = lines * LINE_BYTES;
    let crashed = Crashed::new(site, lines)?;
    let found = in_turn(
        site,
        vec![
            Contestant::new("lockgate, replay, B/s", || {
                site.speed(bytes, site.lockgate_run(&crashed.pipeline, &crashed.copy(site)?))
            }),
            Contestant::new("lockgate, first reading, B/s", || {
                let state = site.gone("state")?;
                site.speed(bytes, site.lockgate_run(&crashed.pipeline, &state))
            }),
        ],
    )?;
    let case = format!("{lines} lines of {LINE_BYTES} B to null");
    let yardstick = ("first reading", &found[1]);
    Ok(vec![Row::compared("replay", case, "B/s", &found[0], yardstick, Some(1.0))])
}

/// What a crash left: the whole file is journaled, and nothing is in a checkpoint.
pub(super) struct Crashed {
    /// Ends when the file does.
    pub(super) pipeline: PathBuf,
    state: PathBuf,
}

impl Crashed {
    pub(super) fn new(site: &Site, lines: u64) -> Result<Self> {
        let input = site.lines(lines)?;
        let inputs =
            |more| format!("inputs: {{in: {{file: {{paths: {}{more}}}}}}}\n", input.display());
        let name = format!("replay-{lines}");
        let settings = format!("checkpoint_interval: 1h\n{}{TO_NULL}", inputs(", follow: true"));
        let endless = site.pipeline(&name, &settings)?;
        let state = site.gone(&format!("crashed-{lines}"))?;
        let mut running = Running::start(site, &endless, &state)?;
        running.until_through(lines)?;
        running.kill()?;
        let pipeline = site.pipeline(&name, &format!("{}{TO_NULL}", inputs("")))?;
        Ok(Self { pipeline, state })
    }

    /// The state directory as the crash left it.
    pub(super) fn copy(&self, site: &Site) -> Result<PathBuf> {
        let copy = site.gone("state")?;
        copy_folder(&self.state, &copy)?;
        Ok(copy)
    }
}

/// Copies the files of a folder; state directories have no others.
fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let copy = to.join(entry.file_name());
        fs::copy(entry.path(), &copy)?;
        fs::File::open(&copy)?.sync_all()?;
    }
    Ok(())
}
