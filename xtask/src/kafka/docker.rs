//! Brokers as containers of Kafka's own image, on the host's network, so that loopback is the same inside.
//!
//! Data and log stay in the container, which a stop leaves and a wipe removes. On a desktop whose Docker runs
//! in a virtual machine, host networking has to be switched on in its settings.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::engine::{Engine, LOG_TAIL_LINES};
use super::folder::Folder;
use super::java::kafka_version;
use super::process::Signal;
use super::state::{Node, State};

/// The folder for data that the image makes and declares a volume.
const DATA: &str = "/var/lib/kafka/data";

const SETTINGS: &str = "/mnt/shared/config";

pub(super) struct Docker;

impl Engine for Docker {
    fn data(&self, _: &Folder, _: &Node) -> String {
        DATA.into()
    }

    fn prepare(&self, _: &Folder, _: &State) -> Result<()> {
        Ok(())
    }

    fn start(&self, folder: &Folder, state: &State, node: &Node) -> Result<Option<u32>> {
        let exists = succeeds(docker(&["inspect", &container(state, node)]));
        let start = if exists {
            docker(&["start", &container(state, node)])
        } else {
            run_command(folder, state, node)
        };
        output(start).map(|_| None)
    }

    fn is_running(&self, _: &Folder, state: &State, node: &Node) -> Result<bool> {
        let format = "{{.State.Running}}";
        let name = container(state, node);
        let found = docker(&["inspect", "--format", format, &name]).output();
        // One that does not exist is an error of Docker and does not run.
        let found = found.context("cannot start `docker`")?;
        Ok(String::from_utf8_lossy(&found.stdout).trim() == "true")
    }

    fn signal(&self, folder: &Folder, state: &State, node: &Node, signal: Signal) -> Result<()> {
        if !self.is_running(folder, state, node)? {
            return Ok(());
        }
        output(docker(&["kill", "--signal", signal.name(), &container(state, node)])).map(drop)
    }

    fn topics_tool(&self, _: &Folder, state: &State) -> Command {
        let node = state.nodes.first().map(|node| container(state, node)).unwrap_or_default();
        docker(&["exec", &node, "/opt/kafka/bin/kafka-topics.sh"])
    }

    fn remove(&self, state: &State, node: &Node) -> Result<()> {
        output(docker(&["rm", "--force", "--volumes", &container(state, node)])).map(drop)
    }

    fn log_tail(&self, _: &Folder, state: &State, node: &Node) -> String {
        let name = container(state, node);
        let lines = LOG_TAIL_LINES.to_string();
        let tail = docker(&["logs", "--tail", &lines, &name]).output().map(|tail| tail.stdout);
        let tail = String::from_utf8_lossy(&tail.unwrap_or_default()).into_owned();
        format!("{tail}the log is `docker logs {name}`")
    }
}

/// What keeps brokers from running here, if anything does.
pub(super) fn missing() -> Option<String> {
    let info = docker(&["info", "--format", "{{.ServerVersion}}"]).output();
    // Some versions succeed without an engine and say nothing.
    let answers =
        info.is_ok_and(|info| info.status.success() && !info.stdout.trim_ascii().is_empty());
    (!answers).then(|| "no Docker engine answers".into())
}

fn container(state: &State, node: &Node) -> String {
    format!("lockgate-kafka-{}-{}", state.cluster_id, node.id)
}

/// Formatting is part of the container's command: it is done once, whatever else the image would do.
fn run_command(folder: &Folder, state: &State, node: &Node) -> Command {
    let settings = format!("{SETTINGS}/server.properties");
    let script = format!(
        "/opt/kafka/bin/kafka-storage.sh format --ignore-formatted --cluster-id {} --config {settings} && \
         exec /opt/kafka/bin/kafka-server-start.sh {settings}",
        state.cluster_id
    );
    let heap = if state.nodes.len() > 1 { "-Xmx320m" } else { "-Xmx1536m" };
    let mount = format!("{}:{SETTINGS}:ro", folder.settings_folder(node.id).display());
    let mut command = docker(&["run", "--detach", "--network", "host"]);
    command
        .args(["--name", &container(state, node)])
        .args(["--volume", &mount])
        .args(["--env", &format!("KAFKA_HEAP_OPTS=-Xms64m {heap} -XX:+UseSerialGC")])
        // The script that starts Java asks for another collector otherwise.
        .args(["--env", "KAFKA_JVM_PERFORMANCE_OPTS=-server"])
        .arg(format!("apache/kafka:{}", kafka_version()))
        .args(["sh", "-c", &script]);
    command
}

fn docker(arguments: &[&str]) -> Command {
    let mut command = Command::new("docker");
    command.args(arguments).stdin(Stdio::null());
    command
}

fn succeeds(mut command: Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn output(mut command: Command) -> Result<Vec<u8>> {
    let output = command.output().context("cannot start `docker`")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?} failed: {said}");
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::super::state::Mode;
    use super::*;

    #[test]
    fn a_container_gets_its_settings_and_the_network_of_the_host() {
        let folder = Folder::at("/k".into());
        let mut state = State::new(Mode::Docker, &[1, 2]);
        state.cluster_id = "ID".into();
        let command = run_command(&folder, &state, &state.nodes[0]);
        let words: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        let expected = [
            "run",
            "--detach",
            "--network",
            "host",
            "--name",
            "lockgate-kafka-ID-1",
            "--volume",
            "/k/config/1:/mnt/shared/config:ro",
            "--env",
            "KAFKA_HEAP_OPTS=-Xms64m -Xmx1536m -XX:+UseSerialGC",
            "--env",
            "KAFKA_JVM_PERFORMANCE_OPTS=-server",
            &format!("apache/kafka:{}", kafka_version()),
            "sh",
            "-c",
            "/opt/kafka/bin/kafka-storage.sh format --ignore-formatted --cluster-id ID --config \
             /mnt/shared/config/server.properties && exec /opt/kafka/bin/kafka-server-start.sh \
             /mnt/shared/config/server.properties",
        ];
        assert_eq!(words, expected);
    }
}
