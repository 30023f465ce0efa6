//! What brokers run in: the little that Docker and plain Java must each know how to do.
//!
//! And which of them to take. When what is done is for `cluster`.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::docker::Docker;
use super::folder::Folder;
use super::java::Java;
use super::process::Signal;
use super::state::{Mode, Node, State};

/// How many lines of a log are shown when a broker does not start.
pub(super) const LOG_TAIL_LINES: usize = 30;

/// One way to run brokers.
pub(super) trait Engine {
    /// Where a broker's process sees its data.
    fn data(&self, folder: &Folder, node: &Node) -> String;

    /// Whatever comes before the first start; the settings are written. Called before each start.
    fn prepare(&self, folder: &Folder, state: &State) -> Result<()>;

    /// Starts the process and returns its number, if that is of use.
    fn start(&self, folder: &Folder, state: &State, node: &Node) -> Result<Option<u32>>;

    fn is_running(&self, folder: &Folder, state: &State, node: &Node) -> Result<bool>;

    /// Nothing happens to a broker that does not run.
    fn signal(&self, folder: &Folder, state: &State, node: &Node, signal: Signal) -> Result<()>;

    /// Kafka's own tool for topics, without its arguments.
    fn topics_tool(&self, folder: &Folder, state: &State) -> Command;

    /// Removes what is not in the folder.
    fn remove(&self, state: &State, node: &Node) -> Result<()>;

    /// The end of the log and where all of it is.
    fn log_tail(&self, folder: &Folder, state: &State, node: &Node) -> String;
}

pub(super) fn of(mode: Mode) -> &'static dyn Engine {
    match mode {
        Mode::Docker => &Docker,
        Mode::Java => &Java,
    }
}

/// What there is to run a broker in.
#[derive(Debug, PartialEq)]
pub(super) enum Choice {
    Available(Mode),
    Missing { why: String, remedy: String },
}

/// What the cluster ran in before, because its data are there; else Docker if it answers; else Java.
pub(super) fn choose(before: Option<Mode>, jars: &Path) -> Choice {
    decide(before, super::docker::missing, || super::java::missing(jars))
}

/// The functions say what is missing for each, if anything is.
fn decide(
    before: Option<Mode>,
    docker: impl Fn() -> Option<String>,
    java: impl Fn() -> Option<String>,
) -> Choice {
    let mut reasons = Vec::new();
    for mode in [Mode::Docker, Mode::Java] {
        if before.is_some_and(|before| before != mode) {
            continue;
        }
        let missing = match mode {
            Mode::Docker => docker(),
            Mode::Java => java(),
        };
        match missing {
            None => return Choice::Available(mode),
            Some(reason) => reasons.push(reason),
        }
    }
    Choice::Missing {
        why: reasons.join(", and "),
        remedy: "start Docker, or install Java 17 or later and Maven (Debian: `apt-get install \
                 openjdk-17-jre-headless maven`), or name a broker, for example \
                 `LOCKGATE_KAFKA=localhost:9092`"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: Option<Mode>, docker: bool, java: bool, expected: Result<Mode, &str>) {
        let missing = |there: bool, what: &str| (!there).then(|| format!("no {what}"));
        let choice = decide(before, || missing(docker, "Docker"), || missing(java, "Java"));
        match choice {
            Choice::Available(mode) => assert_eq!(Ok(mode), expected),
            Choice::Missing { why, .. } => assert_eq!(Err(why.as_str()), expected),
        }
    }

    #[test]
    fn docker_comes_before_java() {
        check(None, true, true, Ok(Mode::Docker));
        check(None, false, true, Ok(Mode::Java));
        check(None, false, false, Err("no Docker, and no Java"));
    }

    #[test]
    fn a_cluster_stays_where_its_data_are() {
        check(Some(Mode::Java), true, true, Ok(Mode::Java));
        check(Some(Mode::Java), true, false, Err("no Java"));
        check(Some(Mode::Docker), false, true, Err("no Docker"));
    }
}
