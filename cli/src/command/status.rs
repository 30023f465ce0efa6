//! `lockgate status`: a running pipeline as a person reads it.

pub(super) mod words;

use std::collections::BTreeMap;
use std::fmt::Write;

use indicatif::{HumanBytes, HumanCount};

use super::print;
use crate::args::At;
use crate::client::Client;
use crate::control::answers::Partitions;
use crate::control::report::{Report, Severity};
use crate::excerpt::{cut, width};
use crate::exit::Failed;
use crate::progress::counted;
use words::{conditions, duration, input_state, latency, output_state, plain, wrapped};

/// How far inputs are behind, by their names.
pub(super) type Lags = BTreeMap<String, Partitions>;

pub(crate) fn status(at: &At, json: bool) -> Result<(), Failed> {
    let client = Client::new(at)?;
    if json {
        let report: serde_json::Value = client.get("/api/v1/status")?;
        return print(&format!("{report:#}\n"));
    }
    let report = client.get("/api/v1/status")?;
    // While the pipeline is being opened nobody knows.
    let lags = client.get("/api/v1/partitions").unwrap_or_default();
    print(&text(&report, &lags, width()))
}

fn text(report: &Report, lags: &Lags, width: usize) -> String {
    let mut text = String::new();
    let name = plain(&report.pipeline);
    let running = duration(report.running_seconds);
    let head = format!("{name} is {} ({running}, process {})", report.phase, report.pid);
    // Writing to a string does not fail.
    let _ = writeln!(text, "{}\n", cut(&head, width));
    for condition in conditions(report) {
        let mark = if condition.severity == Severity::Info { "-" } else { "!" };
        text += &wrapped(mark, &format!("{}: {}", condition.about, condition.text), width);
    }
    if report.conditions.is_empty() {
        text += "- all is well\n";
    }
    let mut line = |name: &str, value: String| {
        let _ = writeln!(text, "{}", cut(format!("{name:<12}{value}").trim_end(), width));
    };
    line("", String::new());
    line("delivery", report.delivery.clone());
    line("steps", steps(report));
    line("checkpoint", checkpoint(report));
    let journal = &report.journal;
    let kept = format!("{}, {}", counted(journal.steps, "step"), HumanBytes(journal.bytes));
    line("journal", kept);
    let reloads = &report.reloads;
    if reloads.count > 0 || reloads.pending {
        let pending = if reloads.pending { ", one waits" } else { "" };
        line("reloads", format!("{}{pending}", HumanCount(reloads.count)));
    }
    line("", String::new());
    let mut row = |cells: [&str; 6]| {
        let [name, records, bytes, lag, latency, state] = cells;
        let name = cut(&plain(name), 18);
        let row = format!("{name:<18} {records:>13} {bytes:>11} {lag:>11} {latency:>7}  {state}");
        let _ = writeln!(text, "{}", cut(row.trim_end(), width));
    };
    row(["input", "records", "bytes", "behind", "p99", "state"]);
    for input in &report.inputs {
        let lag = lags.get(&input.name).and_then(|lag| lag.lag);
        let lag = lag.map_or("-".into(), |lag| HumanCount(lag).to_string());
        row([
            &input.name,
            &HumanCount(input.records).to_string(),
            &HumanBytes(input.bytes).to_string(),
            &lag,
            &latency(&input.latency),
            &input_state(input),
        ]);
    }
    row(["", "", "", "", "", ""]);
    row(["output", "records", "bytes", "", "", "state"]);
    for output in &report.outputs {
        row([
            &output.name,
            &HumanCount(output.records).to_string(),
            &HumanBytes(output.bytes).to_string(),
            "",
            "",
            &output_state(output),
        ]);
    }
    text
}

fn steps(report: &Report) -> String {
    let steps = &report.steps;
    let mut text = format!("{}, {} in flight", HumanCount(steps.last), steps.in_flight);
    if steps.to_replay > 0 {
        let _ = write!(text, ", {} of {} replayed", steps.replayed, steps.to_replay);
    }
    text
}

