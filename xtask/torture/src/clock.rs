//! A clock that jumps while a process runs, by the library of the program `faketime`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// How to get it.
pub(crate) const REMEDY: &str = "Debian: `apt-get install faketime`";

const LIBRARY: &str = "faketime/libfaketimeMT.so.1";

/// The library, where there is one.
pub(crate) fn library() -> Option<PathBuf> {
    let tops = ["/usr/lib", "/usr/lib64", "/usr/local/lib"];
    let inside = |top: &str| {
        let folders = fs::read_dir(top).into_iter().flatten().flatten();
        let folders = folders.map(|folder| folder.path());
        [PathBuf::from(top)].into_iter().chain(folders).collect::<Vec<_>>()
    };
    let paths = tops.iter().flat_map(|top| inside(top)).map(|folder| folder.join(LIBRARY));
    paths.into_iter().find(|path| path.is_file())
}

/// The clock of one process.
pub(crate) struct Clock {
    file: PathBuf,
}

impl Clock {
    /// Right at first.
    pub(crate) fn of(command: &mut Command, library: &Path, file: PathBuf) -> Result<Self> {
        command.env("LD_PRELOAD", library).env("FAKETIME_TIMESTAMP_FILE", &file);
        // Each look at the clock looks into the file.
        command.env("FAKETIME_NO_CACHE", "1");
        // The real one does not jump either, nor do the times of files.
        command.env("FAKETIME_DONT_FAKE_MONOTONIC", "1").env("NO_FAKE_STAT", "1");
        let clock = Self { file };
        clock.jump(0)?;
        Ok(clock)
    }

    pub(crate) fn jump(&self, seconds: i64) -> Result<()> {
        let new = self.file.with_extension("new");
        fs::write(&new, format!("{seconds:+}\n"))
            .and_then(|()| fs::rename(&new, &self.file))
            .context("setting the clock")
    }
}
