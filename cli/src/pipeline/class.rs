//! What a change of an option means for a pipeline that runs, or ran before.
//!
//! For the one table that says it, with reasons; a test in [`options`](super::options) fails when an option is not in it.
//! Deliberately not for finding changes: between two files that is done in [`change`](super::change), between two
//! starts by the state directory.
//!
//! How the classes were chosen. A position means something only together with the options that it was counted under,
//! and what is written already only together with those that it was written under: whatever is among these resets
//! positions. A journaled step has to give the same records and the same bytes again, so what decides about either may
//! change only when no step is left to be run again. Whatever a reader, an output or a port is opened with takes effect
//! at the next start, and only what is asked for anew all the time can change in between.

use super::error::Step;

/// What a change of an option does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Class {
    /// It takes effect while the pipeline runs.
    Live,
    /// It takes effect at the next start; positions stay valid.
    KeepsPosition,
    /// As [`Class::KeepsPosition`], but only after an orderly stop: steps that a crash left to be run again would not
    /// be what they were.
    KeepsPositionAfterStop,
    /// Stored positions, or what is already written, may not mean the same afterwards.
    ResetsPosition,
}

impl Class {
    /// Its name in the JSON Schema.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::KeepsPosition | Self::KeepsPositionAfterStop => "keeps_position",
            Self::ResetsPosition => "resets_position",
        }
    }
}

/// What is known about an option.
#[derive(Debug)]
pub(crate) struct Rule {
    /// The keys down to it with `/` between them; `*` is any name.
    pub(crate) option: &'static str,
    /// What a change of it does.
    pub(crate) class: Class,
    /// Why it is not live, as the end of a sentence.
    pub(crate) why: &'static str,
}

const fn live(option: &'static str) -> Rule {
    Rule { option, class: Class::Live, why: "" }
}

const fn keeps(option: &'static str, why: &'static str) -> Rule {
    Rule { option, class: Class::KeepsPosition, why }
}

const fn keeps_after_stop(option: &'static str, why: &'static str) -> Rule {
    Rule { option, class: Class::KeepsPositionAfterStop, why }
}

const fn resets(option: &'static str, why: &'static str) -> Rule {
    Rule { option, class: Class::ResetsPosition, why }
}

const OPENED: &str = "the client is opened with it";
const FIRST_START: &str = "only the very first start looks at it";
const ASKED_AT_START: &str = "it is looked at when inputs are started";
const OF_POLICY: &str = "the reader is opened with it";
const OF_RECORDS: &str = "each record that is written from the start on has it";

