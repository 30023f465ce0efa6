//! Which of many partitions are busy: where they are few, a client of their own reads them.
//!
//! librdkafka names all partitions that it reads in each request and looks at each of them whenever it does anything,
//! and the memory for what it fetches ahead is dealt out to all. A few busy partitions among thousands of quiet ones
//! would be slow for that. Pure. Not here: how partitions get from one client to the other (`source`).

use lockgate_core::BufferSize;

/// With fewer partitions than this one client reads all.
pub(super) const MANY: usize = 64;

/// Most partitions that are read apart.
pub(super) const MOST: usize = 16;

/// What came of a partition between two looks, about a second, if it is busy: this many records, or bytes.
const BUSY: BufferSize = BufferSize { records: 100, bytes: 64 << 10 };

/// It is busy, too, if its end was not reached at so many looks.
const BEHIND: u32 = 2;

/// A partition goes back when it was quiet for so many looks.
const REST: u32 = 10;

/// What came of each partition lately.
#[derive(Debug, Default)]
pub(super) struct Traffic(Vec<Load>);

#[derive(Clone, Copy, Debug, Default)]
struct Load {
    came: BufferSize,
    /// The looks since it was busy.
    quiet: u32,
    /// The looks in a row at which its log held more.
    behind: u32,
}

/// How a partition stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Standing {
    /// It is read apart.
    pub(super) in_lane: bool,
    /// Its log may hold more than was read.
    pub(super) is_behind: bool,
}

/// What is to be read by another client from now on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Moves {
    pub(super) out: Vec<usize>,
    pub(super) into: Vec<usize>,
}

impl Traffic {
    /// So much came of the partition.
    pub(super) fn came(&mut self, index: usize, size: BufferSize) {
        self.grow(index + 1);
        let load = &mut self.0[index];
        load.came = load.came.plus(size);
    }

    fn grow(&mut self, parts: usize) {
        if self.0.len() < parts {
            self.0.resize(parts, Load::default());
        }
    }

    /// Looks at what came since the last look.
    pub(super) fn look(&mut self, parts: usize, standing: impl Fn(usize) -> Standing) -> Moves {
        self.grow(parts);
        let mut moves = Moves::default();
        let (mut active, mut kept) = (0, 0);
        let mut in_lane = Vec::new();
        for (index, load) in self.0.iter_mut().enumerate() {
            let came = std::mem::take(&mut load.came);
            let standing = standing(index);
            load.behind = if standing.is_behind { load.behind.saturating_add(1) } else { 0 };
            // Among thousands even a busy one gets its turn only now and then.
            let is_busy =
                came.records >= BUSY.records || came.bytes >= BUSY.bytes || load.behind >= BEHIND;
            load.quiet = if is_busy { 0 } else { load.quiet.saturating_add(1) };
            active += usize::from(is_busy || standing.is_behind);
            match (standing.in_lane, is_busy) {
                (true, _) if load.quiet >= REST => moves.out.push(index),
                (true, _) => kept += 1,
                (false, true) => moves.into.push(index),
                (false, false) => {}
            }
            in_lane.extend(standing.in_lane.then_some(index));
        }
        if parts < MANY || active > 2 * MOST {
            return Moves { out: in_lane, into: Vec::new() };
        }
        let room = if active > MOST { 0 } else { MOST.saturating_sub(kept) };
        moves.into.truncate(room);
        moves
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const ALL: usize = 1000;

    /// A reader of many partitions.
    #[derive(Default)]
    struct Reader {
        traffic: Traffic,
        in_lane: BTreeSet<usize>,
    }

    impl Reader {
        /// A look after so many records of these partitions; `behind` are others whose ends were not reached.
        fn look(&mut self, busy: std::ops::Range<usize>, records: u64, behind: usize) -> usize {
            let size = BufferSize { records, bytes: records };
            busy.for_each(|index| self.traffic.came(index, size));
            let in_lane = &self.in_lane;
            let standing = |index: usize| Standing {
                in_lane: in_lane.contains(&index),
                is_behind: index >= ALL - behind,
            };
            let moves = self.traffic.look(ALL, standing);
            for index in &moves.out {
                assert!(self.in_lane.remove(index), "{index} was not there");
            }
            for index in moves.into {
                assert!(self.in_lane.insert(index), "{index} was there");
            }
            assert!(self.in_lane.len() <= MOST);
            self.in_lane.len()
        }
    }

    #[test]
    fn few_busy_ones_are_read_apart_until_they_have_rested() {
        let mut reader = Reader::default();
        assert_eq!(reader.look(0..6, 100, 0), 6);
        assert_eq!(reader.look(3..6, 100, 0), 6);
        for _ in 0..REST - 2 {
            assert_eq!(reader.look(3..6, 100, 0), 6);
        }
        assert_eq!(reader.look(3..6, 100, 0), 3);
        assert_eq!(reader.in_lane, [3, 4, 5].into());
    }

    #[test]
    fn many_busy_ones_are_not() {
        let mut reader = Reader::default();
        assert_eq!(reader.look(0..MOST + 1, 100, 0), 0);
        assert_eq!(reader.look(0..MOST, 100, 0), MOST);
        assert_eq!(reader.look(0..2 * MOST, 100, 0), MOST, "they stay while it is not clear");
        assert_eq!(reader.look(0..2 * MOST + 1, 100, 0), 0);
    }

    #[test]
    fn while_many_have_not_reached_their_ends_nothing_is_said_of_them() {
        let mut reader = Reader::default();
        assert_eq!(reader.look(0..6, 100, 500), 0);
        assert_eq!(reader.look(0..6, 100, 0), 6);
        assert_eq!(reader.look(0..6, 100, 500), 0);
    }

    #[test]
    fn one_whose_end_is_not_reached_is_busy_whatever_comes_of_it() {
        let mut reader = Reader::default();
        assert_eq!(reader.look(0..0, 0, 3), 0, "it may be reached at any moment");
        assert_eq!(reader.look(0..0, 0, 3), 3);
        assert_eq!(reader.look(0..0, 0, 0), 3);
        assert_eq!(reader.look(0..0, 0, 1), 3);
    }

    #[test]
    fn a_few_records_a_second_do_not_make_a_partition_busy() {
        let mut reader = Reader::default();
        assert_eq!(reader.look(0..ALL, 3, 0), 0);
        reader.traffic.came(7, BufferSize { records: 1, bytes: 1 << 20 });
        assert_eq!(reader.look(0..0, 0, 0), 1, "one large record does");
    }

    #[test]
    fn there_is_nothing_to_gain_among_few() {
        let mut traffic = Traffic::default();
        traffic.came(0, BufferSize { records: 1000, bytes: 1000 });
        assert_eq!(traffic.look(MANY - 1, |_| Standing::default()), Moves::default());
    }
}
