//! Whether what came out is what went in: nothing lost, nothing doubled, each source in its order.

use std::collections::BTreeMap;

use crate::record;

/// Takes the records of an output, one after the other.
pub(crate) struct Comparer {
    /// How often each record of each source was there.
    seen: Vec<Vec<u8>>,
    /// The last new record of a source in a stream.
    last: BTreeMap<(u32, u32), u32>,
    found: Comparison,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    /// Records that there should be.
    pub(crate) expected: u64,
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    /// Records that came after a later one of the same source in the same stream.
    pub(crate) disordered: u64,
    /// What nobody has written.
    pub(crate) foreign: u64,
    /// The first of what is wrong, in words.
    pub(crate) example: Option<String>,
}

impl Comparer {
    /// For sources with so many records each.
    pub(crate) fn new(each: &[u32]) -> Self {
        let found = Comparison {
            expected: each.iter().map(|records| u64::from(*records)).sum(),
            ..Comparison::default()
        };
        let seen = each.iter().map(|records| vec![0; *records as usize]).collect();
        Self { seen, last: BTreeMap::new(), found }
    }

    /// The next record of a stream: of a file, or of a partition.
    pub(crate) fn take(&mut self, stream: u32, record: &[u8]) {
        let place = record::parse(record);
        let seen = place.and_then(|(source, number)| {
            self.seen.get_mut(source as usize)?.get_mut(number as usize)
        });
        let (Some((source, number)), Some(seen)) = (place, seen) else {
            self.found.foreign += 1;
            let start = String::from_utf8_lossy(&record[..record.len().min(40)]).into_owned();
            self.example(|| format!("in stream {stream}, nobody wrote {start:?}"));
            return;
        };
        let is_new = *seen == 0;
        *seen = seen.saturating_add(1);
        if !is_new {
            self.found.doubled += 1;
            self.example(|| format!("record {number} of source {source} is there again"));
            return;
        }
        let last = self.last.entry((stream, source)).or_insert(number);
        if number < *last {
            let last = *last;
            self.found.disordered += 1;
            self.example(|| format!("record {number} of source {source} comes after {last}"));
        } else {
            *last = number;
        }
    }

    /// The lines of a stream.
    pub(crate) fn take_lines(&mut self, stream: u32, text: &[u8]) {
        let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
        // What follows the last newline is nothing, or a part of a record.
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        lines.into_iter().for_each(|line| self.take(stream, line));
    }

    /// How many records are there, each counted once.
    pub(crate) fn present(&self) -> u64 {
        self.seen.iter().flatten().filter(|seen| **seen > 0).count() as u64
    }

    /// Nothing more comes.
    pub(crate) fn end(mut self) -> Comparison {
        self.found.lost = self.found.expected - self.present();
        for (source, seen) in self.seen.iter().enumerate() {
            if let Some(number) = seen.iter().position(|seen| *seen == 0) {
                let text = format!("record {number} of source {source} is not there");
                self.found.example.get_or_insert(text);
            }
        }
        self.found
    }

    fn example(&mut self, text: impl FnOnce() -> String) {
        if self.found.example.is_none() {
            self.found.example = Some(text());
        }
    }
}

impl Comparison {
    /// What must not be.
    pub(crate) fn breach(&self, may_double: bool) -> Option<String> {
        let doubled = if may_double { 0 } else { self.doubled };
        if self.lost + doubled + self.disordered + self.foreign == 0 {
            return None;
        }
        let Self { expected, lost, doubled, disordered, foreign, .. } = self;
        let example = self.example.as_deref().unwrap_or_default();
        Some(format!(
            "of {expected} records {lost} are lost, {doubled} doubled, {disordered} out of order; {foreign} are \
             nobody's; {example}"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of two sources of three records, given as source and number in one stream.
    fn compared(records: &[(u32, u32)]) -> Comparison {
        let mut comparer = Comparer::new(&[3, 3]);
        for (source, number) in records {
            let mut text = Vec::new();
            record::write(&mut text, *source, *number);
            comparer.take(0, &text);
        }
        comparer.end()
    }

    /// Lost, doubled, out of order.
    #[track_caller]
    fn check(records: &[(u32, u32)], expected: [u64; 3]) {
        let found = compared(records);
        assert_eq!([found.lost, found.doubled, found.disordered], expected, "{found:?}");
        assert_eq!(found.breach(false).is_some(), expected != [0; 3], "{found:?}");
    }

    #[test]
    fn what_is_whole_is_fine_however_sources_mix() {
        check(&[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)], [0, 0, 0]);
        check(&[(1, 0), (0, 0), (0, 1), (1, 1), (1, 2), (0, 2)], [0, 0, 0]);
    }

    #[test]
    fn a_lost_record_is_found() {
        check(&[(0, 0), (0, 2), (1, 0), (1, 1), (1, 2)], [1, 0, 0]);
        check(&[(0, 0), (0, 1), (0, 2), (1, 0), (1, 1)], [1, 0, 0]);
        check(&[], [6, 0, 0]);
    }

    #[test]
    fn a_doubled_record_is_found() {
        check(&[(0, 0), (0, 1), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)], [0, 1, 0]);
        // Gone back by two records, as after a crash: doubled, not out of order.
        check(&[(0, 0), (0, 1), (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)], [0, 2, 0]);
    }

    #[test]
    fn a_swapped_record_is_found() {
        check(&[(0, 1), (0, 0), (0, 2), (1, 0), (1, 1), (1, 2)], [0, 0, 1]);
    }

    #[test]
    fn doubled_records_are_fine_where_that_is_the_promise() {
        let found = compared(&[(0, 0), (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]);
        assert!(found.breach(true).is_none() && found.breach(false).is_some());
        let found = compared(&[(0, 0), (0, 0), (0, 2), (1, 0), (1, 1), (1, 2)]);
        assert!(found.breach(true).is_some(), "a lost one is not made up for by a doubled one");
    }

    #[test]
    fn what_nobody_wrote_is_found() {
        let mut comparer = Comparer::new(&[2]);
        let mut text = record::lines(0, 0..2);
        // The last record is cut off, and one of another source follows.
        text.truncate(text.len() - 2);
        comparer.take_lines(0, &text);
        comparer.take_lines(0, &record::lines(7, 0..1));
        let found = comparer.end();
        assert_eq!((found.foreign, found.lost, found.disordered), (2, 1, 0));
        assert!(found.breach(true).is_some());
    }
}
