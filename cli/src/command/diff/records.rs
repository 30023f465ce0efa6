//! Records of two recordings compared one by one, and where they part.
//!
//! However they are cut into batches and parts: only records count, and of them what their hash is made of.

use std::collections::VecDeque;

use lockgate_core::{Batch, Partition, Record};
use lockgate_file_adapter::recording::RecordingError;
use lockgate_file_adapter::tape::TapeParts;

use super::sides::{Cell, Sides};

/// How many records are shown before a difference.
const CONTEXT: usize = 2;

/// One of two sequences of records.
pub(super) struct Side {
    /// What is read and was not compared yet.
    batches: VecDeque<Batch>,
    /// What is to be read when that has come to its end.
    more: Option<TapeParts>,
    /// The number of the part that is read, where parts are read on.
    part: usize,
}

impl Side {
    /// The records of one step.
    pub(super) fn of(batches: Vec<Batch>) -> Self {
        Self { batches: batches.into(), more: None, part: 0 }
    }

    /// The records of all parts that are left, as one sequence.
    pub(super) fn all(parts: TapeParts) -> Self {
        Self { batches: VecDeque::new(), more: Some(parts), part: 0 }
    }

    /// Makes sure that the first batch has records in it, if there are any left.
    fn fill(&mut self) -> Result<(), RecordingError> {
        loop {
            while self.batches.front().is_some_and(Batch::is_empty) {
                self.batches.pop_front();
            }
            if !self.batches.is_empty() {
                return Ok(());
            }
            let Some(next) = self.more.as_mut().and_then(Iterator::next) else { return Ok(()) };
            let (part, batches) = next?;
            (self.part, self.batches) = (part, batches.into());
        }
    }

    fn first(&self) -> Option<Record<'_>> {
        self.batches.front()?.iter().next()
    }

    /// Whether a record is still to come, as far as is read.
    fn has(&self, partition: &Partition, offset: u64) -> bool {
        let mut batches = self.batches.iter().filter(|batch| **batch.partition() == *partition);
        batches.any(|batch| batch.iter().any(|record| record.offset == offset))
    }
}

/// Where two sequences part.
pub(super) struct Parting {
    /// The last records that are the same.
    context: VecDeque<Batch>,
    a: Side,
    b: Side,
    kind: Kind,
}

/// What is different, and which sides have a record to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The record at one place.
    Content,
    /// B lacks what A has.
    MissingInB,
    MissingInA,
    /// The order.
    Order,
    /// There are two records that the other side lacks.
    Others,
}

/// The first difference, `None` if there is none.
///
/// # Errors
/// If a recording cannot be read up to there.
pub(super) fn compare(mut a: Side, mut b: Side) -> Result<Option<Parting>, RecordingError> {
    let mut context = VecDeque::new();
    loop {
        a.fill()?;
        b.fill()?;
        let (Some(x), Some(y)) = (a.batches.front_mut(), b.batches.front_mut()) else {
            let kind = match (a.batches.is_empty(), b.batches.is_empty()) {
                (true, true) => return Ok(None),
                (false, _) => Kind::MissingInB,
                (true, false) => Kind::MissingInA,
            };
            return Ok(Some(Parting { context, a, b, kind }));
        };
        let both = x.len().min(y.len());
        let same = match x.partition() == y.partition() {
            true => x.iter().zip(y.iter()).position(|(x, y)| !is_same(&x, &y)).unwrap_or(both),
            false => 0,
        };
        keep_last(&mut context, x.take_front(same));
        let _ = y.take_front(same);
        if same < both {
            let kind = kind(&a, &b);
            return Ok(Some(Parting { context, a, b, kind }));
        }
    }
}

/// Not the leader's epoch: it is of the cluster, and no part of the hash either.
fn is_same(a: &Record<'_>, b: &Record<'_>) -> bool {
    let place = |record: &Record<'_>| (record.offset, record.end_offset, record.timestamp);
    place(a) == place(b)
        && a.key == b.key
        && a.value == b.value
        && a.headers.iter().eq(b.headers.iter())
}

