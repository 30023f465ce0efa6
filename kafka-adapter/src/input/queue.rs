//! What was announced and not handed over, partition by partition.
//!
//! Pure. Not here: what may be read ([`PartitionContexts`](lockgate_core::PartitionContexts)), what positions
//! mean.

use std::collections::VecDeque;

use lockgate_core::{Batch, BufferSize, QueueLimits, Tickets};

/// What a record takes in a batch besides its bytes.
const ROW: u64 = 96;

/// Whether so much may be held. The limit is one of memory, so what records take besides their bytes counts too; but
/// up to half of it bytes alone count, because that much is waited for before a step is cut.
pub(super) fn allows(limits: QueueLimits, held: BufferSize) -> bool {
    let is_bounded = held.bytes <= limits.max_queued_bytes / 2
        || memory(held) <= limits.max_queued_bytes
        || held.records == 1;
    limits.allow(held) && is_bounded
}

fn memory(held: BufferSize) -> u64 {
    held.bytes + held.records * ROW
}

/// The batches of all partitions, which are numbered from 0.
///
/// **Invariant:** `held` is the size of everything in `ready`.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ready: Vec<VecDeque<(Batch, Tickets)>>,
    held: BufferSize,
    /// The partition that is served first next time.
    first: usize,
}

impl Queue {
    pub(super) fn held(&self) -> BufferSize {
        self.held
    }

    /// How many records may come besides: about as many as fit if they are like those held, and always one if none
    /// is held.
    pub(super) fn room(&self, limits: QueueLimits) -> usize {
        let mut room = limits.max_queued_records.saturating_sub(self.held.records);
        if let Some(mean) = self.held.bytes.checked_div(self.held.records) {
            let half = (limits.max_queued_bytes / 2).saturating_sub(self.held.bytes) / mean.max(1);
            let whole = limits.max_queued_bytes.saturating_sub(memory(self.held)) / (mean + ROW);
            room = room.min(half.max(whole));
        }
        usize::try_from(room).unwrap_or(usize::MAX)
    }

    pub(super) fn push(&mut self, partition: usize, batch: Batch, tickets: Tickets) {
        if partition >= self.ready.len() {
            self.ready.resize_with(partition + 1, VecDeque::new);
        }
        self.held = self.held.plus(batch.size());
        self.ready[partition].push_back((batch, tickets));
    }

    /// Whether nothing of the partition is held.
    pub(super) fn is_empty(&self, partition: usize) -> bool {
        self.ready.get(partition).is_none_or(VecDeque::is_empty)
    }

    /// Throws away what is held of a partition: how much it was, and the tickets of it.
    pub(super) fn discard(&mut self, partition: usize) -> (BufferSize, Vec<Tickets>) {
        let mut size = BufferSize::ZERO;
        let held = self.ready.get_mut(partition).map(std::mem::take).unwrap_or_default();
        let tickets = held.into_iter().map(|(batch, tickets)| {
            size = size.plus(batch.size());
            tickets
        });
        let tickets = tickets.collect();
        self.held = self.held.minus(size).unwrap_or_default();
        (size, tickets)
    }

    /// Takes out at most `most` records, those of one partition together and in order. Partitions share alike,
    /// and take turns at being the first.
    pub(super) fn take(&mut self, most: usize) -> Vec<(usize, Vec<(Batch, Tickets)>)> {
        let order = self.order();
        let shares = self.shares(&order, most);
        let mut taken = Vec::new();
        for (partition, share) in order.into_iter().zip(shares) {
            let batches = self.take_of(partition, share);
            if !batches.is_empty() {
                self.first = partition + 1;
                taken.push((partition, batches));
            }
        }
        taken
    }

    /// The partitions that hold something.
    fn order(&self) -> Vec<usize> {
        let first = if self.first < self.ready.len() { self.first } else { 0 };
        let order = (first..self.ready.len()).chain(0..first);
        order.filter(|partition| !self.ready[*partition].is_empty()).collect()
    }

    fn shares(&self, order: &[usize], most: usize) -> Vec<usize> {
        let available: Vec<usize> = order
            .iter()
            .map(|partition| self.ready[*partition].iter().map(|(batch, _)| batch.len()).sum())
            .collect();
        let mut shares = vec![0; order.len()];
        let mut left = most;
        loop {
            let hungry = (0..order.len()).filter(|i| shares[*i] < available[*i]).count();
            if hungry == 0 || left == 0 {
                return shares;
            }
            let part = (left / hungry).max(1);
            for (share, available) in shares.iter_mut().zip(&available) {
                let more = part.min(available - *share).min(left);
                *share += more;
                left -= more;
            }
        }
    }

