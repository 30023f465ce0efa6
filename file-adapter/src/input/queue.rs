//! What was read and not handed over, within the limits.
//!
//! Pure. Items are cut first, announced as far as the limits allow, and handed over at last. Not here:
//! what positions mean.

use std::collections::{BTreeSet, VecDeque};

use lockgate_core::{Batch, BufferSize, QueueLimits};

use super::cursor::Piece;
use super::position::Member;

/// Counts the files of one reader, in the order in which they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileId(pub(super) u64);

/// The last thing that happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// It was read to its end.
    Done,
    /// Its content is no longer there; what the file holds now is read as another one.
    Dropped,
}

/// Records of a file, a new place in it, or its end.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) file: FileId,
    pub(super) batch: Option<Batch>,
    /// Where the reader stands in the file afterwards.
    pub(super) next: u64,
    /// See [`Piece::members`].
    pub(super) members: Vec<Member>,
    pub(super) end: Option<End>,
}

impl Item {
    pub(super) fn records(file: FileId, piece: Piece) -> Self {
        let Piece { batch, next, members } = piece;
        Self { file, batch, next, members, end: None }
    }

    pub(super) fn end(file: FileId, next: u64, members: Vec<Member>, end: End) -> Self {
        Self { file, batch: None, next, members, end: Some(end) }
    }

    /// The last member that begins at or before `offset`.
    pub(super) fn member_at(&self, offset: u64) -> Option<Member> {
        self.members.iter().rev().find(|member| member.start <= offset).copied()
    }

    /// Whether going on after the whole item costs nothing.
    fn is_cheap_after(&self) -> bool {
        self.members.is_empty() || self.members.iter().any(|member| member.start == self.next)
    }

    fn len(&self) -> usize {
        self.batch.as_ref().map_or(0, Batch::len)
    }

    fn size(&self) -> BufferSize {
        self.batch.as_ref().map_or(BufferSize::ZERO, Batch::size)
    }

    /// Takes the first `n` records out, fewer than there are.
    fn take_front(&mut self, n: usize) -> Option<Self> {
        let front = self.batch.as_mut()?.take_front(n);
        let next = front.end_offset()?;
        Some(Self { batch: Some(front), next, end: None, members: self.members.clone(), ..*self })
    }

    /// The smallest number of records, from 1 to `most`, after which a member begins.
    fn records_to_member(&self, most: usize) -> Option<usize> {
        let batch = self.batch.as_ref()?;
        let first = batch.offset()?;
        self.members.iter().filter(|member| member.start > first).find_map(|member| {
            let n = if member.start == self.next {
                batch.len()
            } else {
                let n = batch.records_within(member.start - first);
                let end = batch.clone().take_front(n).end_offset();
                (end == Some(member.start)).then_some(n)?
            };
            (1..=most).contains(&n).then_some(n)
        })
    }
}

/// **Invariant:** `held` is the size of everything in `ready`, and within the limits under which it was
/// announced.
#[derive(Debug, Default)]
pub(super) struct Queue {
    ready: VecDeque<Item>,
    waiting: VecDeque<Item>,
    held: BufferSize,
}

impl Queue {
    pub(super) fn push(&mut self, item: Item) {
        self.waiting.push_back(item);
    }

