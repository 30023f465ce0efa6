//! What was done and found, as a table.

use std::collections::BTreeMap;

use crate::compare::Comparison;
use crate::log::Stage;
use crate::schedule::Kind;

/// Of one pair, or of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) runs: u64,
    pub(crate) kills: u64,
    /// Kills inside a checkpoint, by its stages.
    pub(crate) inside: [u64; 3],
    pub(crate) others: BTreeMap<Kind, u64>,
    /// What was planned, and always came too late.
    pub(crate) missed: u64,
    pub(crate) records: u64,
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    /// Where double is what is promised.
    pub(crate) allowed: u64,
    pub(crate) breaches: u64,
}

impl Tally {
    pub(crate) fn killed(&mut self, stage: Option<Stage>) {
        self.kills += 1;
        if let Some(stage) = stage {
            self.inside[stage as usize] += 1;
        }
    }

    pub(crate) fn compared(&mut self, found: &Comparison, may_double: bool) {
        self.records += found.expected;
        self.lost += found.lost;
        if may_double {
            self.allowed += found.doubled;
        } else {
            self.doubled += found.doubled;
        }
    }

    pub(crate) fn add(&mut self, other: &Tally) {
        self.runs += other.runs;
        self.kills += other.kills;
        for (inside, more) in self.inside.iter_mut().zip(other.inside) {
            *inside += more;
        }
        for (kind, times) in &other.others {
            *self.others.entry(*kind).or_default() += times;
        }
        self.missed += other.missed;
        self.records += other.records;
        self.lost += other.lost;
        self.doubled += other.doubled;
        self.allowed += other.allowed;
        self.breaches += other.breaches;
    }

    fn cells(&self) -> Vec<String> {
        let [prepare, store, complete] = self.inside;
        let inside = prepare + store + complete;
        let mut cells = vec![
            self.runs.to_string(),
            self.kills.to_string(),
            if inside == 0 { "0".into() } else { format!("{inside}={prepare}+{store}+{complete}") },
        ];
        for kind in Kind::OTHERS {
            cells.push(self.others.get(&kind).copied().unwrap_or_default().to_string());
        }
        for number in [self.records, self.lost, self.doubled, self.allowed, self.breaches] {
            cells.push(number.to_string());
        }
        cells
    }
}

/// One line for each pair, and one for all of them.
pub(crate) fn table(pairs: &[(String, Tally)]) -> String {
    let mut head: Vec<String> = ["pair", "runs", "kills", "in checkpoint"].map(Into::into).into();
    head.extend(Kind::OTHERS.map(|kind| kind.name().to_owned()));
    head.extend(["records", "lost", "doubled", "doubled, allowed", "breaches"].map(Into::into));
    let mut total = Tally::default();
    let mut rows = vec![head];
    for (name, tally) in pairs {
        total.add(tally);
        rows.push([vec![name.clone()], tally.cells()].concat());
    }
    rows.push([vec!["total".into()], total.cells()].concat());
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or_default();
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let width = *width;
            text +=
                &if column == 0 { format!("{cell:<width$}") } else { format!("  {cell:>width$}") };
        }
        text = text.trim_end().to_owned() + "\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_is_the_sum() {
        let mut one = Tally { runs: 2, ..Tally::default() };
        one.killed(None);
        one.killed(Some(Stage::Store));
        one.others.insert(Kind::Clock, 3);
        let found = Comparison { expected: 10, doubled: 2, ..Comparison::default() };
        one.compared(&found, false);
        let mut other = one.clone();
        other.compared(&found, true);
        let table = table(&[("a-to-b".into(), one), ("c-to-d".into(), other)]);
        let lines: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines.len(), 4);
        let expected = "total 4 4 2=0+2+0 0 0 0 0 0 6 0 30 0 4 2 0";
        assert_eq!(lines[3].join(" "), expected);
        assert_eq!(lines[1][0], "a-to-b");
    }
}
