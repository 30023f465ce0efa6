//! A report in words, for `status` and `top`. Pure.

use crate::control::report::{Condition, Input, Output, Report, Spread};

/// What cannot be printed is replaced, so that nothing that a source or a client said moves the cursor.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// What people should know, fit to be printed.
pub(crate) fn conditions(report: &Report) -> impl Iterator<Item = Condition> {
    report.conditions.iter().map(|condition| Condition {
        severity: condition.severity,
        about: plain(&condition.about),
        text: plain(&condition.text),
    })
}

/// Two digits and more, with the unit that fits.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds as u64;
    match whole {
        0 if seconds < 0.001 => format!("{:.0} µs", seconds * 1e6),
        0 => format!("{:.0} ms", seconds * 1e3),
        1..10 => format!("{seconds:.1} s"),
        10..60 => format!("{whole} s"),
        60..3600 => format!("{} min {} s", whole / 60, whole % 60),
        3600..86_400 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} d {} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// All but one in a hundred records took no longer.
pub(crate) fn latency(spread: &Spread) -> String {
    match spread.p99_seconds {
        Some(seconds) => duration(seconds),
        None if spread.count > 0 => "long".into(),
        None => "-".into(),
    }
}

/// What the input does.
pub(crate) fn input_state(input: &Input) -> String {
    let paused = |reason: &str| input.paused.iter().any(|paused| paused == reason);
    match input {
        Input { stalled: true, .. } => "STALLED".into(),
        Input { ended: true, .. } => "ended".into(),
        _ if paused("user") => "paused".into(),
        _ if paused("backpressure") => "blocked".into(),
        _ if paused("start_order") => "waits for others".into(),
        _ if paused("reload") => "reloads".into(),
        _ => match input.paused.first() {
            None => "reads".into(),
            Some(reason) => plain(reason),
        },
    }
}

/// What the output does.
pub(crate) fn output_state(output: &Output) -> String {
    match output.trouble {
        Some(_) => "TROUBLE".into(),
        None => "writes".into(),
    }
}

/// `text` in lines of `width` columns, the first one behind `mark`.
pub(crate) fn wrapped(mark: &str, text: &str, width: usize) -> String {
    let indent = " ".repeat(mark.chars().count() + 1);
    let mut lines = String::new();
    let mut line = format!("{mark} ");
    let mut used = indent.len();
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > indent.len() && used + length > width {
            lines += line.trim_end();
            lines.push('\n');
            line.clone_from(&indent);
            used = indent.len();
        }
        let room = width.saturating_sub(used);
        line.extend(word.chars().take(room));
        line.push(' ');
        used += length.min(room) + 1;
    }
    lines += line.trim_end();
    lines.push('\n');
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_unit_that_fits() {
        let check = |seconds: f64, expected: &str| assert_eq!(duration(seconds), expected);
        check(0.0, "0 µs");
        check(0.00025, "250 µs");
        check(0.025, "25 ms");
        check(1.25, "1.2 s");
        check(59.9, "59 s");
        check(61.0, "1 min 1 s");
        check(7384.2, "2 h 3 min");
        check(200_000.0, "2 d 7 h");
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        let text = wrapped("!", "one two three averyveryverylongword", 12);
        assert_eq!(text, "! one two\n  three\n  averyveryv\n");
        assert_eq!(wrapped("-", "a", 80), "- a\n");
    }
}
