//! What was measured, as a table for people and as JSON for programs.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::chart;
use crate::machine::{Machine, Versions};
use crate::site::Site;
use crate::spread::Spread;

/// All of one run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) machine: Machine,
    pub(crate) versions: Versions,
    /// How many rounds count.
    pub(crate) rounds: u32,
    /// What the amounts were multiplied by.
    pub(crate) size: f64,
    pub(crate) rows: Vec<Row>,
}

/// One comparison, or one value without any.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The benchmark's name on the command line.
    pub(crate) benchmark: &'static str,
    /// Which of its cases, with the amounts.
    pub(crate) case: String,
    /// What `ours` and `theirs` are counted in.
    pub(crate) unit: &'static str,
    /// Of lockgate; none where it could not be had.
    pub(crate) ours: Option<Spread>,
    /// What is compared with.
    pub(crate) yardstick: Option<String>,
    pub(crate) theirs: Option<Spread>,
    /// Of speeds: above 1 lockgate is the faster one.
    pub(crate) ratio: Option<Spread>,
    pub(crate) aim: Option<Aim>,
    /// Whether the median meets the aim.
    pub(crate) met: Option<bool>,
    /// What else to know, such as why there is no value.
    pub(crate) note: Option<String>,
}

/// What is wanted.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Aim {
    /// Of the ratio.
    AtLeast(f64),
    /// Of our own value.
    Below(f64),
}

impl Row {
    /// Speeds of both.
    pub(crate) fn compared(
        benchmark: &'static str,
        case: impl Into<String>,
        unit: &'static str,
        ours: &Spread,
        (yardstick, theirs): (&str, &Spread),
        aim: Option<f64>,
    ) -> Self {
        let ratio = Spread::ratio(ours, theirs);
        Self {
            met: aim.map(|aim| ratio.median >= aim),
            aim: aim.map(Aim::AtLeast),
            ratio: Some(ratio),
            yardstick: Some(yardstick.to_owned()),
            theirs: Some(theirs.clone()),
            ..Self::told(benchmark, case, unit, ours.clone())
        }
    }

    /// A value of ours, or of another program where that is what the case says.
    pub(crate) fn told(
        benchmark: &'static str,
        case: impl Into<String>,
        unit: &'static str,
        ours: Spread,
    ) -> Self {
        Self { ours: Some(ours), ..Self::missing(benchmark, case, unit, None) }
    }

    /// A value that could not be had, and why.
    pub(crate) fn missing(
        benchmark: &'static str,
        case: impl Into<String>,
        unit: &'static str,
        why: Option<String>,
    ) -> Self {
        Self {
            benchmark,
            case: case.into(),
            unit,
            ours: None,
            yardstick: None,
            theirs: None,
            ratio: None,
            aim: None,
            met: None,
            note: why,
        }
    }

    /// The same with a limit that the value should stay below.
    pub(crate) fn below(mut self, limit: f64) -> Self {
        self.aim = Some(Aim::Below(limit));
        self.met = self.ours.as_ref().map(|ours| ours.median < limit);
        self
    }

    /// The same with something to know.
    pub(crate) fn noted(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    fn verdict(&self) -> String {
        let aim = match self.aim {
            Some(Aim::AtLeast(aim)) => format!(">= {aim}"),
            Some(Aim::Below(aim)) => format!("< {aim}"),
            None => return String::new(),
        };
        match self.met {
            Some(true) => format!("{aim}: met"),
            Some(false) => format!("{aim}: MISSED"),
            None => aim,
        }
    }
}

impl Report {
    pub(crate) fn new(site: &Site) -> Self {
        Self {
            machine: Machine::here(),
            versions: Versions::here(site),
            rounds: site.rounds,
            size: site.size,
            rows: Vec::new(),
        }
    }

    /// The machine and the versions in a few lines.
    pub(crate) fn facts(&self) -> [String; 3] {
        let Self { machine, versions, rounds, size, .. } = self;
        [
            format!(
                "{}, {} cores, {} GiB, Linux {}",
                machine.cpu, machine.cores, machine.memory_gib, machine.kernel
            ),
            format!(
                "{}, {}, librdkafka {}, Kafka {}",
                versions.lockgate, versions.rustc, versions.librdkafka, versions.kafka
            ),
            format!("size {size}, {rounds} rounds: median (lowest to highest)"),
        ]
    }

