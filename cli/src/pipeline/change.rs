//! What differs between two pipelines, and what of it cannot change while one of them runs.
//!
//! For a reload: it is applied if all that differs is [`Class::Live`], and refused as a whole otherwise. Deliberately
//! not for applying anything.

use std::cmp::Ordering;
use std::fmt;

use super::checked::Pipeline;
use super::class::{Class, Rule, rule};
use super::error::{KeyPath, Step};
use super::settings::Setting;

/// A value that is not the same in two pipelines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Change {
    /// Its place, as it reads in the file.
    pub(crate) path: String,
    /// What it was; `None` if it was not there. The same as `is` where it may not be shown.
    pub(crate) was: Option<String>,
    /// What it is; `None` if it is not there any more.
    pub(crate) is: Option<String>,
    /// What the change does.
    pub(crate) class: Class,
    /// Why it is not live, as the end of a sentence.
    why: &'static str,
}

impl Change {
    /// None if both are set to the same.
    fn between(was: Option<&Setting>, is: Option<&Setting>) -> Option<Self> {
        let is_same = matches!((was, is), (Some(was), Some(is)) if was.is_same(is));
        if is_same {
            return None;
        }
        let path = &was.or(is)?.path;
        // The same place can mean something else, such as a group that is joined now.
        let rule =
            was.into_iter().chain(is).map(|setting| setting.rule).max_by_key(|rule| rule.class)?;
        let shown = |setting: Option<&Setting>| setting.map(|setting| setting.shown().to_owned());
        let (was, is) = (shown(was), shown(is));
        Some(Self { path: path.to_string(), was, is, class: rule.class, why: rule.why })
    }

    /// The change of names and order of `inputs` or `outputs`.
    fn of_names(group: &str, was: &[&str], is: &[&str]) -> Option<Self> {
        let path = KeyPath::root().key(group);
        let Rule { class, why, .. } = *rule(path.steps());
        let names = |names: &[&str]| Some(names.join(", "));
        let change = Self { path: path.to_string(), was: names(was), is: names(is), class, why };
        (was != is).then_some(change)
    }
}

/// `checkpoint_interval: was 10s, is 3s`.
impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path)?;
        match (&self.was, &self.is) {
            (Some(was), Some(is)) if was == is => f.write_str("changed"),
            (Some(was), Some(is)) => write!(f, "was {was}, is {is}"),
            (Some(was), None) => write!(f, "was {was}, is not there any more"),
            (None, Some(is)) => write!(f, "was not there, is {is}"),
            (None, None) => f.write_str("changed"),
        }
    }
}

impl Pipeline {
    /// What is different in `newer`, in the order of the places. Of an endpoint that only one of them has, the change
    /// of `inputs` or `outputs` is all that is said.
    pub(crate) fn changes_to(&self, newer: &Pipeline) -> Vec<Change> {
        let mut changes = Vec::new();
        for ((group, was), (_, is)) in self.endpoints().iter().zip(&newer.endpoints()) {
            changes.extend(Change::of_names(group, was, is));
        }
        let has_both =
            |setting: &Setting| self.has_endpoint_of(setting) && newer.has_endpoint_of(setting);
        let mut old = self.settings().iter().filter(|setting| has_both(setting)).peekable();
        let mut new = newer.settings().iter().filter(|setting| has_both(setting)).peekable();
        // Both are in the order of their paths.
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => break,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => old.path.to_string().cmp(&new.path.to_string()),
            };
            let was = old.next_if(|_| order.is_le());
            let is = new.next_if(|_| order.is_ge());
            changes.extend(Change::between(was, is));
        }
        changes.sort_by(|one, other| one.path.cmp(&other.path));
        changes
    }

    fn endpoints(&self) -> [(&'static str, Vec<&str>); 2] {
        let inputs = self.inputs.iter().map(|input| input.name.as_str()).collect();
        let outputs = self.outputs.iter().map(|output| output.name.as_str()).collect();
        [("inputs", inputs), ("outputs", outputs)]
    }

    /// Whether the endpoint that the setting belongs to is here, if it belongs to one.
    fn has_endpoint_of(&self, setting: &Setting) -> bool {
        let [Step::Key(group), Step::Key(name), ..] = setting.path.steps() else { return true };
        let endpoints = self.endpoints();
        let among = endpoints.iter().find(|(known, _)| known == group);
        among.is_none_or(|(_, names)| names.contains(&name.as_str()))
    }
}