/// Adds the last records of `front`, and keeps as many as are shown.
fn keep_last(context: &mut VecDeque<Batch>, mut front: Batch) {
    let _ = front.take_front(front.len().saturating_sub(CONTEXT));
    while !front.is_empty() {
        context.push_back(front.take_front(1));
    }
    while context.len() > CONTEXT {
        context.pop_front();
    }
}

/// Of two sides that both have a record, and not the same one.
fn kind(a: &Side, b: &Side) -> Kind {
    let (Some(x), Some(y)) = (a.first(), b.first()) else { return Kind::Others };
    if x.partition == y.partition && x.offset == y.offset {
        return Kind::Content;
    }
    match (b.has(x.partition, x.offset), a.has(y.partition, y.offset)) {
        (false, true) => Kind::MissingInB,
        (true, false) => Kind::MissingInA,
        (true, true) => Kind::Order,
        (false, false) => Kind::Others,
    }
}

impl Parting {
    /// The difference as it is shown, in the step or part `place`.
    pub(super) fn to_sides(&self, place: &str) -> Sides {
        let (a, b) = match self.kind {
            Kind::MissingInB => (self.a.first(), None),
            Kind::MissingInA => (None, self.b.first()),
            _ => (self.a.first(), self.b.first()),
        };
        let at = |record: &Record<'_>| format!("{} offset {}", record.partition, record.offset);
        let (at_a, at_b) = (a.as_ref().map(at), b.as_ref().map(at));
        let where_a = at_a.as_deref().or(at_b.as_deref()).unwrap_or_default();
        let where_b = at_b.as_deref().unwrap_or_default();
        let what = match self.kind {
            Kind::Content => format!("{where_a} differs"),
            Kind::MissingInB => format!("{where_a} is missing in B"),
            Kind::MissingInA => format!("{where_a} is missing in A"),
            Kind::Order => format!("the order differs: A has {where_a}, where B has {where_b}"),
            Kind::Others => format!("A has {where_a}, where B has {where_b}"),
        };
        let mut sides = Sides::new(format!("{place}: {what}"));
        for record in self.context.iter().flat_map(Batch::iter) {
            let value = Cell::Bytes(record.value.map(<[u8]>::to_vec));
            sides.row(at(&record), value.clone(), value);
        }
        rows(&mut sides, a, b);
        sides
    }

    /// The number of the part that is read, where sequences of many parts are compared.
    pub(super) fn part(&self) -> usize {
        match self.kind {
            Kind::MissingInA => self.b.part,
            _ => self.a.part,
        }
    }
}

