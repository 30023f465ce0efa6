//! Progress and summary of a run as text.

use std::fmt::Write;
use std::time::Duration;

use indicatif::{HumanBytes, HumanCount};
use lockgate_controller::{InputStatus, PauseReason, Phase, Status};

/// One line for a person who watches: what changed since `before`, `elapsed` ago.
pub(crate) fn line(now: &Status, before: &Status) -> String {
    let since = now.elapsed.saturating_sub(before.elapsed);
    let phase = match now.phase {
        Phase::Replaying if now.steps == 0 => "starting, step",
        Phase::Replaying => "replaying step",
        Phase::Running => "step",
        Phase::Stopping => "finishing, step",
        Phase::Ended => "ended, step",
    };
    let mut text =
        format!("{phase} {}, checkpoint {}", HumanCount(now.step), now.checkpointed_step);
    for (input, before) in now.inputs.iter().zip(&before.inputs) {
        let rate = rate(input.records - before.records, since);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            " | {}: {} records, {}, {}/s",
            input.name,
            HumanCount(input.records),
            HumanBytes(input.bytes),
            HumanCount(rate)
        );
        condition(&mut text, input);
    }
    for output in &now.outputs {
        if let Some(trouble) = &output.trouble {
            let _ = write!(text, " | {}: {trouble}", output.name);
        }
    }
    if let Some(reason) = &now.blocked {
        let _ = write!(text, " | waiting: {reason}");
    }
    text
}

fn condition(text: &mut String, input: &InputStatus) {
    if input.ended {
        *text += ", at its end";
    }
    if input.stalled {
        *text += ", STALLED";
    }
    if input.paused.contains(&PauseReason::User) {
        *text += ", paused";
    }
}

/// What happened, when it is over.
pub(crate) fn summary(name: &str, status: &Status) -> String {
    let seconds = status.elapsed.as_secs_f64();
    let steps = counted(status.steps, "step");
    let checkpoints = counted(status.checkpoints, "checkpoint");
    let mut text = format!("{name}: {steps}, {checkpoints}, {seconds:.2} s");
    if status.replayed_steps > 0 {
        let _ = write!(text, "; {} of the steps replayed", status.replayed_steps);
    }
    text += "\n";
    let endpoint = |kind: &str, name: &str, records: u64, bytes: u64| {
        let rate = rate(records, status.elapsed);
        let (records, bytes, rate) = (HumanCount(records), HumanBytes(bytes), HumanCount(rate));
        let records = records.to_string();
        format!("  {kind:<6}  {name:<16}  {records:>13} records  {bytes}, {rate} records/s\n")
    };
    for input in &status.inputs {
        text += &endpoint("input", &input.name, input.records, input.bytes);
        for (policy, count) in &input.policies {
            let _ = writeln!(text, "          {policy}: {}", HumanCount(*count));
        }
    }
    for output in &status.outputs {
        text += &endpoint("output", &output.name, output.records, output.bytes);
        for (policy, count) in &output.policies {
            let _ = writeln!(text, "          {policy}: {}", HumanCount(*count));
        }
    }
    text
}

/// `1 step`, `1,234 steps`.
pub(crate) fn counted(n: u64, thing: &str) -> String {
    format!("{} {thing}{}", HumanCount(n), if n == 1 { "" } else { "s" })
}

fn rate(records: u64, elapsed: Duration) -> u64 {
    let seconds = elapsed.as_secs_f64();
    if seconds > 0.0 { (records as f64 / seconds) as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_controller::OutputStatus;

    fn status() -> Status {
        let input = InputStatus {
            name: "orders".into(),
            records: 2_000_000,
            bytes: 400 << 20,
            policies: [("overlong_truncated", 3)].into(),
            ..InputStatus::default()
        };
        let output = OutputStatus {
            name: "copy".into(),
            records: 1_990_000,
            bytes: 398 << 20,
            policies: [("refused_skipped", 2)].into(),
            ..OutputStatus::default()
        };
        Status {
            phase: Phase::Running,
            step: 41,
            steps: 40,
            replayed_steps: 2,
            checkpointed_step: 30,
            checkpoints: 1,
            elapsed: Duration::from_secs(2),
            inputs: vec![input],
            outputs: vec![output],
            ..Status::default()
        }
    }

    #[test]
    fn a_line_says_what_moves_and_what_waits() {
        let mut before = status();
        before.elapsed = Duration::from_secs(1);
        before.inputs[0].records = 500_000;
        let mut now = status();
        insta::assert_snapshot!(line(&now, &before), @"step 41, checkpoint 30 | orders: 2,000,000 records, 400.00 MiB, 1,500,000/s");
        now.inputs[0].stalled = true;
        now.inputs[0].paused = vec![PauseReason::User];
        now.outputs[0].trouble = Some("no broker".into());
        now.blocked = Some("out/orders.log: No space left on device".into());
        insta::assert_snapshot!(line(&now, &before), @"step 41, checkpoint 30 | orders: 2,000,000 records, 400.00 MiB, 1,500,000/s, STALLED, paused | copy: no broker | waiting: out/orders.log: No space left on device");
    }

    #[test]
    fn the_summary_counts_everything() {
        insta::assert_snapshot!(summary("orders", &status()), @"
        orders: 40 steps, 1 checkpoint, 2.00 s; 2 of the steps replayed
          input   orders                2,000,000 records  400.00 MiB, 1,000,000 records/s
                  overlong_truncated: 3
          output  copy                  1,990,000 records  398.00 MiB, 995,000 records/s
                  refused_skipped: 2
        ");
    }
}
