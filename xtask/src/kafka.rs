//! `cargo xtask kafka`: a real Kafka on loopback for tests and for trying things out.
//!
//! It is the broker that LOCKGATE_KAFKA names, else one in Docker, else one from jars with Java and Maven.
//! Here is who decides which; how a cluster of ours lives is in `cluster`. Not for anything but tests:
//! nothing is encrypted, and the settings favour speed over safety.

mod cluster;
mod docker;
mod engine;
mod folder;
mod java;
mod ports;
mod probe;
mod process;
mod settings;
mod state;

use std::env;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use cluster::{Cluster, Nodes};
use engine::Choice;

/// Names a broker that is not ours: its bootstrap servers, `HOST:PORT` with commas between.
pub(crate) const GIVEN: &str = "LOCKGATE_KAFKA";

/// How long a broker that is not ours may take to answer.
const GIVEN_ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// What to do, and with which cluster.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,

    /// A cluster of its own beside the usual one, for tests that kill brokers; LOCKGATE_KAFKA is not asked.
    #[arg(long, global = true, value_parser = name)]
    name: Option<String>,
}

#[derive(clap::Subcommand)]
enum Verb {
    /// Start what is not running and print `LOCKGATE_KAFKA=...` when it answers.
    Start {
        /// How many brokers: 1, or 3 that can lose one. As many as there were if not said, at first 1.
        #[arg(long, value_parser = brokers)]
        brokers: Option<u32>,
        /// Only this broker of a cluster that was started before, by its number.
        #[arg(long, conflicts_with = "brokers")]
        only: Option<u32>,
    },
    /// Stop in order: data and ports are kept for the next start.
    Stop {
        /// Only this broker.
        #[arg(long)]
        only: Option<u32>,
    },
    /// Stop with SIGKILL, as a crash would.
    Kill {
        /// Only this broker.
        #[arg(long)]
        only: Option<u32>,
    },
    /// Print `LOCKGATE_KAFKA=...`, and on stderr the state of each broker; fails when none runs.
    Status,
    /// Make a topic in the running cluster, unless it exists.
    Topic {
        /// Its name.
        topic: String,
        /// How many partitions it gets.
        #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
        partitions: u32,
    },
    /// Stop, and delete the data.
    Wipe,
}

/// A broker to work with.
pub(crate) enum Broker {
    /// Named by LOCKGATE_KAFKA, with these bootstrap servers. It is never stopped or wiped.
    Given(String),
    /// Ours.
    Started(Started),
    /// None, and why.
    Unavailable {
        /// What is missing.
        why: String,
        /// How to get it.
        remedy: String,
    },
}

impl Broker {
    /// The bootstrap servers, for something that cannot do without.
    pub(crate) fn needed(&self) -> Result<&str> {
        match self {
            Broker::Given(bootstrap) => Ok(bootstrap),
            Broker::Started(started) => Ok(started.bootstrap()),
            Broker::Unavailable { why, remedy } => {
                bail!("there is no Kafka broker: {why}; {remedy}")
            }
        }
    }

    /// The version of Kafka, unless the broker is not ours.
    pub(crate) fn version(&self) -> Option<&'static str> {
        matches!(self, Broker::Started(_)).then(java::kafka_version)
    }
}

/// A cluster of ours that answers. Dropping this stops it, unless it ran before.
pub(crate) struct Started {
    cluster: Cluster,
    bootstrap: String,
    ran_before: bool,
}

impl Started {
    /// The bootstrap servers.
    pub(crate) fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Lets it run on.
    pub(crate) fn leave_running(mut self) {
        self.ran_before = true;
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if !self.ran_before
            && let Err(error) = self.cluster.stop(Nodes::All)
        {
            eprintln!("warning: cannot stop Kafka: {error:#}; try `cargo xtask kafka stop`");
        }
    }
}

/// Which broker is wanted.
#[derive(Default)]
pub(crate) struct Wanted {
    /// A cluster of its own, never the one that LOCKGATE_KAFKA names.
    pub(crate) name: Option<String>,
    /// How many brokers: 1 or 3; without, as many as there were, at first 1.
    pub(crate) brokers: Option<u32>,
}

