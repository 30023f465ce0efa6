//! Records as a table, for people.
//!
//! Pure. A block of rows is laid out at a time; only what can be seen of them is kept, so that a table may be as long as
//! a recording.

use std::time::{Duration, UNIX_EPOCH};

use lockgate_core::{Record, Timestamp};

use crate::excerpt::{cut, cut_front, excerpt, padded};

const NAMES: [&str; 7] = ["step", "partition", "offset", "timestamp", "key", "value", "headers"];
/// Columns that can be cut.
const PARTITION: usize = 1;
const ELASTIC: [usize; 4] = [PARTITION, 4, 5, 6];
/// Shown also where it is null throughout.
const VALUE: usize = 5;
/// Columns of numbers.
const RIGHT: [usize; 2] = [0, 2];
const GAP: &str = "  ";
/// How many rows are laid out together.
const BLOCK_ROWS: usize = 1000;
/// The end of the year 9999, up to which times have a name.
const LAST_MS: i64 = 253_402_300_799_999;

/// A table that is `width` columns wide, if its numbers fit.
pub(super) struct Table {
    width: usize,
    rows: Vec<[Option<String>; 7]>,
}

impl Table {
    pub(super) fn new(width: usize) -> Self {
        Self { width, rows: Vec::new() }
    }

    pub(super) fn push(&mut self, step: Option<u64>, record: &Record<'_>) {
        // One more than fits, so that what is cut is seen to be.
        let width = self.width + 1;
        let headers = (!record.headers.is_empty()).then(|| {
            let mut text = String::new();
            for header in record.headers.iter() {
                if text.len() > 4 * width {
                    break;
                }
                let separator = if text.is_empty() { "" } else { ", " };
                let (name, value) =
                    (excerpt(Some(header.name), width), excerpt(header.value, width));
                text += &format!("{separator}{name}={value}");
            }
            cut(&text, width)
        });
        let partition = record.partition.to_string();
        self.rows.push([
            step.map(|step| step.to_string()),
            Some(partition.chars().flat_map(escaped).collect()),
            Some(record.offset.to_string()),
            record.timestamp.map(utc),
            record.key.map(|key| excerpt(Some(key), width)),
            record.value.map(|value| excerpt(Some(value), width)),
            headers,
        ]);
    }

    /// Whether it is time to write what there is.
    pub(super) fn is_full(&self) -> bool {
        self.rows.len() >= BLOCK_ROWS
    }

