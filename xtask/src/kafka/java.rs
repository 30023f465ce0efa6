//! Brokers as processes of Java, from jars that Maven fetches.
//!
//! `kafka/pom.xml` says which; that is also where the version of Kafka is written, for Docker too.

use std::collections::VecDeque;
use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::cargo::workspace_root;

use super::engine::{Engine, LOG_TAIL_LINES};
use super::folder::Folder;
use super::process::{self, BROKER_CLASS, Signal};
use super::state::{Node, State};

/// The jars that are needed, as Maven reads it.
const POM: &str = include_str!("../../kafka/pom.xml");

/// A copy of the pom beside the jars says that they are complete.
const COMPLETE: &str = "pom.xml";

const OLDEST_JAVA: u32 = 17;

pub(super) struct Java;

impl Engine for Java {
    fn data(&self, folder: &Folder, node: &Node) -> String {
        folder.data(node.id).to_string_lossy().into_owned()
    }

    fn prepare(&self, folder: &Folder, state: &State) -> Result<()> {
        fetch_jars(folder)?;
        for parent in [folder.log(0).parent(), Some(&folder.scratch())].into_iter().flatten() {
            fs::create_dir_all(parent).with_context(|| format!("creating {}", parent.display()))?;
        }
        // All at once: each takes seconds of starting Java.
        let new = state.nodes.iter().filter(|node| !is_formatted(folder, node));
        let formatting = new.map(|node| -> Result<_> {
            let mut command = format(folder, state, node);
            let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
            child.spawn().context("cannot start `java`")
        });
        for child in formatting.collect::<Result<Vec<_>>>()? {
            let output = child.wait_with_output()?;
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "cannot format the data folder:\n{said}");
        }
        Ok(())
    }

    fn start(&self, folder: &Folder, state: &State, node: &Node) -> Result<Option<u32>> {
        let path = folder.log(node.id);
        let log = File::options().append(true).create(true).open(&path);
        let log = log.with_context(|| format!("opening {}", path.display()))?;
        let mut command = broker(folder, node, state.nodes.len());
        // A group of its own: what ends us with Ctrl-C does not end the broker.
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log).process_group(0);
        let mut child = command.spawn().context("cannot start `java`")?;
        process::wait_until_named(&mut child)?;
        Ok(Some(child.id()))
    }

    fn is_running(&self, folder: &Folder, _: &State, node: &Node) -> Result<bool> {
        let settings = folder.settings(node.id);
        Ok(node.pid.is_some_and(|pid| process::is_broker(pid, &settings)))
    }

    fn signal(&self, folder: &Folder, _: &State, node: &Node, signal: Signal) -> Result<()> {
        let settings = folder.settings(node.id);
        node.pid.map_or(Ok(()), |pid| process::signal(pid, &settings, signal))
    }

    fn topics_tool(&self, folder: &Folder, _: &State) -> Command {
        let mut command = java_tool(folder);
        command.arg("org.apache.kafka.tools.TopicCommand");
        command
    }

    fn remove(&self, _: &State, _: &Node) -> Result<()> {
        Ok(())
    }

    fn log_tail(&self, folder: &Folder, _: &State, node: &Node) -> String {
        let path = folder.log(node.id);
        format!("{}the log is {}", tail(&path).unwrap_or_default(), path.display())
    }
}

/// The version of Kafka in the pom.
pub(super) fn kafka_version() -> &'static str {
    let rest = POM.split_once("<kafka.version>").map_or("", |(_, rest)| rest);
    rest.split_once("</kafka.version>").map_or("", |(version, _)| version)
}

/// What keeps brokers from running here, if anything does.
pub(super) fn missing(jars: &Path) -> Option<String> {
    let Ok(said) = Command::new(java()).arg("-version").output() else {
        return Some("there is no Java".into());
    };
    match java_version(&String::from_utf8_lossy(&said.stderr)) {
        Some(version) if version >= OLDEST_JAVA => {}
        Some(version) => return Some(format!("Java is version {version}, not {OLDEST_JAVA}")),
        None => return Some("`java -version` does not say its version".into()),
    }
    let has_maven = || Command::new("mvn").arg("--version").output().is_ok();
    (!has_jars(jars) && !has_maven()).then(|| "there is no Maven to fetch Kafka with".into())
}

