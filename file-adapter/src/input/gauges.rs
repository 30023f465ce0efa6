//! Where a reader stands in its files, for people who watch.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockgate_core::{InputWatch, Partition, PartitionStatus};

use super::position::Mark;
use super::queue::FileId;

/// The files whose end was not handed over.
#[derive(Debug, Default)]
pub(super) struct Gauges(Mutex<BTreeMap<FileId, Gauge>>);

#[derive(Debug)]
struct Gauge {
    partition: Arc<Partition>,
    path: PathBuf,
    position: u64,
    /// Whether positions are not those of the file on the disk.
    is_compressed: bool,
}

impl Gauges {
    /// The file is read, or will be, from `mark` on.
    pub(super) fn track(&self, file: FileId, name: &str, path: &Path, mark: Option<&Mark>) {
        let position = mark.map_or(0, |mark| mark.offset);
        let compressed = mark.is_some_and(|mark| mark.member.is_some());
        let (name, path) = (name.to_owned(), path.to_owned());
        let partition = Arc::new(Partition { source: name, number: None });
        let gauge = Gauge { partition, path, position, is_compressed: compressed };
        self.files().insert(file, gauge);
    }

    /// What lies before this position was handed over.
    pub(super) fn reach(&self, file: FileId, position: u64, compressed: bool) {
        if let Some(gauge) = self.files().get_mut(&file) {
            (gauge.position, gauge.is_compressed) = (position, compressed);
        }
    }

    /// The file has another path.
    pub(super) fn moved(&self, file: FileId, path: &Path) {
        if let Some(gauge) = self.files().get_mut(&file) {
            path.clone_into(&mut gauge.path);
        }
    }

    /// The files are tracked anew.
    pub(super) fn clear(&self) {
        self.files().clear();
    }

    /// The file's end was handed over.
    pub(super) fn forget(&self, file: FileId) {
        self.files().remove(&file);
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<FileId, Gauge>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InputWatch for Gauges {
    fn partitions(&self) -> Vec<PartitionStatus> {
        // The reader is not to wait for the disk.
        let files: Vec<_> = (self.files().values())
            .map(|gauge| {
                let path = (!gauge.is_compressed).then(|| gauge.path.clone());
                (gauge.partition.clone(), gauge.position, path)
            })
            .collect();
        let length = |path: PathBuf| std::fs::metadata(path).ok().map(|found| found.len());
        let mut partitions: Vec<_> = files
            .into_iter()
            .map(|(partition, position, path)| PartitionStatus {
                partition,
                position,
                end: path.and_then(length),
            })
            .collect();
        partitions.sort_by(|a, b| a.partition.cmp(&b.partition));
        partitions
    }
}