    /// Whether everything that was cut has been announced.
    pub(super) fn is_announced(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Makes ready what the limits allow. Gives how much that is: it is to be announced at once.
    pub(super) fn announce(&mut self, limits: QueueLimits) -> BufferSize {
        let mut announced = BufferSize::ZERO;
        while let Some(item) = self.waiting.front_mut() {
            let n = item.batch.as_ref().map_or(0, |batch| fitting(batch, self.held, limits));
            if n == 0 && item.len() > 0 {
                break;
            }
            let item = if n < item.len() { item.take_front(n) } else { self.waiting.pop_front() };
            let Some(item) = item else { break };
            self.held = self.held.plus(item.size());
            announced = announced.plus(item.size());
            self.ready.push_back(item);
        }
        announced
    }

    /// Takes out what `share` says, or all if there is less.
    pub(super) fn take(&mut self, share: Share) -> Vec<Item> {
        let mut taken = Vec::new();
        let mut room = share.records;
        while let Some(item) = self.ready.front_mut() {
            if taken.len() == share.items || item.len() > 0 && room == 0 {
                break;
            }
            let item =
                if room < item.len() { item.take_front(room) } else { self.ready.pop_front() };
            let Some(item) = item else { break };
            room -= item.len();
            self.held = self.held.minus(item.size()).unwrap_or_default();
            taken.push(item);
        }
        taken
    }

    /// What to hand over, at most `most` records, when a checkpoint is wanted. `midway` are the files
    /// whose present place is no cheap one to go on from.
    ///
    /// Goes up to the first place at which a member begins; plain files have no dear places and are not
    /// stopped in. Without such a place the reader stays where it is, if that is a good place, or else
    /// goes on as usual.
    pub(super) fn share_to_checkpoint(&self, most: usize, mut midway: BTreeSet<FileId>) -> Share {
        let mut best = midway.is_empty().then_some(Share { records: 0, items: 0 });
        let mut records = 0;
        for (place, item) in self.ready.iter().enumerate() {
            let items = place + 1;
            let room = most - records;
            if item.len() > 0 && room == 0 {
                break;
            }
            let was_midway = midway.remove(&item.file);
            if midway.is_empty()
                && let Some(n) = item.records_to_member(room)
            {
                return Share { records: records + n, items };
            }
            let n = item.len().min(room);
            records += n;
            let whole = n == item.len();
            let cheap = item.members.is_empty() || whole && item.is_cheap_after();
            if !cheap && item.end.is_none() {
                midway.insert(item.file);
            } else if midway.is_empty() {
                best = Some(Share { records, items });
                if was_midway {
                    break;
                }
            }
            if !whole {
                break;
            }
        }
        best.unwrap_or(Share::of_records(records))
    }
}

/// How much of a queue to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    records: usize,
    /// Items, the last of which may be taken in part. What has no records counts here, since it moves the
    /// place where the reader stands too.
    items: usize,
}

impl Share {
    /// So many records, and everything without records behind them.
    pub(super) fn of_records(records: usize) -> Self {
        Self { records, items: usize::MAX }
    }
}