/// The number in `openjdk version "17.0.15" 2025-04-15`; what came before Java 9 says `"1.8.0_292"`.
fn java_version(said: &str) -> Option<u32> {
    let quoted = said.lines().find_map(|line| line.split_once("version \""))?.1;
    quoted.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn java() -> PathBuf {
    let home = env::var_os("JAVA_HOME").filter(|home| !home.is_empty());
    home.map_or_else(|| "java".into(), |home| Path::new(&home).join("bin/java"))
}

fn has_jars(jars: &Path) -> bool {
    fs::read_to_string(jars.join(COMPLETE)).is_ok_and(|pom| pom == POM)
}

fn fetch_jars(folder: &Folder) -> Result<()> {
    let _lock = folder.lock_jars()?;
    let jars = folder.jars();
    if has_jars(&jars) {
        return Ok(());
    }
    eprintln!("fetching Kafka {} with Maven", kafka_version());
    let _ = fs::remove_dir_all(&jars);
    let output = maven(&jars)?.output().context("cannot start `mvn`")?;
    ensure!(
        output.status.success(),
        "Maven cannot fetch Kafka {}:\n{}{}",
        kafka_version(),
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    fs::write(jars.join(COMPLETE), POM).with_context(|| format!("writing {}", jars.display()))
}

fn maven(jars: &Path) -> Result<Command> {
    let mut command = Command::new("mvn");
    command
        .args(["--quiet", "--batch-mode", "--file"])
        .arg(workspace_root()?.join("xtask/kafka/pom.xml"))
        .args(["dependency:copy-dependencies", "-DincludeScope=runtime"])
        .arg(format!("-DoutputDirectory={}", jars.display()))
        .stdin(Stdio::null());
    Ok(command)
}

/// What Kafka writes last when it formats.
fn is_formatted(folder: &Folder, node: &Node) -> bool {
    folder.data(node.id).join("meta.properties").exists()
}

/// Java for a tool that comes with the jars, which is still to be named.
fn java_tool(folder: &Folder) -> Command {
    let mut command = Command::new(java());
    command
        .args(["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData"])
        .arg("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn")
        .arg("-cp")
        .arg(folder.jars().join("*"));
    command
}

fn format(folder: &Folder, state: &State, node: &Node) -> Command {
    let mut command = java_tool(folder);
    command
        .args(["kafka.tools.StorageTool", "format", "--ignore-formatted"])
        .args(["--cluster-id", &state.cluster_id, "--config"])
        .arg(folder.settings(node.id));
    command
}

fn broker(folder: &Folder, node: &Node, brokers: usize) -> Command {
    let mut command = Command::new(java());
    command
        .args(["-Xms64m", if brokers > 1 { "-Xmx320m" } else { "-Xmx1536m" }])
        // Compiling little starts sooner, and a broker is here for seconds or minutes.
        .args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError"])
        // What a killed process leaves must be in our folder.
        .arg("-XX:-UsePerfData")
        .arg(format!("-Djava.io.tmpdir={}", folder.scratch().display()))
        .arg("-Djava.net.preferIPv4Stack=true")
        .arg("-Dorg.slf4j.simpleLogger.showDateTime=true")
        .arg("-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd'T'HH:mm:ss.SSS")
        .arg("-cp")
        .arg(folder.jars().join("*"))
        .arg(BROKER_CLASS)
        .arg(folder.settings(node.id));
    command
}

/// The last lines of the file.
fn tail(path: &Path) -> Option<String> {
    let mut last = VecDeque::new();
    for line in BufReader::new(File::open(path).ok()?).split(b'\n') {
        if last.len() == LOG_TAIL_LINES {
            last.pop_front();
        }
        last.push_back(String::from_utf8_lossy(&line.ok()?).into_owned() + "\n");
    }
    Some(last.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::super::state::Mode;
    use super::*;

    #[track_caller]
    fn shown(command: &Command) -> String {
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        words.join(" ")
    }

    #[test]
    fn the_version_of_kafka_is_in_the_pom() {
        let version: Vec<&str> = kafka_version().split('.').collect();
        assert_eq!(version.len(), 3, "{version:?}");
        assert_eq!(version[0], "4");
    }

    #[test]
    fn the_version_of_java_is_the_first_number() {
        let check = |said: &str, expected| assert_eq!(java_version(said), expected, "{said}");
        check("openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime", Some(17));
        check("Picked up JAVA_TOOL_OPTIONS: -Da\nopenjdk version \"25\" 2025-09-16", Some(25));
        check("java version \"1.8.0_292\"", Some(1));
        check("sh: java: not found", None);
    }

    #[test]
    fn a_broker_is_started_so_that_it_is_found_again() {
        let folder = Folder::at("/k".into());
        let state = State::new(Mode::Java, &[1, 2]);
        let line = shown(&broker(&folder, &state.nodes[0], 1));
        assert!(line.starts_with("-Xms64m -Xmx1536m -XX:+UseSerialGC "), "{line}");
        let end = " -cp /k/jars/* kafka.Kafka /k/config/1/server.properties";
        assert!(line.ends_with(end), "{line}");
        let line = shown(&format(&folder, &state, &state.nodes[0]));
        let end = format!(
            " kafka.tools.StorageTool format --ignore-formatted --cluster-id {} --config \
             /k/config/1/server.properties",
            state.cluster_id
        );
        assert!(line.ends_with(&end), "{line}");
    }

    #[test]
    fn of_a_log_the_end_is_shown() {
        let path = env::temp_dir().join(format!("lockgate-kafka-log-{}", std::process::id()));
        let lines: Vec<String> = (1..=100).map(|number| number.to_string()).collect();
        fs::write(&path, lines.join("\n")).unwrap();
        let shown = tail(&path).unwrap();
        assert_eq!(shown.lines().count(), LOG_TAIL_LINES);
        assert!(shown.ends_with("\n99\n100\n"), "{shown}");
        fs::remove_file(&path).unwrap();
        assert_eq!(tail(&path), None);
    }
}
