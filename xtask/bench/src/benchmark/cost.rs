//! What single things cost: the hash of a record, an empty step, its journal entry; in time, and in instructions,
//! which hardly depend on the machine.
//!
//! Instructions are counted by callgrind: twice, with different amounts, so that starting does not count.

use std::process::Command;

use anyhow::{Context, Result};

use super::TO_NULL;
use crate::report::Row;
use crate::rounds::{Contestant, in_turn};
use crate::site::Site;
use crate::spread::Spread;

/// What is counted: its case, the words that do it, the amount for which callgrind is patient enough, and how many
/// times as often it is done where it is only timed.
const PARTS: [(&str, &[&str], u64, u64); 4] = [
    ("hash of a line of 200 B", &["library", "hash", "lines"], 1_000_000, 40),
    ("hash of a Kafka record of 100 B", &["library", "hash", "rows"], 500_000, 40),
    ("empty step, delivery: none", &["library", "steps"], 2_000, 10),
    ("empty step with journal", &["library", "steps", "--exactly-once"], 2_000, 10),
];

pub(super) fn measure(site: &Site) -> Result<Vec<Row>> {
    let part = |words: &[&str], amount: u64| {
        let mut command = site.itself(words);
        command.arg(amount.to_string()).current_dir(site.path(""));
        command
    };
    let mut contestants = Vec::new();
    for (name, words, amount, times) in PARTS {
        contestants.push(Contestant::new(name, move || {
            let ran = site.time(part(words, site.scaled(amount * times)))?;
            ran.stdout.trim().parse().context("it said no number")
        }));
    }
    let found = in_turn(site, contestants)?;
    let case = |name: &str| format!("{name}, time");
    let times = PARTS.iter().zip(&found);
    let mut rows: Vec<Row> = times
        .map(|((name, ..), found)| Row::told("cost", case(name), "ns", found.clone()))
        .collect();
    if Command::new("valgrind").arg("--version").output().is_err() {
        let why = "valgrind is not installed, so instructions are not counted".to_owned();
        rows.push(Row::missing("cost", "instructions", "instructions", Some(why)));
        return Ok(rows);
    }
    let row = |name: &str, instructions| {
        let case = format!("{name}, instructions");
        Row::told("cost", case, "instructions", Spread::once(instructions))
    };
    for (name, words, amount, _) in PARTS {
        eprintln!("  callgrind: {name}");
        let once = instructions(site, &part(words, amount))?;
        let twice = instructions(site, &part(words, 2 * amount))?;
        rows.push(row(name, (twice - once) / amount as f64));
    }
    for delivery in ["exactly_once", "none"] {
        let name = format!("a line of 200 B from file to null, {delivery}, whole process");
        eprintln!("  callgrind: {name}");
        rows.push(row(&name, of_a_line(site, delivery)?));
    }
    Ok(rows)
}

/// Instructions of all threads for each line. Under callgrind everything is slow, so steps are not cut by time.
fn of_a_line(site: &Site, delivery: &str) -> Result<f64> {
    const LINES: u64 = 200_000;
    let mut counts = [0.0; 2];
    for (count, lines) in counts.iter_mut().zip([LINES, 2 * LINES]) {
        let input = site.lines(lines)?;
        let inputs = format!("inputs: {{in: {{file: {{paths: {}}}}}}}\n", input.display());
        let settings = format!("delivery: {delivery}\nmax_buffering_delay: 10s\n");
        let pipeline = site.pipeline("cost", &format!("{settings}{inputs}{TO_NULL}"))?;
        *count = instructions(site, &site.lockgate_run(&pipeline, &site.gone("state")?))?;
    }
    Ok((counts[1] - counts[0]) / LINES as f64)
}

/// How many instructions a command executes.
fn instructions(site: &Site, command: &Command) -> Result<f64> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    valgrind.arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        valgrind.current_dir(folder);
    }
    let said = site.time(valgrind)?.stderr;
    collected(&said).with_context(|| format!("callgrind said no number: {said}"))
}

/// The number in `==123== Collected : 456`.
fn collected(said: &str) -> Option<f64> {
    let line = said.lines().find(|line| line.contains("Collected :"))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_are_read_from_what_callgrind_says() {
        let said = "==7== Events    : Ir\n==7== Collected : 123456\n==7== \n";
        assert_eq!(collected(said), Some(123_456.0));
        assert_eq!(collected("==7== no"), None);
    }
}