fn checkpoint(report: &Report) -> String {
    let checkpoints = &report.checkpoints;
    let mut text = format!("step {}", HumanCount(checkpoints.step));
    if let Some(age) = checkpoints.age_seconds {
        let _ = write!(text, ", {} ago", duration(age));
    }
    if let Some(took) = checkpoints.recent.first().and_then(|last| last.took_seconds) {
        let _ = write!(text, ", took {}", duration(took));
    }
    if checkpoints.stage != "idle" {
        let _ = write!(text, "; the next one is {}", checkpoints.stage.replace('_', " "));
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::control::report::{
        Checkpoint, Checkpoints, Condition, Durations, Input, Journal, Output, PhaseName, Reloads,
        Spread, Steps, Time,
    };

    /// A pipeline with an input that is well and one that is not.
    pub(crate) fn report() -> Report {
        let input = |name: &str, records, bytes| Input {
            name: name.into(),
            kind: "kafka".into(),
            records,
            bytes,
            buffered_records: 1_000,
            buffered_bytes: 200_000,
            max_queued_bytes: 16 << 20,
            ended: false,
            at_barrier: false,
            stalled: false,
            stalled_seconds: 0.0,
            paused: Vec::new(),
            policies: BTreeMap::new(),
            errors: BTreeMap::new(),
            last_error: None,
            latency: Spread { count: 9, p99_seconds: Some(0.025), ..Spread::default() },
        };
        let users = Input { paused: vec!["user".into()], ..input("users", 12, 340) };
        let output = Output {
            name: "copy".into(),
            kind: "file".into(),
            records: 1_998_012,
            bytes: 399 << 20,
            trouble: None,
            retries: 0,
            policies: BTreeMap::new(),
        };
        let condition = |severity, about: &str, text: &str| Condition {
            severity,
            about: about.into(),
            text: text.into(),
        };
        Report {
            version: "0.1.0".into(),
            pipeline: "orders".into(),
            file: "pipeline.yaml".into(),
            delivery: "exactly_once".into(),
            started_at: Time("2026-01-01T00:00:00.000Z".into()),
            pid: 4711,
            phase: PhaseName::Running,
            conditions: vec![
                condition(
                    Severity::Error,
                    "output copy",
                    "does not work and is tried again: writing out/copy.log: Connection reset by \u{1b}[2J peer",
                ),
                condition(
                    Severity::Info,
                    "input users",
                    "paused by a user; `lockgate resume` lets it read again",
                ),
            ],
            running_seconds: 7384.2,
            steps: Steps { last: 1041, count: 1040, in_flight: 2, replayed: 3, to_replay: 3 },
            checkpoints: Checkpoints {
                step: 1030,
                count: 9,
                stage: "draining".into(),
                age_seconds: Some(4.2),
                recent: vec![Checkpoint {
                    step: 1030,
                    stored_at: Time("2026-01-01T02:00:00.000Z".into()),
                    took_seconds: Some(0.0123),
                    bytes: Some(2000),
                }],
            },
            journal: Journal { steps: 11, bytes: 2_200_000 },
            durations: Durations::default(),
            reloads: Reloads::default(),
            inputs: vec![input("orders", 2_000_000, 400 << 20), users],
            outputs: vec![output],
        }
    }

    pub(crate) fn lags() -> Lags {
        let lag = |lag| Partitions { total: 3, lag, partitions: Vec::new() };
        [("orders".into(), lag(Some(123_456))), ("users".into(), lag(None))].into()
    }

    #[test]
    fn what_matters_comes_first() {
        let text = text(&report(), &lags(), 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        insta::assert_snapshot!(text);
    }

    #[test]
    fn while_it_is_opened_there_is_little_to_see() {
        let mut report = report();
        report.phase = PhaseName::Opening;
        report.conditions.clear();
        report.steps = Steps::default();
        report.checkpoints = Checkpoints { stage: "idle".into(), ..Checkpoints::default() };
        report.inputs.truncate(1);
        report.inputs[0].latency = Spread::default();
        insta::assert_snapshot!(text(&report, &Lags::new(), 80));
    }
}