    /// Lays out the rows so far, under their names. Columns with nothing in them are left out.
    pub(super) fn take_text(&mut self) -> String {
        let rows = std::mem::take(&mut self.rows);
        if rows.is_empty() {
            return String::new();
        }
        let has_any = |column: &usize| rows.iter().any(|row| row[*column].is_some());
        let columns: Vec<usize> =
            (0..NAMES.len()).filter(|column| *column == VALUE || has_any(column)).collect();
        let widths = widths(&columns, &rows, self.width);
        let mut text = String::new();
        let names = NAMES.map(|name| Some(name.to_owned()));
        for row in [&names].into_iter().chain(&rows) {
            let mut line = String::new();
            for (column, width) in columns.iter().zip(&widths) {
                let is_bare = *column == 0 || *column == 6;
                let nothing = if is_bare { "" } else { "null" };
                let cell = row[*column].as_deref().unwrap_or(nothing);
                let cell = match *column {
                    PARTITION => cut_front(cell, *width),
                    _ => cut(cell, *width),
                };
                let separator = if line.is_empty() { "" } else { GAP };
                let cell = match RIGHT.contains(column) {
                    true => format!("{cell:>width$}"),
                    false => padded(&cell, *width),
                };
                line += &format!("{separator}{cell}");
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

/// How wide each column is: as wide as it needs, unless all together need more than there is.
fn widths(columns: &[usize], rows: &[[Option<String>; 7]], total: usize) -> Vec<usize> {
    let needed = |column: &usize| {
        let cells = rows.iter().map(|row| row[*column].as_deref().map_or(4, |c| c.chars().count()));
        cells.chain([NAMES[*column].len()]).max().unwrap_or_default()
    };
    let mut widths: Vec<usize> = columns.iter().map(needed).collect();
    let is_elastic = |number: &usize| ELASTIC.contains(&columns[*number]);
    let gaps = GAP.len() * columns.len().saturating_sub(1);
    let stiff: usize = (0..columns.len()).filter(|n| !is_elastic(n)).map(|n| widths[n]).sum();
    let mut room = total.saturating_sub(gaps + stiff);
    let mut elastic: Vec<usize> = (0..columns.len()).filter(is_elastic).collect();
    // Those that need least are served first, so that what they leave is for the others.
    elastic.sort_by_key(|number| widths[*number]);
    for (served, number) in elastic.iter().enumerate() {
        let share = room / (elastic.len() - served);
        widths[*number] = widths[*number].min(share.max(NAMES[columns[*number]].len()));
        room = room.saturating_sub(widths[*number]);
    }
    widths
}

/// A control character in a name does not reach the terminal.
fn escaped(char: char) -> impl Iterator<Item = char> {
    let is_control = char.is_control();
    let escape = char.escape_default();
    let (escape, plain) = if is_control { (Some(escape), None) } else { (None, Some(char)) };
    plain.into_iter().chain(escape.into_iter().flatten())
}

/// Date and time in UTC where they have a name.
fn utc(timestamp: Timestamp) -> String {
    match u64::try_from(timestamp.ms) {
        Ok(ms) if timestamp.ms <= LAST_MS => {
            humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_millis(ms)).to_string()
        }
        _ => format!("{} ms", timestamp.ms),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::Arc;

    use bytes::Bytes;
    use lockgate_core::{Batch, BatchBuilder, Framing, Header, NewRecord, Partition};

    use super::*;

    /// Records of a topic, in which everything may be missing.
    pub(in super::super) fn samples() -> Batch {
        let orders = Partition { source: "orders".into(), number: Some(3) };
        let mut batch = BatchBuilder::new(Arc::new(orders));
        let headers = [
            Header { name: b"trace", value: Some(b"\xff\x00") },
            Header { name: b"trace", value: None },
        ];
        let timestamp = Some(Timestamp::created(1_700_000_000_123));
        let full = NewRecord { offset: 7, timestamp, leader_epoch: Some(2), ..Default::default() };
        let full =
            NewRecord { key: Some(b"k"), value: Some(b"{\"id\": 7}"), headers: &headers, ..full };
        batch.push(full).unwrap();
        let empty =
            NewRecord { offset: 8, key: Some(b""), value: Some(b"null"), ..NewRecord::default() };
        batch.push(empty).unwrap();
        batch.push(NewRecord { offset: 12, ..NewRecord::default() }).unwrap();
        let bytes = NewRecord { offset: 13, value: Some(b"\xf0\x9f"), ..NewRecord::default() };
        batch
            .push(NewRecord {
                timestamp: Some(Timestamp::created(-1)),
                key: Some(b"\x1b"),
                ..bytes
            })
            .unwrap();
        batch.build()
    }

    fn lines(source: &str, text: &'static str) -> Batch {
        let partition = Arc::new(Partition { source: source.into(), number: None });
        let ends = text.split_inclusive('\n').scan(0, |end, line| {
            *end += line.len() as u32;
            Some(*end)
        });
        let ends = ends.collect();
        Batch::adjoining(partition, Framing::Lines, Bytes::from_static(text.as_bytes()), 0, 0, ends)
    }

    fn table(width: usize, step: Option<u64>, batch: &Batch) -> String {
        let mut table = Table::new(width);
        batch.iter().for_each(|record| table.push(step, &record));
        let text = table.take_text();
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        assert_eq!(table.take_text(), "");
        text
    }

    #[test]
    fn a_topic_has_all_columns() {
        insta::assert_snapshot!(table(100, Some(5), &samples()), @r#"
        step  partition  offset  timestamp                 key     value      headers
           5  orders[3]       7  2023-11-14T22:13:20.123Z  k       {"id": 7}  trace=\xff\0, trace=null
           5  orders[3]       8  null                      ""      "null"
           5  orders[3]      12  null                      null    null
           5  orders[3]      13  -1 ms                     \u{1b}  \xf0\x9f
        "#);
    }

    #[test]
    fn what_does_not_fit_is_cut() {
        insta::assert_snapshot!(table(80, Some(5), &samples()), @r#"
        step  partition  offset  timestamp                 key     value      headers
           5  orders[3]       7  2023-11-14T22:13:20.123Z  k       {"id": 7}  trace=\xf…
           5  orders[3]       8  null                      ""      "null"
           5  orders[3]      12  null                      null    null
           5  orders[3]      13  -1 ms                     \u{1b}  \xf0\x9f
        "#);
    }

    #[test]
    fn a_file_has_few_columns_and_long_paths() {
        let path = "/a/path/that/is/longer/than/there/is/room/for/in/a/line/of/eighty/in.log";
        let long = "one\ntwo\r\n\n\u{1b}[2Jand a line that is longer than there is room for in the table, too\n";
        insta::assert_snapshot!(table(80, Some(12), &lines(path, long)), @r#"
        step  partition                         offset  value
          12  …/for/in/a/line/of/eighty/in.log       0  one
          12  …/for/in/a/line/of/eighty/in.log       4  two
          12  …/for/in/a/line/of/eighty/in.log       9  ""
          12  …/for/in/a/line/of/eighty/in.log      10  \u{1b}[2Jand a line that is lon…
        "#);
        insta::assert_snapshot!(table(80, None, &lines("in\n.log", "one\n")), @r"
        partition  offset  value
        in\n.log        0  one
        ");
    }

    #[test]
    fn times_without_a_name_are_numbers() {
        let shown = [0, LAST_MS, LAST_MS + 1, -1].map(|ms| utc(Timestamp::created(ms)));
        insta::assert_debug_snapshot!(shown, @r#"
        [
            "1970-01-01T00:00:00.000Z",
            "9999-12-31T23:59:59.999Z",
            "253402300800000 ms",
            "-1 ms",
        ]
        "#);
    }
}
