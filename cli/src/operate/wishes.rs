//! What people and supervisors wish for while a pipeline is opened and runs: by signals, by the control server, by
//! changing the pipeline file.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::control::{Asked, Wish};
use crate::exit::Failed;
use crate::signals::{Signal, Signals};

/// How often the pipeline file is looked at. Notices of the system do not come from every file system, and not for
/// every way of putting a file in its place.
const LOOK: Duration = Duration::from_secs(1);

/// All sources of wishes.
pub(super) struct Wishes {
    signals: Signals,
    asked: Option<UnboundedReceiver<Asked>>,
    file: Option<WatchedFile>,
    stopping: bool,
}

/// What is wished for.
#[derive(Debug)]
pub(super) enum Wished {
    /// An end in order, or the pipeline file read again.
    Asked(Asked),
    /// An end at once, whatever hangs.
    EndAtOnce,
}

impl Wishes {
    /// What signals wish for from now on; with `asked` and `file` also what comes by the board and what changes in the
    /// file.
    pub(super) fn listen(
        asked: Option<UnboundedReceiver<Asked>>,
        file: Option<PathBuf>,
    ) -> Result<Self, Failed> {
        let signals = Signals::listen(asked.is_some())?;
        Ok(Self { signals, asked, file: file.map(WatchedFile::new), stopping: false })
    }

    /// The next wish. Nothing is lost when this is dropped before there is one.
    pub(super) async fn next(&mut self) -> Wished {
        let Self { signals, asked, file, .. } = self;
        let wished = tokio::select! {
            signal = signals.next() => match signal {
                Signal::Stop => Wished::Asked(Asked::of(Wish::Stop)),
                Signal::EndAtOnce => Wished::EndAtOnce,
                Signal::Reload => Wished::Asked(Asked::of(Wish::Reload)),
            },
            Some(asked) = next_asked(asked) => Wished::Asked(asked),
            () = changed(file) => {
                tracing::info!("the pipeline file has changed");
                Wished::Asked(Asked::of(Wish::Reload))
            }
        };
        if let Wished::EndAtOnce | Wished::Asked(Asked { wish: Wish::Stop, .. }) = &wished {
            self.stopping = true;
        }
        wished
    }

    /// Whether an end has been wished for.
    pub(super) fn are_stopping(&self) -> bool {
        self.stopping
    }
}

async fn next_asked(asked: &mut Option<UnboundedReceiver<Asked>>) -> Option<Asked> {
    match asked {
        Some(asked) => asked.recv().await,
        None => std::future::pending().await,
    }
}

async fn changed(file: &mut Option<WatchedFile>) {
    match file {
        Some(file) => file.changed().await,
        None => std::future::pending().await,
    }
}

/// A file that may be changed, or put in another's place.
struct WatchedFile {
    path: PathBuf,
    look: Option<Interval>,
    known: Option<Stamp>,
    /// What it was at the last look, if it has changed since the last notice: whoever writes it may not be done.
    latest: Option<Stamp>,
}

/// What tells one content of a file from another without reading it.
type Stamp = (u64, u64, u64, Option<SystemTime>);

impl WatchedFile {
    fn new(path: PathBuf) -> Self {
        let mut file = Self { path, look: None, known: None, latest: None };
        file.known = file.stamp();
        file
    }

    fn stamp(&self) -> Option<Stamp> {
        let found = fs::metadata(&self.path).ok()?;
        Some((found.dev(), found.ino(), found.len(), found.modified().ok()))
    }

    /// Waits until the file is another one, and stays the same from one look to the next.
    async fn changed(&mut self) {
        loop {
            let look = self.look.get_or_insert_with(|| {
                let mut look = interval(LOOK);
                look.set_missed_tick_behavior(MissedTickBehavior::Delay);
                look
            });
            look.tick().await;
            if self.has_changed() {
                return;
            }
        }
    }

    fn has_changed(&mut self) -> bool {
        let now = self.stamp();
        // While it is not there somebody is putting it there.
        if now.is_none() || now == self.known {
            self.latest = None;
        } else if now == self.latest {
            (self.known, self.latest) = (now, None);
            return true;
        } else {
            self.latest = now;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_another_one_and_stays_so_is_noticed_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipeline.yaml");
        fs::write(&path, "a").unwrap();
        let mut file = WatchedFile::new(path.clone());
        let mut looks = |n: usize| (0..n).map(|_| file.has_changed()).collect::<Vec<_>>();
        assert_eq!(looks(2), [false, false]);
        fs::write(folder.path().join("new"), "bb").unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        assert_eq!(looks(3), [false, true, false]);
        fs::write(&path, "ccc").unwrap();
        assert_eq!(looks(1), [false]);
        fs::write(&path, "dddd").unwrap();
        assert_eq!(looks(3), [false, true, false], "it was still being written");
        fs::remove_file(&path).unwrap();
        assert_eq!(looks(2), [false, false], "a file that is gone is not a new one");
        fs::write(&path, "eeeee").unwrap();
        assert_eq!(looks(3), [false, true, false]);
    }
}
