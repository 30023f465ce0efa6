//! Wakes a reader when something changes in the watched directories.
//!
//! Only a hint: what changed is looked up on the disk, and is looked up from time to time without any hint,
//! because not every file system tells.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;

use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use tracing::{debug, warn};

use super::discover::Patterns;
use super::hint::Hint;
use super::reader::Wake;

/// Watches until dropped.
pub(super) struct Watch {
    watcher: Option<RecommendedWatcher>,
    hint: Arc<Hint>,
    /// Directories that do not exist yet.
    absent: Vec<(PathBuf, bool)>,
}

impl Watch {
    pub(super) fn new(patterns: &Patterns, wakes: Sender<Wake>) -> Self {
        let hint = Arc::new(Hint::default());
        let flag = hint.clone();
        let watcher = notify::recommended_watcher(move |event: notify::Result<Event>| {
            // Reading the files is an access, too.
            let idle = matches!(&event, Ok(event) if matches!(event.kind, EventKind::Access(_)));
            if !idle && flag.changed() {
                let _ = wakes.send(Wake::Changed);
            }
        });
        let watcher = watcher
            .inspect_err(|error| warn!(%error, "files are polled: changes cannot be watched"))
            .ok();
        let mut watch = Self { watcher, hint, absent: patterns.directories() };
        watch.watch_absent();
        watch
    }

    /// A look is about to be taken: changes from now on are reported.
    pub(super) fn arrived(&self) {
        self.hint.looking();
    }

    /// Watches directories that have appeared.
    pub(super) fn watch_absent(&mut self) {
        let Some(watcher) = &mut self.watcher else { return };
        self.absent.retain(|(directory, below)| {
            let mode = if *below { RecursiveMode::Recursive } else { RecursiveMode::NonRecursive };
            match watch(watcher, directory, mode) {
                Ok(()) => false,
                Err(error) => {
                    debug!(?directory, %error, "not watched; polled");
                    true
                }
            }
        });
    }
}

fn watch(
    watcher: &mut RecommendedWatcher,
    directory: &Path,
    mode: RecursiveMode,
) -> notify::Result<()> {
    watcher.watch(directory, mode)
}
