//! The directory of the segments: the final name of each, and the hidden ones until that is due.
//!
//! Not here: what a segment contains and when it is complete.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockgate_core::EndpointError;

use super::super::data_file::DataFile;
use super::super::disk::{self, Disk, cannot, cannot_open};

/// What stands for the counter in a path.
const COUNTER: &[u8] = b"{segment}";

/// In what state a file of a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stage {
    /// Being written, or complete and not yet compressed: `.NAME.partial`.
    Partial,
    /// Complete and compressed, without its final name yet: `.NAME.done`.
    Compressed,
    /// Complete, covered by a checkpoint, for everyone to see: `NAME`.
    Final,
}

/// The directory, on its disk, and the pattern of names.
pub(super) struct Directory {
    disk: Arc<dyn Disk>,
    dir: PathBuf,
    before: OsString,
    after: OsString,
}

impl Directory {
    /// The directory and the names that `path` describes; its last part must contain `{segment}`.
    pub(super) fn of(disk: Arc<dyn Disk>, path: &Path) -> Result<Self, EndpointError> {
        let pattern = path.file_name().unwrap_or_default().as_bytes();
        let at = pattern.windows(COUNTER.len()).position(|window| window == COUNTER);
        let at = at.ok_or_else(|| {
            EndpointError::Configuration(format!(
                "{}: the file's name must contain {{segment}}, such as part-{{segment}}.log",
                path.display()
            ))
        })?;
        Ok(Self {
            disk,
            dir: path.parent().unwrap_or(Path::new("/")).to_owned(),
            before: OsStr::from_bytes(&pattern[..at]).to_owned(),
            after: OsStr::from_bytes(&pattern[at + COUNTER.len()..]).to_owned(),
        })
    }

    pub(super) fn disk(&self) -> &dyn Disk {
        &*self.disk
    }

    pub(super) fn dir(&self) -> &Path {
        &self.dir
    }

    /// Creates the directory where it is missing.
    pub(super) fn create(&self) -> Result<(), EndpointError> {
        disk::create_dirs(self.disk(), &self.dir)
    }

    /// Makes all names durable.
    pub(super) fn sync(&self) -> Result<(), EndpointError> {
        disk::sync_dir(self.disk(), &self.dir)
    }

    /// Opens a partial, `None` if there is none.
    pub(super) fn open_partial(&self, number: u64) -> Result<Option<DataFile>, EndpointError> {
        DataFile::open(self.disk(), self.path(number, Stage::Partial))
    }

    /// Removes a file if it is there.
    pub(super) fn remove(&self, number: u64, stage: Stage) -> Result<(), EndpointError> {
        let path = self.path(number, stage);
        match self.disk.remove(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(cannot("remove", &path, error))
            }
            _ => Ok(()),
        }
    }

    /// Shows a complete segment, whose file is in `stage`, to everyone.
    pub(super) fn give_final_name(&self, number: u64, stage: Stage) -> Result<(), EndpointError> {
        let (from, to) = (self.path(number, stage), self.path(number, Stage::Final));
        if to.symlink_metadata().is_ok() {
            return Err(self.foreign(number));
        }
        self.disk.rename(&from, &to).map_err(|error| cannot("give its final name to", &from, error))
    }

    /// The error for a final name that is in use and is not ours.
    pub(super) fn foreign(&self, number: u64) -> EndpointError {
        EndpointError::Data(format!(
            "{} exists although segment {number} has not been given its name yet: another program made it, \
             or the state directory is older than the output; move the file away, or start anew with \
             another state directory",
            self.path(number, Stage::Final).display()
        ))
    }

    /// The path of segment `number` in `stage`. Numbers have six digits, or more where they need them.
    pub(super) fn path(&self, number: u64, stage: Stage) -> PathBuf {
        let (hidden, ending) = match stage {
            Stage::Partial => (".", ".partial"),
            Stage::Compressed => (".", ".done"),
            Stage::Final => ("", ""),
        };
        let mut name = OsString::from(hidden);
        name.push(&self.before);
        name.push(format!("{number:06}"));
        name.push(&self.after);
        name.push(ending);
        self.dir.join(name)
    }

    /// The files of segments that are in the directory, by number and stage; `None` if there is no such
    /// directory.
    pub(super) fn list(&self) -> Result<Option<Vec<(u64, Stage)>>, EndpointError> {
        let unreadable = |error| cannot_open("read directory", &self.dir, error);
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry.map_err(unreadable)?.file_name();
            found.extend(self.parse(&name));
        }
        found.sort_unstable();
        Ok(Some(found))
    }

    fn parse(&self, name: &OsStr) -> Option<(u64, Stage)> {
        [Stage::Partial, Stage::Compressed, Stage::Final].into_iter().find_map(|stage| {
            let name = name.as_bytes();
            let shown = match stage {
                Stage::Partial => name.strip_prefix(b".")?.strip_suffix(b".partial")?,
                Stage::Compressed => name.strip_prefix(b".")?.strip_suffix(b".done")?,
                Stage::Final => name,
            };
            let digits = shown.strip_prefix(self.before.as_bytes())?;
            let digits = digits.strip_suffix(self.after.as_bytes())?;
            let number = std::str::from_utf8(digits).ok()?.parse::<u64>().ok()?;
            // Only as we write it: neither `+00001` nor `1`.
            (format!("{number:06}").as_bytes() == digits).then_some((number, stage))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::disk::SystemDisk;
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let path = Path::new("/out/a-{segment}.log.gz");
        let names = Directory::of(Arc::new(SystemDisk), path).unwrap();
        for (number, stage, name) in [
            (1, Stage::Partial, ".a-000001.log.gz.partial"),
            (1, Stage::Compressed, ".a-000001.log.gz.done"),
            (1, Stage::Final, "a-000001.log.gz"),
            (1_234_567, Stage::Final, "a-1234567.log.gz"),
        ] {
            assert_eq!(names.path(number, stage), Path::new("/out").join(name));
            assert_eq!(names.parse(OsStr::new(name)), Some((number, stage)));
        }
        for other in
            ["a-1.log.gz", "a-+00001.log.gz", "a-0000001.log.gz", "a-000001.log", "a-.log.gz", "a"]
        {
            assert_eq!(names.parse(OsStr::new(other)), None, "{other}");
        }
    }

    #[test]
    fn a_name_without_a_counter_is_refused() {
        let path = Path::new("/out/{segment}/a.log");
        let error = Directory::of(Arc::new(SystemDisk), path).map(|_| ()).unwrap_err();
        insta::assert_snapshot!(error, @"/out/{segment}/a.log: the file's name must contain {segment}, such as part-{segment}.log");
    }
}