/// A broker that answers, started if need be.
///
/// That there is none to be had is no error; that one is named, runs or can be started and fails is.
pub(crate) fn ensure(wanted: Wanted) -> Result<Broker> {
    if let Some(bootstrap) = given(wanted.name.as_deref()) {
        probe::answers(&bootstrap, GIVEN_ANSWERS_WITHIN)
            .with_context(|| format!("{GIVEN} names a broker that does not answer"))?;
        return Ok(Broker::Given(bootstrap));
    }
    let cluster = Cluster::named(wanted.name)?;
    let mode = match cluster.choose_engine()? {
        Choice::Available(mode) => mode,
        Choice::Missing { why, remedy } => return Ok(Broker::Unavailable { why, remedy }),
    };
    let ran_before = cluster.start(mode, wanted.brokers)?;
    let bootstrap = cluster.bootstrap()?;
    Ok(Broker::Started(Started { cluster, bootstrap, ran_before }))
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let name = arguments.name.clone();
    match arguments.verb {
        Verb::Start { brokers, only: None } => return start(Wanted { name, brokers }),
        Verb::Status => return status(name),
        _ => {}
    }
    let given = given(name.as_deref());
    let cluster = Cluster::named(name)?;
    // What `start` printed may have been exported.
    let is_ours = |given: &String| cluster.bootstrap().is_ok_and(|ours| ours == *given);
    if given.as_ref().is_some_and(|given| !is_ours(given)) {
        if let Verb::Topic { topic, .. } = &arguments.verb {
            bail!("{GIVEN} names a broker that is not ours: make {topic} with its own tools");
        }
        println!("{GIVEN} names a broker that is not ours: nothing done");
        return Ok(());
    }
    match &arguments.verb {
        Verb::Start { only, .. } => cluster.start_again(Nodes::from(*only)),
        Verb::Stop { only } => cluster.stop(Nodes::from(*only)),
        Verb::Kill { only } => cluster.kill(Nodes::from(*only)),
        Verb::Topic { topic, partitions } => cluster.make_topic(topic, *partitions),
        Verb::Wipe => cluster.wipe(),
        Verb::Status => Ok(()),
    }
}

fn start(wanted: Wanted) -> Result<()> {
    match ensure(wanted)? {
        Broker::Given(bootstrap) => {
            eprintln!("{GIVEN} names a broker that answers: nothing to start");
            println!("{GIVEN}={bootstrap}");
        }
        Broker::Started(started) => {
            println!("{GIVEN}={}", started.bootstrap());
            started.leave_running();
        }
        Broker::Unavailable { why, remedy } => bail!("no Kafka to start: {why}; {remedy}"),
    }
    Ok(())
}

fn status(name: Option<String>) -> Result<()> {
    if let Some(bootstrap) = given(name.as_deref()) {
        probe::answers(&bootstrap, GIVEN_ANSWERS_WITHIN)
            .with_context(|| format!("{GIVEN} names a broker that does not answer"))?;
        println!("{GIVEN}={bootstrap}");
        return Ok(());
    }
    Cluster::named(name)?.status()
}

/// The broker that is not ours, if there is one and the usual cluster is meant.
fn given(name: Option<&str>) -> Option<String> {
    let bootstrap = env::var(GIVEN).ok().filter(|bootstrap| !bootstrap.trim().is_empty());
    bootstrap.filter(|_| name.is_none())
}

fn brokers(typed: &str) -> Result<u32, String> {
    match typed {
        "1" => Ok(1),
        "3" => Ok(3),
        _ => Err("1 or 3".into()),
    }
}

/// A name becomes a folder.
fn name(typed: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if typed.is_empty() || !typed.chars().all(is_plain) {
        return Err("letters, digits, `-` and `_` only".into());
    }
    Ok(typed.into())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn typed(line: &str) -> Result<Arguments, clap::Error> {
        let words = std::iter::once("kafka").chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.arguments)
    }

    #[test]
    fn there_is_one_broker_or_there_are_three() {
        let parsed = typed("start --brokers 3 --name leader-loss").unwrap();
        assert!(matches!(parsed.verb, Verb::Start { brokers: Some(3), only: None }));
        assert_eq!(parsed.name.as_deref(), Some("leader-loss"));
        assert!(typed("start --brokers 2").is_err());
    }

    #[test]
    fn a_name_stays_in_its_folder() {
        assert!(typed("stop --name ../..").is_err());
        assert!(typed("stop --name a/b").is_err());
        assert!(typed("stop").is_ok());
    }

    #[test]
    fn one_broker_is_started_alone_only_by_its_number() {
        assert!(typed("start --only 2 --brokers 3").is_err());
        assert!(matches!(typed("kill --only 2").unwrap().verb, Verb::Kill { only: Some(2) }));
    }
}