/// Every option of the pipeline file. One that stands deeper than these belongs to the one above it.
pub(crate) const RULES: &[Rule] = &[
    resets("name", "state, transactions and groups are kept under it"),
    resets("inputs", "positions are kept by name, and the order is that of the records in a step"),
    resets("outputs", "positions are kept by name, and a new one lacks what came before"),
    resets("delivery", "it decides what is stored, and how outputs are written"),
    resets("state", "all positions are in that directory"),
    live("checkpoint_interval"),
    live("min_batch_records"),
    live("max_buffering_delay"),
    live("max_batch_records"),
    live("stall_timeout"),
    live("on_stall"),
    live("shutdown_timeout"),
    keeps("control/listen", "the port is opened at the start"),
    // What is in the file may change while the pipeline runs: `control/token`.
    keeps("control/token_file", "which file it is, is settled at the start"),
    live("control/token"),
    keeps("control/tls/certificate", "the port is opened with it"),
    keeps("control/tls/key", "the port is opened with it"),
    live("log/level"),
    live("log/targets"),
    live("log/format"),
    resets("inputs/*/file/paths", "positions are those of the files that it finds"),
    resets("inputs/*/file/format", "it decides where records begin and end"),
    resets("inputs/*/file/max_record_bytes", "it decides where records end"),
    keeps_after_stop("inputs/*/file/overlong", "it decides which records a journaled step has"),
    keeps("inputs/*/file/follow", "files are watched from the start on"),
    keeps("inputs/*/file/start_at", FIRST_START),
    live("inputs/*/file/max_queued_records"),
    live("inputs/*/file/max_queued_bytes"),
    keeps("inputs/*/file/start_after", ASKED_AT_START),
    live("inputs/*/file/max_records_per_second"),
    resets("inputs/*/recording/path", "positions are those in the recording"),
    resets("inputs/*/recording/input", "positions are those in its recording"),
    live("inputs/*/recording/max_queued_records"),
    live("inputs/*/recording/max_queued_bytes"),
    keeps("inputs/*/recording/start_after", ASKED_AT_START),
    live("inputs/*/recording/max_records_per_second"),
    // Another cluster under the same names is found out by the identities of its topics, and `on_recreated` decides.
    keeps("inputs/*/kafka/brokers", OPENED),
    resets("inputs/*/kafka/topic", "positions are those of its partitions"),
    resets("inputs/*/kafka/topics", "positions are those of their partitions"),
    keeps("inputs/*/kafka/start_from", FIRST_START),
    keeps("inputs/*/kafka/stop_at", "the end is looked up at the start"),
    resets("inputs/*/kafka/partitions", "positions are those of these partitions"),
    resets("inputs/*/kafka/mode", "it decides who keeps the positions"),
    // With mode assign the group is only a name for tools: `lag_group`.
    resets("inputs/*/kafka/group", "positions are those of the group"),
    keeps("inputs/*/kafka/lag_group", OPENED),
    keeps("inputs/*/kafka/group_protocol", "the group is joined with it"),
    keeps("inputs/*/kafka/group_instance_id", "the group is joined with it"),
    live("inputs/*/kafka/max_pending_records"),
    live("inputs/*/kafka/max_queued_records"),
    live("inputs/*/kafka/max_queued_bytes"),
    keeps("inputs/*/kafka/start_after", ASKED_AT_START),
    live("inputs/*/kafka/max_records_per_second"),
    keeps("inputs/*/kafka/on_expired", OF_POLICY),
    keeps("inputs/*/kafka/on_truncated", OF_POLICY),
    keeps("inputs/*/kafka/on_recreated", OF_POLICY),
    keeps("inputs/*/kafka/on_vanished", OF_POLICY),
    keeps("inputs/*/kafka/properties", OPENED),
    // The one property that decides which records there are.
    resets("inputs/*/kafka/isolation.level", "it decides which records there are"),
    resets("outputs/*/file/path", "what is written already is in the old place"),
    keeps_after_stop("outputs/*/file/format", "it decides which bytes a journaled step gives"),
    keeps("outputs/*/file/segment_bytes", "segments are cut by it from the start on"),
    keeps("outputs/*/file/segment_records", "segments are cut by it from the start on"),
    keeps("outputs/*/file/compression", "segments that become complete after the start have it"),
    keeps("outputs/*/kafka/brokers", OPENED),
    resets("outputs/*/kafka/topic", "what is written already is in the old topic"),
    resets(
        "outputs/*/kafka/partition",
        "records of one key that are written already may be in another partition",
    ),
    keeps("outputs/*/kafka/timestamp", OF_RECORDS),
    keeps("outputs/*/kafka/key", OF_RECORDS),
    keeps("outputs/*/kafka/headers", OF_RECORDS),
    keeps("outputs/*/kafka/on_refused", "the output is opened with it"),
    resets("outputs/*/kafka/exactly_once", "it says the same as delivery"),
    keeps("outputs/*/kafka/commit_interval", "the output is opened with it"),
    keeps("outputs/*/kafka/properties", OPENED),
    keeps("outputs/*/stdout/format", "each record that is written from the start on has it"),
];

/// What is said about an option that nobody has thought of.
static UNKNOWN: Rule = resets("", "what it would do is not known");

/// What is known about the value at this place of the file: the rule of the deepest option that it belongs to.
pub(crate) fn rule(path: &[Step]) -> &'static Rule {
    let length = |rule: &&Rule| rule.option.split('/').count();
    RULES.iter().filter(|rule| is_above(rule.option, path)).max_by_key(length).unwrap_or(&UNKNOWN)
}

/// What is known about the option with these keys, in the form of [`Rule::option`].
pub(crate) fn exact(option: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.option == option)
}

fn is_above(option: &str, path: &[Step]) -> bool {
    let mut steps = path.iter();
    option.split('/').all(|key| match steps.next() {
        Some(Step::Key(found)) => key == "*" || key == found,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::error::KeyPath;

    #[test]
    fn a_value_belongs_to_the_deepest_option_above_it() {
        let check = |path: KeyPath, expected: &str| {
            assert_eq!(rule(path.steps()).option, expected, "{path}");
        };
        let kafka = KeyPath::root().key("inputs").key("state").key("kafka");
        check(KeyPath::root().key("state"), "state");
        check(KeyPath::root().key("log").key("targets").key("a::b"), "log/targets");
        check(kafka.key("isolation.level"), "inputs/*/kafka/isolation.level");
        check(kafka.key("topics").index(1), "inputs/*/kafka/topics");
        check(kafka.key("properties").key("linger.ms"), "inputs/*/kafka/properties");
        // Whatever nobody has thought of.
        check(kafka.key("new"), "inputs");
        check(KeyPath::root().key("new"), "");
    }

    #[test]
    fn each_option_has_one_rule_with_a_reason_unless_it_is_live() {
        for (index, rule) in RULES.iter().enumerate() {
            assert!(RULES[..index].iter().all(|other| other.option != rule.option), "{rule:?}");
            assert_eq!(rule.why.is_empty(), rule.class == Class::Live, "{rule:?}");
        }
    }
}