/// The record of either side, field by field. Fields that neither has are left out, but for the value.
pub(super) fn rows(sides: &mut Sides, a: Option<Record<'_>>, b: Option<Record<'_>>) {
    let field = |of: &dyn Fn(&Record<'_>) -> Cell| {
        [&a, &b].map(|record| record.as_ref().map_or_else(Cell::missing, of))
    };
    let mut row = |label: &str, [a, b]: [Cell; 2]| {
        let has_any =
            [&a, &b].iter().any(|cell| **cell != Cell::Bytes(None) && **cell != Cell::missing());
        if has_any || label == "value" {
            sides.row(label, a, b);
        }
    };
    let bytes = |bytes: Option<&[u8]>| Cell::Bytes(bytes.map(<[u8]>::to_vec));
    row("partition", field(&|record| bytes(Some(record.partition.to_string().as_bytes()))));
    row("offset", field(&|record| Cell::text(record.offset)));
    row("end_offset", field(&|record| Cell::text(record.end_offset)));
    row(
        "timestamp_ms",
        field(&|record| match record.timestamp {
            Some(timestamp) => Cell::text(format!("{} ({:?})", timestamp.ms, timestamp.kind)),
            None => Cell::Bytes(None),
        }),
    );
    row("key", field(&|record| bytes(record.key)));
    row("value", field(&|record| bytes(record.value)));
    let headers = |record: &Option<Record<'_>>| record.as_ref().map_or(0, |r| r.headers.len());
    for number in 0..headers(&a).max(headers(&b)) {
        let cell = |record: &Option<Record<'_>>| {
            let header = record.as_ref().and_then(|record| record.headers.iter().nth(number));
            header.map_or_else(Cell::missing, |header| {
                let value = header.value.map_or(&b"(null)"[..], |value| value);
                Cell::Bytes(Some([header.name, b"=", value].concat()))
            })
        };
        row(&format!("header {}", number + 1), [cell(&a), cell(&b)]);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use lockgate_core::{BatchBuilder, NewRecord};

    /// Records of one partition: offset and value.
    fn batch(partition: u32, records: &[(u64, &str)]) -> Batch {
        let partition = Partition { source: "orders".into(), number: Some(partition) };
        let mut batch = BatchBuilder::new(Arc::new(partition));
        for (offset, value) in records {
            let value = Some(value.as_bytes());
            batch.push(NewRecord { offset: *offset, value, ..NewRecord::default() }).unwrap();
        }
        batch.build()
    }

    fn shown(a: Vec<Batch>, b: Vec<Batch>) -> String {
        let parting = compare(Side::of(a), Side::of(b)).unwrap();
        parting.map_or("equal".into(), |parting| {
            parting.to_sides("in, step 5").to_text(["a".into(), "b".into()], 80)
        })
    }

    const FOUR: [(u64, &str); 4] = [(1, "one"), (2, "two"), (3, "three"), (4, "four")];

    #[test]
    fn batches_do_not_count() {
        let cut = vec![batch(0, &[]), batch(0, &FOUR[..1]), batch(0, &FOUR[1..])];
        assert_eq!(shown(vec![batch(0, &FOUR)], cut), "equal");
        assert_eq!(shown(vec![], vec![batch(0, &[])]), "equal");
    }

    #[test]
    fn a_changed_record_is_shown_after_those_before_it() {
        let mut changed = FOUR;
        changed[3].1 = "vier";
        insta::assert_snapshot!(shown(vec![batch(0, &FOUR)], vec![batch(0, &changed)]), @"
        in, step 5: orders[0] offset 4 differs
                                A: a                         B: b
          orders[0] offset 2    two                          two
          orders[0] offset 3    three                        three
          partition             orders[0]                    orders[0]
          offset                4                            4
          end_offset            5                            5
        * value                 four                         vier
        ");
    }

    #[test]
    fn a_missing_record_is_told_from_two_that_differ() {
        let whole = || vec![batch(0, &FOUR)];
        let first = |text: String| text.lines().next().unwrap().to_owned();
        let without = vec![batch(0, &[FOUR[0], FOUR[2], FOUR[3]])];
        let lost = first(shown(whole(), without.clone()));
        let added = first(shown(without, whole()));
        let last = first(shown(whole(), vec![batch(0, &FOUR[..3])]));
        let swapped = first(shown(
            vec![batch(0, &FOUR), batch(1, &FOUR)],
            vec![batch(1, &FOUR), batch(0, &FOUR)],
        ));
        let others = first(shown(whole(), vec![batch(7, &[(9, "x")])]));
        insta::assert_snapshot!([lost, added, last, swapped, others].join("\n"), @"
        in, step 5: orders[0] offset 2 is missing in B
        in, step 5: orders[0] offset 2 is missing in A
        in, step 5: orders[0] offset 4 is missing in B
        in, step 5: the order differs: A has orders[0] offset 1, where B has orders[1] offset 1
        in, step 5: A has orders[0] offset 1, where B has orders[7] offset 9
        ");
    }

    #[test]
    fn nothing_is_not_empty() {
        let record = |value| {
            let mut batch =
                BatchBuilder::new(Arc::new(Partition { source: "t".into(), number: None }));
            let headers = [lockgate_core::Header { name: b"h", value }];
            let record = NewRecord { offset: 3, key: Some(b"k"), value, ..NewRecord::default() };
            batch.push(NewRecord { headers: &headers, ..record }).unwrap();
            vec![batch.build()]
        };
        insta::assert_snapshot!(shown(record(None), record(Some(b""))), @r#"
        in, step 5: t offset 3 differs
                                A: a                         B: b
          partition             t                            t
          offset                3                            3
          end_offset            4                            4
          key                   k                            k
        * value                 null                         ""
        * header 1              h=(null)                     h=
        "#);
    }
}
