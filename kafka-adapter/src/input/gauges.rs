//! Where a reader stands in its partitions, for people who watch.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockgate_core::{InputWatch, Partition, PartitionStatus};

use super::native::high_watermark;
use crate::client::{Client, Name};

/// The partitions that are read, by their places among those of the source.
pub(super) struct Gauges {
    /// Those that read, as long as the reader has them.
    clients: Mutex<Vec<Arc<Client>>>,
    partitions: Mutex<BTreeMap<usize, Gauge>>,
}

struct Gauge {
    partition: Arc<Partition>,
    position: u64,
    /// Where it is to be read to, or where the log ended when brokers were last asked.
    end: Option<u64>,
    /// Whether it is to be read to there, and no further.
    is_bounded: bool,
}

impl Gauges {
    pub(super) fn new(client: &Arc<Client>) -> Self {
        Self { clients: Mutex::new(vec![client.clone()]), partitions: Mutex::default() }
    }

    /// This client reads, too.
    pub(super) fn ask(&self, client: &Arc<Client>) {
        self.clients().push(client.clone());
    }

    /// What lies before this position was handed over. `end` is where reading is to end, if it is.
    pub(super) fn reach(
        &self,
        index: usize,
        partition: &Arc<Partition>,
        position: u64,
        end: Option<u64>,
    ) {
        let mut partitions = self.partitions();
        let gauge = partitions.entry(index).or_insert_with(|| Gauge {
            partition: partition.clone(),
            position,
            end,
            is_bounded: false,
        });
        gauge.position = position;
        gauge.end = end.or(gauge.end);
        gauge.is_bounded = end.is_some();
    }

    /// The logs ended there when brokers were asked.
    pub(super) fn ends(&self, ends: &BTreeMap<Name, Option<u64>>) {
        let mut name = Name::default();
        for gauge in self.partitions().values_mut().filter(|gauge| !gauge.is_bounded) {
            name.0.clone_from(&gauge.partition.source);
            name.1 = gauge.partition.number.unwrap_or_default();
            gauge.end = ends.get(&name).copied().flatten().or(gauge.end);
        }
    }

    /// The partition is given up.
    pub(super) fn forget(&self, index: usize) {
        self.partitions().remove(&index);
    }

    /// The reader lets go of its clients: from now on they are asked no more.
    pub(super) fn close(&self) {
        self.clients().clear();
    }

    fn clients(&self) -> MutexGuard<'_, Vec<Arc<Client>>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn partitions(&self) -> MutexGuard<'_, BTreeMap<usize, Gauge>> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InputWatch for Gauges {
    fn partitions(&self) -> Vec<PartitionStatus> {
        let status = |gauge: &Gauge| {
            let Gauge { partition, position, end, is_bounded } = gauge;
            let partition = partition.clone();
            (PartitionStatus { partition, position: *position, end: *end }, *is_bounded)
        };
        let mut partitions: Vec<_> = self.partitions().values().map(status).collect();
        // What a client has fetched tells where the log ended then; what is paused is not fetched. The lock keeps the
        // clients from being closed on this thread.
        for client in &*self.clients() {
            for (status, _) in partitions.iter_mut().filter(|(_, is_bounded)| !is_bounded) {
                let Partition { source, number } = &*status.partition;
                let fetched = high_watermark(client, source, number.unwrap_or_default());
                status.end = status.end.max(fetched);
            }
        }
        let mut partitions: Vec<_> = partitions.into_iter().map(|(status, _)| status).collect();
        partitions.sort_by(|a, b| a.partition.cmp(&b.partition));
        partitions
    }
}
