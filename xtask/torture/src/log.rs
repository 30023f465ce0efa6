//! What the log of a run tells: where it was when it was killed, and whether it may end as it did.

/// The parts of a checkpoint, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Outputs make durable what their positions claim.
    Prepare,
    /// Positions are stored, the journal is trimmed.
    Store,
    /// Outputs do what must follow, such as naming a segment.
    Complete,
}

/// What to say in LOCKGATE_LOG, so that the log has what is looked for here.
pub(crate) const WANTED: &str = "info,lockgate_controller::driver=trace";

/// What a line says about a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Begun(Stage),
    /// The checkpoint is complete.
    Done,
}

pub(crate) fn said(line: &str) -> Option<Said> {
    let (_, action) = line.split_once(" TRACE action=")?;
    if action.starts_with("Prepare") {
        Some(Said::Begun(Stage::Prepare))
    } else if action.starts_with("Store(") {
        Some(Said::Begun(Stage::Store))
    } else if action.starts_with("Complete") {
        Some(Said::Begun(Stage::Complete))
    } else {
        action.starts_with("Notify(Checkpointed").then_some(Said::Done)
    }
}

/// Whether a run whose log ends like this was inside a checkpoint, and where.
pub(crate) fn stage(log: &str) -> Option<Stage> {
    match log.lines().rev().find_map(said)? {
        Said::Begun(stage) => Some(stage),
        Said::Done => None,
    }
}

/// The last lines that a person would read.
pub(crate) fn tail(log: &str, lines: usize) -> String {
    let readable: Vec<&str> = log.lines().filter(|line| !line.contains(" TRACE ")).collect();
    readable[readable.len().saturating_sub(lines)..].join("\n")
}

/// The exit codes of the README that a run may have.
const DOCUMENTED: [i32; 8] = [0, 64, 65, 69, 70, 74, 75, 78];

/// Why a run must not end with this code and this log, if that is so. `None` is a signal.
pub(crate) fn judge(code: Option<i32>, log: &str, allowed: &[i32]) -> Option<String> {
    if let Some(line) = log.lines().find(|line| line.contains("panicked at")) {
        return Some(format!("a panic: {line}"));
    }
    let Some(code) = code else { return Some("it was ended by a signal of its own".into()) };
    if !DOCUMENTED.contains(&code) {
        return Some(format!("exit code {code} is documented nowhere"));
    }
    let message = log.lines().rev().find(|line| line.starts_with("lockgate: "));
    match message {
        Some(message) if code == 0 => Some(format!("exit code 0 after a failure: {message}")),
        None if code != 0 => Some(format!("exit code {code} without a word")),
        _ if allowed.contains(&code) => None,
        _ => Some(format!("exit code {code}: {}", message.unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: &str = "\
2026-01-01T00:00:00.0Z  INFO started pipeline=\"x\"
2026-01-01T00:00:00.1Z TRACE action=Prepare
2026-01-01T00:00:00.2Z TRACE action=Store(Checkpoint { step: 91 })
2026-01-01T00:00:00.3Z TRACE action=Complete
2026-01-01T00:00:00.4Z TRACE action=Notify(Checkpointed { step: 91 })
2026-01-01T00:00:00.5Z TRACE action=Write { step: 92 }
";

    #[test]
    fn a_kill_was_inside_a_checkpoint_or_not() {
        let after = |lines: usize| {
            let log: Vec<&str> = RUN.lines().take(lines).collect();
            stage(&log.join("\n"))
        };
        assert_eq!(after(1), None);
        assert_eq!(after(2), Some(Stage::Prepare));
        assert_eq!(after(3), Some(Stage::Store));
        assert_eq!(after(4), Some(Stage::Complete));
        assert_eq!(after(6), None);
    }

    #[test]
    fn of_a_log_the_end_is_shown_without_traces() {
        assert_eq!(tail("a\nb TRACE x\nc\nd", 2), "c\nd");
        assert_eq!(tail("", 2), "");
    }

    #[test]
    fn only_documented_ends_with_a_reason_pass() {
        let said = "lockgate: No space left on device\n";
        assert_eq!(judge(Some(0), "", &[0]), None);
        assert_eq!(judge(Some(74), said, &[0, 74]), None);
        let refused = [
            (Some(74), said, "exit code 74: lockgate: No space"),
            (Some(74), "", "without a word"),
            (Some(0), said, "exit code 0 after a failure"),
            (Some(101), "", "documented nowhere"),
            (None, "", "a signal of its own"),
            (Some(0), "thread 'x' panicked at y", "a panic"),
        ];
        for (code, log, expected) in refused {
            let found = judge(code, log, &[0]).unwrap();
            assert!(found.contains(expected), "{found}");
        }
    }
}