/// Why `changes` cannot be made to a pipeline while it runs, one line each, and what to do; `None` if they can.
pub(crate) fn refusal(changes: &[Change]) -> Option<String> {
    let fixed = changes.iter().filter(|change| change.class != Class::Live);
    let lines: Vec<String> = fixed.map(line).collect();
    let what = "these settings cannot change while the pipeline runs, so nothing was changed";
    (!lines.is_empty()).then(|| format!("{what}:\n{}", lines.join("\n")))
}

fn line(change: &Change) -> String {
    let remedy = match change.class {
        Class::Live => return format!("  {change}"),
        Class::KeepsPosition | Class::KeepsPositionAfterStop => "stop in order and start again",
        Class::ResetsPosition => {
            "stop in order and start again with --accept, or with another --state-dir"
        }
    };
    format!("  {change} ({}); {remedy}", change.why)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::pipeline::parse;

    const PIPELINE: &str = "
name: x
checkpoint_interval: 10s
control: {listen: '127.0.0.1:0'}
inputs:
  orders:
    kafka:
      brokers: 'h:1'
      topic: orders
      stop_at: end
      properties: {sasl.password: hunter2, linger.ms: 5}
  old:
    file: {paths: ['a.log', 'b.log'], overlong: skip}
outputs:
  copy: {file: {path: out}}
  sent: {kafka: {brokers: 'h:1', topic: sent}}
";

    fn pipeline(text: &str) -> Pipeline {
        let environment = |name: &str| match name {
            "HOST" => Some("canary-1".into()),
            "OTHER" => Some("canary-2".into()),
            _ => None,
        };
        parse(text, Path::new("p.yaml"), &environment).expect("valid")
    }

    /// What is said of `PIPELINE` with each first text replaced by the second one.
    fn changes(replaced: &[(&str, &str)]) -> String {
        let text = replaced.iter().fold(PIPELINE.to_owned(), |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replace(from, to)
        });
        let changes = pipeline(PIPELINE).changes_to(&pipeline(&text));
        let line = |change: &Change| format!("{:?} {change}", change.class);
        let lines: Vec<String> = changes.iter().map(line).collect();
        lines.join("\n")
    }

    #[test]
    fn what_is_written_in_another_way_is_no_change() {
        assert_eq!(changes(&[]), "");
        let spelt = [
            ("10s", "10000ms"),
            ("topic: orders", "topics: [orders]"),
            ("linger.ms: 5", "linger.ms: '5'"),
        ];
        assert_eq!(changes(&spelt), "");
    }

    #[test]
    fn each_change_has_its_class() {
        insta::assert_snapshot!(changes(&[
            ("10s", "3s"),
            ("'127.0.0.1:0'", "'127.0.0.1:80'"),
            ("topic: orders", "topics: [orders, returns]"),
            ("'b.log'", "'c.log', 'd.log'"),
            ("overlong: skip", "max_records_per_second: 5, start_after: orders"),
            ("path: out", "path: out, format: json"),
            ("topic: sent", "topic: sent, partition: kept, key: dropped"),
        ]), @"
        Live checkpoint_interval: was 10s, is 3s
        KeepsPosition control.listen: was 127.0.0.1:0, is 127.0.0.1:80
        Live inputs.old.file.max_records_per_second: was not there, is 5
        KeepsPositionAfterStop inputs.old.file.overlong: was skip, is truncate
        ResetsPosition inputs.old.file.paths[1]: was b.log, is c.log
        ResetsPosition inputs.old.file.paths[2]: was not there, is d.log
        KeepsPosition inputs.old.file.start_after[0]: was not there, is orders
        ResetsPosition inputs.orders.kafka.topics[1]: was not there, is returns
        KeepsPositionAfterStop outputs.copy.file.format: was lines, is json
        KeepsPosition outputs.sent.kafka.key: was kept, is dropped
        ResetsPosition outputs.sent.kafka.partition: was by_key, is kept
        ");
    }

    #[test]
    fn endpoints_come_go_and_change_places() {
        insta::assert_snapshot!(changes(&[("  copy: {file", "  more: {file")]), @"ResetsPosition outputs: was copy, sent, is more, sent");
        insta::assert_snapshot!(
            changes(&[("  copy: {file: {path: out}}\n", ""), ("topic: sent}}", "topic: sent}}\n  copy: {file: {path: out}}")]),
            @"ResetsPosition outputs: was copy, sent, is sent, copy"
        );
        insta::assert_snapshot!(changes(&[("{file: {path: out}}", "{null: }")]), @"
        KeepsPosition outputs.copy.file.compression: was none, is not there any more
        KeepsPositionAfterStop outputs.copy.file.format: was lines, is not there any more
        ResetsPosition outputs.copy.file.path: was out, is not there any more
        ResetsPosition outputs.copy.null: was not there, is {}
        ");
    }

    /// A group that is not joined is only a name for tools.
    #[test]
    fn what_a_group_is_for_decides_about_its_class() {
        let lag = [("topic: orders", "topic: orders, group: lag".replace(", ", "\n      "))];
        let lag: Vec<_> = lag.iter().map(|(from, to)| (*from, to.as_str())).collect();
        assert_eq!(changes(&lag), "KeepsPosition inputs.orders.kafka.group: was not there, is lag");
        let group = |name: &str| {
            pipeline(&format!(
                "name: x\ndelivery: at_least_once\noutputs: {{b: {{null: }}}}\n\
                 inputs: {{a: {{kafka: {{brokers: 'h:1', topic: t, mode: group, group: {name}}}}}}}"
            ))
        };
        let changes = group("g").changes_to(&group("h"));
        assert_eq!(changes[0].to_string(), "inputs.a.kafka.group: was g, is h");
        assert_eq!(changes[0].class, Class::ResetsPosition);
    }

    #[test]
    fn what_may_be_a_secret_is_compared_and_not_shown() {
        insta::assert_snapshot!(changes(&[
            ("hunter2, linger.ms: 5", "hunter3, ssl.key.password: hunter4"),
        ]), @r#"
        KeepsPosition inputs.orders.kafka.properties."linger.ms": was ***, is not there any more
        KeepsPosition inputs.orders.kafka.properties."sasl.password": changed
        KeepsPosition inputs.orders.kafka.properties."ssl.key.password": was not there, is ***
        "#);

        let directory = tempfile::tempdir().expect("a directory for the test");
        let write =
            |token: &str| std::fs::write(directory.path().join("token"), token).expect("writes");
        let with_token = || {
            let text = PIPELINE.replace("'127.0.0.1:0'", "'127.0.0.1:0', token_file: token");
            parse(&text, &directory.path().join("p.yaml"), &|_| None).expect("valid")
        };
        write("hunter5\n");
        let old = with_token();
        write(" hunter6");
        let new = with_token();
        let changes = old.changes_to(&new);
        assert_eq!(changes.len(), 1);
        assert_eq!(changes[0].to_string(), "control.token: changed");
        assert_eq!(changes[0].class, Class::Live);
        let shown = format!("{old:?} {new:?} {changes:?}");
        assert!(!shown.contains("hunter"), "{shown}");

        let from =
            |variable: &str| pipeline(&PIPELINE.replace("h:1", &format!("${{{variable}}}:1")));
        let (old, new) = (from("HOST"), from("OTHER"));
        let changes = old.changes_to(&new);
        assert_eq!(changes.len(), 2);
        let shown = format!("{changes:?}{:?}", old.settings());
        assert!(shown.contains("${OTHER}") && !shown.contains("canary"), "{shown}");
        assert!(from("HOST").changes_to(&old).is_empty());
    }

    #[test]
    fn a_refusal_says_why_and_what_to_do() {
        let newer = PIPELINE.replace("10s", "3s");
        assert_eq!(refusal(&pipeline(PIPELINE).changes_to(&pipeline(&newer))), None);
        let newer = newer.replace("'127.0.0.1:0'", "'127.0.0.1:80'").replace("a.log", "c.log");
        let newer = newer.replace("hunter2", "hunter3").replace("overlong: skip", "overlong: stop");
        let refused = refusal(&pipeline(PIPELINE).changes_to(&pipeline(&newer)));
        insta::assert_snapshot!(refused.expect("refused"), @r#"
        these settings cannot change while the pipeline runs, so nothing was changed:
          control.listen: was 127.0.0.1:0, is 127.0.0.1:80 (the port is opened at the start); stop in order and start again
          inputs.old.file.overlong: was skip, is stop (it decides which records a journaled step has); stop in order and start again
          inputs.old.file.paths[0]: was a.log, is c.log (positions are those of the files that it finds); stop in order and start again with --accept, or with another --state-dir
          inputs.orders.kafka.properties."sasl.password": changed (the client is opened with it); stop in order and start again
        "#);
    }
}
