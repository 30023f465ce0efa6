//! Other programs that read the same topic, count its records and throw them away, each as fast as it can be set up.
//!
//! They are fetched from their registries into the target folder, by pip and Maven; kcat has to be installed. One that
//! cannot be had is in the report, with the reason. Those in Python and Java tell how long they took once they were
//! loaded, which is in their favour; kcat and lockgate are timed as whole processes.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use super::{TO_NULL, Topics, topic_to_its_end};
use crate::broker;
use crate::report::Row;
use crate::rounds::{Contestant, in_turn};
use crate::site::Site;

/// What is compared with, and how it comes here.
struct Peer {
    name: &'static str,
    kind: Kind,
    /// It gets this part of the records, so that the slow ones come to an end.
    part: u64,
}

enum Kind {
    /// The Debian package.
    Kcat,
    /// A package of PyPI, and the file of its script.
    Python(&'static str, &'static str),
    /// A pom with what is needed, and the class that is run.
    Java(&'static str, &'static str),
}

/// The goal of Maven that fetches what a pom names.
const COPY_JARS: &str = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";

const PEERS: [Peer; 6] = [
    Peer { name: "kcat", kind: Kind::Kcat, part: 1 },
    Peer { name: "bytewax", kind: Kind::Python("bytewax[kafka]", "bytewax_count.py"), part: 20 },
    Peer { name: "pathway", kind: Kind::Python("pathway", "pathway_count.py"), part: 40 },
    Peer {
        name: "quixstreams",
        kind: Kind::Python("quixstreams", "quixstreams_count.py"),
        part: 80,
    },
    Peer { name: "decaton", kind: Kind::Java("decaton.xml", "DecatonCount"), part: 1 },
    Peer {
        name: "parallel-consumer",
        kind: Kind::Java("parallel-consumer.xml", "ParallelConsumerCount"),
        part: 40,
    },
];

pub(super) fn measure(site: &Site, topics: &mut Topics) -> Result<Vec<Row>> {
    let (mut rows, mut ready) = (Vec::new(), Vec::new());
    for peer in PEERS {
        eprintln!("  fetching {}", peer.name);
        match peer.prepare(site) {
            Ok(program) => ready.push((peer, program)),
            Err(error) => {
                let why = format!("could not be had: {}", brief(&format!("{error:#}")));
                eprintln!("  {} {why}", peer.name);
                rows.push(Row::missing("peers", peer.name, "records/s", Some(why)));
            }
        }
    }
    let topic = topics.small_records(site)?;
    let pipeline = site.pipeline("peers", &format!("{}{TO_NULL}", topic_to_its_end(&topic)?))?;
    let mut running = Vec::new();
    for (peer, program) in ready {
        let records = (topic.records / peer.part).max(1);
        // Once to see that it works: one that does not is told as such, and the others go on.
        match peer.speed(site, &program, &topic.name, records) {
            Ok(_) => running.push((peer, program, records)),
            Err(error) => {
                let why = format!("could not be run: {}", brief(&format!("{error:#}")));
                eprintln!("  {} {why}", peer.name);
                rows.push(Row::missing("peers", peer.name, "records/s", Some(why)));
            }
        }
    }
    let mut contestants = vec![Contestant::new("lockgate, records/s", || {
        let state = site.gone("state")?;
        site.speed(topic.records, site.lockgate_run(&pipeline, &state))
    })];
    for (peer, program, records) in &running {
        let topic = topic.name.as_str();
        contestants
            .push(Contestant::new(peer.name, move || peer.speed(site, program, topic, *records)));
    }
    let found = in_turn(site, contestants)?;
    for ((peer, _, records), theirs) in running.iter().zip(&found[1..]) {
        let case = format!("{} records of 100 B to null", topic.records);
        let row =
            Row::compared("peers", case, "records/s", &found[0], (peer.name, theirs), Some(1.0));
        let part = format!("{} read {records} of them", peer.name);
        rows.push(if peer.part > 1 { row.noted(part) } else { row });
    }
    Ok(rows)
}