/// How many records of `batch` may be held besides `held`.
fn fitting(batch: &Batch, held: BufferSize, limits: QueueLimits) -> usize {
    if held == BufferSize::ZERO
        && limits.max_queued_records > 0
        && batch.records_within(limits.max_queued_bytes) == 0
    {
        // Larger than the limit: alone.
        return 1;
    }
    if held.bytes > limits.max_queued_bytes {
        return 0;
    }
    let records = limits.max_queued_records.saturating_sub(held.records);
    let within = batch.records_within(limits.max_queued_bytes - held.bytes);
    within.min(usize::try_from(records).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use bytes::Bytes;
    use lockgate_core::{Framing, Partition};
    use proptest::prelude::*;

    use crate::input::identity::Fingerprint;

    const FILE: FileId = FileId(1);

    /// Records of ten bytes each, from the `from`th on, with members that begin at the given records.
    fn item(file: FileId, from: u64, records: u32, members: &[u64]) -> Item {
        let partition = Partition { source: format!("{file:?}"), number: None };
        let arena = Bytes::from(vec![b'x'; records as usize * 10]);
        let ends = (1..=records).map(|i| i * 10).collect();
        let batch =
            Batch::adjoining(Arc::new(partition), Framing::Lines, arena, from * 10, 0, ends);
        let raw_tail = Fingerprint::of(b"");
        let members = members.iter().map(|at| Member { raw: *at, start: at * 10, raw_tail });
        let next = (from + u64::from(records)) * 10;
        Item { file, batch: Some(batch), next, members: members.collect(), end: None }
    }

    fn queue(items: Vec<Item>) -> Queue {
        let mut queue = Queue::default();
        items.into_iter().for_each(|item| queue.push(item));
        queue.announce(QueueLimits { max_queued_records: u64::MAX, max_queued_bytes: u64::MAX });
        queue
    }

    fn offsets(items: &[Item]) -> Vec<u64> {
        let batches = items.iter().filter_map(|item| item.batch.as_ref());
        batches.flat_map(|batch| batch.iter().map(|record| record.offset)).collect()
    }

    #[test]
    fn a_checkpoint_stops_at_the_first_member() {
        let queue = queue(vec![item(FILE, 0, 4, &[0]), item(FILE, 4, 6, &[0, 7, 9])]);
        let check = |most, midway: &[FileId], expected| {
            let midway = midway.iter().copied().collect();
            assert_eq!(queue.share_to_checkpoint(most, midway).records, expected);
        };
        check(100, &[], 7);
        check(7, &[], 7);
        // Not near enough: stay at a good place, or go on from a bad one.
        check(6, &[], 0);
        check(6, &[FILE], 6);
        // Another file stays at a bad place whatever is done here.
        check(100, &[FileId(9)], 10);
    }

    #[test]
    fn a_checkpoint_does_not_stop_in_plain_files() {
        let end = Item::end(FILE, 30, Vec::new(), End::Done);
        let next = item(FileId(2), 0, 3, &[0]);
        let queue = queue(vec![item(FILE, 0, 3, &[]), end, next]);
        assert_eq!(queue.share_to_checkpoint(2, BTreeSet::new()).records, 2);
        assert_eq!(queue.share_to_checkpoint(100, BTreeSet::new()).records, 3);
    }

    #[test]
    fn a_checkpoint_stops_at_the_end_of_a_compressed_file() {
        let end = Item::end(FILE, 30, Vec::new(), End::Done);
        let queue = queue(vec![item(FILE, 0, 3, &[0]), end, item(FileId(2), 0, 3, &[0])]);
        assert_eq!(queue.share_to_checkpoint(100, BTreeSet::new()).records, 3);
    }

    /// A skipped record behind the good place was once taken along, and left the reader at a bad one.
    #[test]
    fn a_checkpoint_does_not_go_on_over_what_has_no_records() {
        let piece = Piece { batch: None, next: 40, members: Vec::new() };
        let skipped = Item {
            members: vec![Member { raw: 0, start: 0, raw_tail: Fingerprint::of(b"") }],
            ..Item::records(FILE, piece)
        };
        let mut queue = queue(vec![skipped, item(FILE, 4, 6, &[0])]);
        let share = queue.share_to_checkpoint(1, BTreeSet::new());
        assert_eq!(share, Share { records: 0, items: 0 });
        assert_eq!(queue.take(share).len(), 0);
        let share = queue.share_to_checkpoint(1, [FILE].into());
        assert_eq!(offsets(&queue.take(share)), [40]);
    }

    #[test]
    fn what_has_no_records_goes_with_what_is_before() {
        let end = Item::end(FILE, 30, Vec::new(), End::Done);
        let mut queue = queue(vec![item(FILE, 0, 3, &[]), end, item(FileId(2), 0, 1, &[])]);
        let taken = queue.take(Share::of_records(3));
        assert_eq!(taken.last().and_then(|item| item.end), Some(End::Done));
        assert_eq!(queue.take(Share::of_records(0)).len(), 0);
        assert_eq!(offsets(&queue.take(Share::of_records(9))), [0]);
    }

    proptest! {
        /// C12: whatever the limits and however much is taken, every record comes once and in order.
        #[test]
        fn c12_any_limits_and_takes_give_everything(
            sizes in proptest::collection::vec(0u32..6, 0..8),
            takes in proptest::collection::vec(0usize..7, 1..40),
            records in 1u64..8,
            bytes in 1u64..100,
        ) {
            let limits = QueueLimits { max_queued_records: records, max_queued_bytes: bytes };
            let mut queue = Queue::default();
            let mut from = 0;
            for size in &sizes {
                queue.push(item(FILE, from, *size, &[]));
                from += u64::from(*size);
            }
            let (mut held, mut given) = (BufferSize::ZERO, Vec::new());
            for take in takes.into_iter().chain(std::iter::repeat_n(1, from as usize)) {
                held = held.plus(queue.announce(limits));
                prop_assert!(limits.allow(held), "{held:?}");
                prop_assert_eq!(held, queue.held);
                let taken = queue.take(Share::of_records(take));
                let sum = taken.iter().fold(BufferSize::ZERO, |sum, item| sum.plus(item.size()));
                prop_assert!(sum.records <= take as u64);
                held = held.minus(sum).unwrap();
                given.extend(offsets(&taken));
            }
            prop_assert!(queue.is_announced());
            prop_assert_eq!(given, (0..from).map(|i| i * 10).collect::<Vec<_>>());
        }
    }
}