    pub(crate) fn table(&self) -> String {
        let mut lines =
            vec![["benchmark", "case", "lockgate", "yardstick", "ratio", "aim"].map(str::to_owned)];
        for row in &self.rows {
            let value = |spread: &Spread| {
                let space = if row.unit.starts_with('B') { "" } else { " " };
                format!("{}{space}{}", short(spread.median), row.unit)
            };
            let ours = row.ours.as_ref().map_or("-".into(), |ours| {
                if row.theirs.is_some() {
                    value(ours)
                } else {
                    format!("{}{}", value(ours), range(ours))
                }
            });
            let theirs = match (&row.yardstick, &row.theirs) {
                (Some(name), Some(theirs)) => format!("{name}: {}", value(theirs)),
                _ => String::new(),
            };
            let ratio = row.ratio.as_ref();
            let ratio = ratio
                .map_or(String::new(), |ratio| format!("{}{}", short(ratio.median), range(ratio)));
            lines.push([
                row.benchmark.into(),
                row.case.clone(),
                ours,
                theirs,
                ratio,
                row.verdict(),
            ]);
        }
        let widths: Vec<usize> = (0..6)
            .map(|column| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0))
            .collect();
        let mut text = self.facts().join("\n") + "\n\n";
        let notes = [None].into_iter().chain(self.rows.iter().map(|row| row.note.as_ref()));
        for (line, note) in lines.iter().zip(notes) {
            let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            let _ = writeln!(text, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
            if let Some(note) = note {
                let _ = writeln!(text, "    {note}");
            }
        }
        text
    }

    pub(crate) fn json(&self) -> Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }

    /// `bench.json` and `bench.svg` in the folder.
    pub(crate) fn write(&self, folder: &Path) -> Result<()> {
        for (name, text) in [("bench.json", self.json()?), ("bench.svg", chart::draw(self))] {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
            eprintln!("written: {}", path.display());
        }
        Ok(())
    }
}

/// Between what the values lie, unless there is one only.
fn range(spread: &Spread) -> String {
    if spread.values.len() < 2 {
        return String::new();
    }
    format!(" ({} to {})", short(spread.min), short(spread.max))
}

/// A number with as many digits as say something.
pub(crate) fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1e9 => format!("{:.2} G", value / 1e9),
        size if size >= 1e6 => format!("{:.2} M", value / 1e6),
        size if size >= 1e4 => format!("{:.1} k", value / 1e3),
        size if size >= 100.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// One row of each kind.
    pub(crate) fn sketch() -> Report {
        let machine = Machine {
            cpu: "A <fast> one".into(),
            cores: 2,
            memory_gib: 23.4,
            kernel: "6.1".into(),
        };
        let versions = Versions {
            lockgate: "lockgate 0.1.0".into(),
            rustc: "rustc 1.95.0".into(),
            librdkafka: "2.12.1".into(),
            kafka: "4.3.1".into(),
        };
        let (fast, slow) = (Spread::of(vec![4e6, 5e6, 4.5e6]), Spread::of(vec![2e6, 2e6, 3e6]));
        let rows = vec![
            Row::compared("kafka-null", "100 B", "records/s", &fast, ("poll", &slow), Some(1.5)),
            Row::compared("file-null", "2 GB", "B/s", &slow, ("split", &fast), Some(0.7)),
            Row::compared("relay", "1 GB", "B/s", &slow, ("bare", &slow), None),
            Row::told("latency", "p99", "ms", Spread::of(vec![7.5, 8.0])).below(10.0),
            Row::missing("cost", "hash", "instructions", Some("valgrind is not installed".into())),
        ];
        Report { machine, versions, rounds: 3, size: 0.5, rows }
    }

    #[test]
    fn a_report_is_a_table() {
        insta::assert_snapshot!(sketch().table());
    }

    #[test]
    fn a_report_is_json() {
        insta::assert_snapshot!(sketch().json().unwrap());
    }

    #[test]
    fn both_files_are_written() {
        let folder = tempfile::tempdir().unwrap();
        sketch().write(folder.path()).unwrap();
        let read = |name| fs::read_to_string(folder.path().join(name)).unwrap();
        assert!(read("bench.json").starts_with('{') && read("bench.svg").starts_with("<svg"));
    }
}