impl Peer {
    /// Fetches it, if it is not there; what to start.
    fn prepare(&self, site: &Site) -> Result<PathBuf> {
        let folder = site.target()?.join("bench-peers").join(self.name);
        match self.kind {
            Kind::Kcat => {
                site.time(words("kcat", &["-V"])).context("install the package kcat")?;
                Ok("kcat".into())
            }
            Kind::Python(package, _) => {
                let python = folder.join("bin").join("python");
                if !python.exists() {
                    site.time(words("python3", &["-m", "venv"]).with(&folder))?;
                }
                let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
                site.time(words(&python, &install).with(package))?;
                Ok(python)
            }
            Kind::Java(pom, class) => {
                let jars = folder.join("jars");
                let into = format!("-DoutputDirectory={}", jars.display());
                let maven = words("mvn", &["-q", "-B", COPY_JARS]).with(into).with("-f");
                site.time(maven.with(scripts()?.join(pom)))?;
                let javac = words("javac", &["-cp"]).with(jars.join("*")).with("-d");
                let javac =
                    javac.with(folder.join("classes")).with(scripts()?.join("Counting.java"));
                site.time(javac.with(scripts()?.join(format!("{class}.java"))))?;
                Ok(folder)
            }
        }
    }

    /// Records in a second.
    fn speed(&self, site: &Site, program: &Path, topic: &str, records: u64) -> Result<f64> {
        let (servers, count) = (broker::servers()?, records.to_string());
        let mut command = match self.kind {
            Kind::Kcat => {
                let mut kcat = limited(program);
                kcat.args([
                    "-C",
                    "-q",
                    "-e",
                    "-o",
                    "beginning",
                    "-f",
                    "\\n",
                    "-b",
                    &servers,
                    "-t",
                    topic,
                ]);
                // What it holds in memory is not bounded, so that it never waits: Debian's has no shorter wait.
                for property in [
                    "fetch.wait.max.ms=50",
                    "queued.max.messages.kbytes=2097151",
                    "queued.min.messages=10000000",
                ] {
                    kcat.args(["-X", property]);
                }
                return site.speed(records, kcat);
            }
            Kind::Python(_, script) => limited(program).with(scripts()?.join(script)),
            Kind::Java(_, class) => {
                let mut path = program.join("classes").into_os_string();
                path.push(":");
                path.push(program.join("jars").join("*"));
                limited("java").with("-Xmx2g").with("-cp").with(path).with(format!("peers.{class}"))
            }
        };
        command.args([&servers, topic, &count]);
        let ran = site.time(command)?;
        let seconds: f64 = ran
            .stdout
            .lines()
            .last()
            .unwrap_or_default()
            .trim()
            .parse()
            .context("it did not say how long it took")?;
        Ok(records as f64 / seconds)
    }
}

/// Where the scripts are, seen from the folder of the workspace.
fn scripts() -> Result<PathBuf> {
    let folder = PathBuf::from("xtask/bench/peers");
    if !folder.is_dir() {
        bail!("there is no {} here: start this by `cargo xtask bench`", folder.display());
    }
    Ok(folder)
}

/// The line of what went wrong that says most.
fn brief(text: &str) -> String {
    let with = |word| text.lines().find(|line| line.contains(word));
    let last = || text.lines().rev().find(|line| line.contains("rror"));
    let found = with("ould not").or_else(|| with("Failed")).or_else(last).or(text.lines().next());
    found.unwrap_or_default().trim().chars().take(300).collect()
}

/// A command that is ended when it takes far too long, so that one peer cannot hold up all.
fn limited(program: impl AsRef<OsStr>) -> Command {
    words("timeout", &["300"]).with(program)
}

fn words(program: impl AsRef<OsStr>, words: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(words);
    command
}

/// One word more.
trait With {
    fn with(self, word: impl AsRef<OsStr>) -> Command;
}

impl With for Command {
    fn with(mut self, word: impl AsRef<OsStr>) -> Command {
        self.arg(word);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reason_is_the_line_that_says_most() {
        let maven = "mvn failed:\n[ERROR] Could not find artifact a:b:1\n[ERROR] [Help 1] Error";
        assert_eq!(brief(maven), "[ERROR] Could not find artifact a:b:1");
        assert_eq!(brief("trace\nModuleNotFoundError: no x\n"), "ModuleNotFoundError: no x");
        assert_eq!(brief("it is not there"), "it is not there");
    }
}
