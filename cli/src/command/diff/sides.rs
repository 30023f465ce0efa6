//! Two things side by side. Pure.

use crate::excerpt::{cut, cut_front, excerpt, excerpt_around, padded};

/// How wide the names of rows are.
const LABEL: usize = 20;
const GAP: &str = "  ";

/// A difference: what it is, and a few rows that show it.
#[derive(Debug)]
pub(super) struct Sides {
    /// One sentence.
    what: String,
    rows: Vec<Row>,
}

#[derive(Debug)]
struct Row {
    label: String,
    cells: [Cell; 2],
    differs: bool,
}

/// What stands on one side of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// Bytes of a record or a file; `None` is null.
    Bytes(Option<Vec<u8>>),
    /// Words of ours.
    Text(String),
}

impl Cell {
    pub(super) fn text(text: impl ToString) -> Self {
        Self::Text(text.to_string())
    }

    pub(super) fn missing() -> Self {
        Self::text("(missing)")
    }

    /// The cell in at most `width` columns, with the byte `at` in them.
    fn show(&self, at: usize, width: usize) -> String {
        match self {
            Self::Bytes(bytes) => excerpt_around(bytes.as_deref(), at, width),
            Self::Text(text) => cut(text, width),
        }
    }
}

impl Sides {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), rows: Vec::new() }
    }

    /// Adds a row; whether its sides differ is seen.
    pub(super) fn row(&mut self, label: impl Into<String>, a: Cell, b: Cell) {
        let differs = a != b;
        self.rows.push(Row { label: label.into(), cells: [a, b], differs });
    }

    /// The sentence and the rows, `width` columns wide, under the names of the sides. Rows that differ are marked.
    pub(super) fn to_text(&self, names: [String; 2], width: usize) -> String {
        let side = width.saturating_sub(2 + LABEL + 2 * GAP.len()) / 2;
        let names = ["A: ", "B: "].into_iter().zip(names).map(|(letter, name)| {
            let name = excerpt(Some(name.as_bytes()), usize::from(u16::MAX));
            format!("{letter}{}", cut_front(&name, side - letter.len()))
        });
        let line = |mark: &str, label: &str, cells: [String; 2]| {
            let label = padded(&cut_front(label, LABEL), LABEL);
            let [a, b] = cells;
            let line = format!("{mark} {label}{GAP}{}{GAP}{b}", padded(&a, side));
            format!("{}\n", line.trim_end())
        };
        let names: Vec<String> = names.collect();
        let mut text = format!("{}\n", self.what);
        text += &line(" ", "", [names[0].clone(), names[1].clone()]);
        for Row { label, cells, differs } in &self.rows {
            let at = match cells {
                [Cell::Bytes(Some(a)), Cell::Bytes(Some(b))] => common(a, b),
                _ => 0,
            };
            let mark = if *differs { "*" } else { " " };
            text += &line(mark, label, cells.each_ref().map(|cell| cell.show(at, side)));
        }
        text
    }
}

/// How many bytes are the same in front.
fn common(a: &[u8], b: &[u8]) -> usize {
    let differs = a.iter().zip(b).position(|(a, b)| a != b);
    match differs {
        Some(at) => at,
        None if a.len() == b.len() => 0,
        None => a.len().min(b.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_side_by_side_with_the_difference_in_sight() {
        let bytes = |text: &str| Cell::Bytes(Some(text.into()));
        let mut sides = Sides::new("all: the first difference is in step 5");
        sides.row("offset 4", bytes("before"), bytes("before"));
        let long = "a long value, of which only the end is different: ";
        sides.row("value", bytes(&format!("{long}one")), bytes(&format!("{long}two")));
        sides.row("key", Cell::Bytes(None), bytes("null"));
        sides.row("", bytes(""), Cell::missing());
        sides.row("a/very/long/path/of/a/file.log", bytes("\x1b[2J\r"), Cell::text(12));
        let names = ["a".to_owned(), "a/directory/with/a/long/name/b-0001.parquet".to_owned()];
        let text = sides.to_text(names, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text, @r#"
        all: the first difference is in step 5
                                A: a                         B: …ong/name/b-0001.parquet
          offset 4              before                       before
        * value                 …fferent: one                …fferent: two
        * key                   null                         "null"
        *                       ""                           (missing)
        * …/path/of/a/file.log  \u{1b}[2J\r                  12
        "#);
    }

    #[test]
    fn differences_lie_where_the_bytes_part() {
        let cases = [("", "", 0), ("ab", "ab", 0), ("ab", "abc", 2), ("abx", "aby", 2)];
        for (a, b, at) in cases {
            assert_eq!(common(a.as_bytes(), b.as_bytes()), at, "{a} {b}");
        }
    }
}