    fn take_of(&mut self, partition: usize, records: usize) -> Vec<(Batch, Tickets)> {
        let mut taken = Vec::new();
        let mut left = records;
        while left > 0
            && let Some((batch, tickets)) = self.ready[partition].front_mut()
        {
            let front = if left < batch.len() {
                (batch.take_front(left), tickets.take_front(left as u64))
            } else {
                let Some(front) = self.ready[partition].pop_front() else { break };
                front
            };
            left -= front.0.len();
            self.held = self.held.minus(front.0.size()).unwrap_or_default();
            taken.push(front);
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::num::NonZeroU32;
    use std::sync::Arc;
    use std::time::Duration;

    use lockgate_core::{
        BatchBuilder, NewRecord, Partition, PartitionContexts, PartitionId, Stage,
    };
    use proptest::prelude::*;

    /// A queue with so many records of each partition, in batches of up to three.
    fn queue(records: &[u64]) -> Queue {
        let mut contexts = PartitionContexts::new(NonZeroU32::new(100).unwrap());
        contexts.assign((0..records.len() as u32).map(PartitionId));
        while contexts.stage() != Stage::Add {
            contexts.advance(Duration::ZERO);
        }
        let mut queue = Queue::default();
        for (number, records) in records.iter().enumerate() {
            let partition = Partition { source: "t".into(), number: Some(number as u32) };
            let partition = Arc::new(partition);
            let offsets: Vec<u64> = (0..*records).collect();
            for offsets in offsets.chunks(3) {
                let mut builder = BatchBuilder::new(partition.clone());
                for offset in offsets {
                    let record =
                        NewRecord { offset: *offset, value: Some(b"x"), ..Default::default() };
                    builder.push(record).unwrap();
                }
                let tickets = contexts.add(PartitionId(number as u32), offsets).unwrap();
                queue.push(number, builder.build(), tickets);
            }
        }
        queue
    }

    fn counts(queue: &mut Queue, most: usize) -> Vec<(usize, usize)> {
        let count = |(partition, batches): (usize, Vec<(Batch, Tickets)>)| {
            (partition, batches.iter().map(|(batch, _)| batch.len()).sum())
        };
        queue.take(most).into_iter().map(count).collect()
    }

    #[test]
    fn partitions_share_alike_and_take_turns() {
        let mut queue = queue(&[10, 2, 0, 10]);
        assert_eq!(counts(&mut queue, 12), [(0, 5), (1, 2), (3, 5)]);
        assert_eq!(counts(&mut queue, 1), [(0, 1)]);
        assert_eq!(counts(&mut queue, 1), [(3, 1)]);
        assert_eq!(counts(&mut queue, 100), [(0, 4), (3, 4)]);
        assert_eq!(queue.held(), BufferSize::ZERO);
        assert_eq!(counts(&mut queue, 100), []);
    }

    #[test]
    fn what_records_take_besides_their_bytes_counts_beyond_half_of_the_limit() {
        let limits = QueueLimits { max_queued_records: 1000, max_queued_bytes: 10_000 };
        let allows = |records, bytes| allows(limits, BufferSize { records, bytes });
        assert!(allows(1000, 5000) && allows(20, 8000) && allows(1, 20_000));
        assert!(!allows(1001, 5000) && !allows(60, 5001) && !allows(2, 10_000));
    }

    #[test]
    fn there_is_room_for_what_is_allowed_and_always_for_one_record() {
        let room = |bytes| {
            let limits = QueueLimits { max_queued_records: 1000, max_queued_bytes: bytes };
            // Five records of a byte each.
            queue(&[5]).room(limits)
        };
        assert_eq!((room(5), room(14)), (0, 2));
        assert_eq!(room(1 << 30), 995);
        let none = QueueLimits { max_queued_records: 1, max_queued_bytes: 0 };
        assert!(queue(&[]).room(none) > 0);
    }

    #[test]
    fn what_is_discarded_is_not_held() {
        let mut queue = queue(&[4, 5]);
        let (size, tickets) = queue.discard(1);
        assert_eq!((size.records, tickets.iter().map(Tickets::len).sum::<u64>()), (5, 5));
        assert_eq!(queue.held().records, 4);
        assert_eq!(queue.discard(1).0, BufferSize::ZERO);
        assert_eq!(queue.discard(7).0, BufferSize::ZERO);
        assert_eq!(counts(&mut queue, 10), [(0, 4)]);
    }

    proptest! {
        #[test]
        fn everything_comes_once_and_in_order(
            records in proptest::collection::vec(0u64..20, 1..6),
            takes in proptest::collection::vec(1usize..15, 1..40),
        ) {
            let mut queue = queue(&records);
            let mut next = vec![0; records.len()];
            for most in takes.into_iter().chain([200]) {
                let before = queue.held().records;
                let taken = queue.take(most);
                let given: usize = taken.iter().flat_map(|(_, b)| b).map(|(b, _)| b.len()).sum();
                prop_assert_eq!(given as u64, before.min(most as u64));
                for (partition, batches) in taken {
                    for (batch, tickets) in batches {
                        prop_assert_eq!(tickets.len(), batch.len() as u64);
                        for record in batch.iter() {
                            prop_assert_eq!(record.offset, next[partition]);
                            next[partition] += 1;
                        }
                    }
                }
            }
            prop_assert_eq!(next, records);
            prop_assert_eq!(queue.held(), BufferSize::ZERO);
        }
    }
}
