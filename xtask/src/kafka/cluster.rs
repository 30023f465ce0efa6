//! The life of a cluster: start, crash, start again, stop, wipe, and when it counts as ready.
//!
//! What is done to a single broker is for the engines.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use super::engine::{self, Choice};
use super::folder::Folder;
use super::process::Signal;
use super::state::{Mode, Node, State};
use super::{GIVEN, ports, probe, settings};

/// From starting a process until it answers; on a busy machine Java alone takes seconds.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// From asking a process to stop until it is killed.
const STOPS_WITHIN: Duration = Duration::from_secs(20);

/// How long one question to a broker may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(2);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Which brokers are meant.
#[derive(Clone, Copy)]
pub(super) enum Nodes {
    All,
    Only(u32),
}

impl From<Option<u32>> for Nodes {
    fn from(only: Option<u32>) -> Self {
        only.map_or(Nodes::All, Nodes::Only)
    }
}

impl Nodes {
    fn has(self, node: &Node) -> bool {
        match self {
            Nodes::All => true,
            Nodes::Only(id) => id == node.id,
        }
    }
}

pub(super) struct Cluster {
    name: Option<String>,
    folder: Folder,
}

impl Cluster {
    pub(super) fn named(name: Option<String>) -> Result<Self> {
        let folder = Folder::of(name.as_deref())?;
        Ok(Self { name, folder })
    }

    /// What it ran in before, or else the best there is.
    pub(super) fn choose_engine(&self) -> Result<Choice> {
        let before = State::read(&self.folder.state())?;
        Ok(engine::choose(before.map(|state| state.mode), &self.folder.jars()))
    }

    pub(super) fn bootstrap(&self) -> Result<String> {
        Ok(self.existing()?.bootstrap())
    }

    /// Starts every broker that does not run and waits until all are ready. Says whether any ran before.
    pub(super) fn start(&self, mode: Mode, brokers: Option<u32>) -> Result<bool> {
        let _lock = self.folder.lock()?;
        let state = match State::read(&self.folder.state())? {
            Some(state) => {
                let there = state.nodes.len();
                if let Some(wanted) = brokers.filter(|wanted| *wanted as usize != there) {
                    bail!(
                        "this cluster has {there} broker(s), not {wanted}: delete it with `{}`, or start \
                         another one beside it with `--name`",
                        self.verb("wipe")
                    );
                }
                state
            }
            None => self.create(mode, brokers.unwrap_or(1))?,
        };
        let ran_before = self.bring_up(state, Nodes::All)?;
        Ok(ran_before > 0)
    }

    /// Starts what does not run of a cluster that exists, and waits until that is ready.
    pub(super) fn start_again(&self, nodes: Nodes) -> Result<()> {
        let _lock = self.folder.lock()?;
        let state = self.existing()?;
        check_number(&state, nodes)?;
        let bootstrap = state.bootstrap();
        self.bring_up(state, nodes)?;
        println!("{GIVEN}={bootstrap}");
        Ok(())
    }

    /// Asks in order, and kills what does not stop. Stopping what does not run is no error.
    pub(super) fn stop(&self, nodes: Nodes) -> Result<()> {
        self.end(nodes, Signal::Term)
    }

    pub(super) fn kill(&self, nodes: Nodes) -> Result<()> {
        self.end(nodes, Signal::Kill)
    }

    pub(super) fn wipe(&self) -> Result<()> {
        let _lock = self.folder.lock()?;
        if let Some(mut state) = State::read(&self.folder.state())? {
            self.end_nodes(&mut state, Nodes::All, Signal::Kill)?;
            for node in &state.nodes {
                engine::of(state.mode).remove(&state, node)?;
            }
        }
        self.folder.wipe()?;
        eprintln!("nothing is left of the cluster");
        Ok(())
    }

    /// Makes a topic, unless it exists, with a copy on every broker, and waits until the brokers know it.
    pub(super) fn make_topic(&self, topic: &str, partitions: u32) -> Result<()> {
        let state = self.existing()?;
        let tool = |arguments: &[&str]| {
            let mut command = engine::of(state.mode).topics_tool(&self.folder, &state);
            command.args(["--bootstrap-server", &state.bootstrap(), "--topic", topic]);
            command.args(arguments).output().context("cannot start Kafka's tool for topics")
        };
        let (partitions, copies) = (partitions.to_string(), state.nodes.len().to_string());
        let numbers = ["--partitions", &partitions, "--replication-factor", &copies];
        let output = tool(&[&["--create", "--if-not-exists"][..], &numbers[..]].concat())?;
        ensure!(
            output.status.success(),
            "topic {topic} cannot be made (is the broker running? `{}`):\n{}{}",
            self.verb("status"),
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        let begun = Instant::now();
        while !tool(&["--describe"])?.status.success() {
            ensure!(begun.elapsed() < READY_WITHIN, "topic {topic} was made and is not known yet");
        }
        Ok(())
    }

    /// Prints the bootstrap servers and, on stderr, the state of each broker; fails when none runs.
    pub(super) fn status(&self) -> Result<()> {
        let state = State::read(&self.folder.state())?;
        let Some(state) = state else {
            bail!("no Kafka runs; start one with `{}`", self.verb("start"));
        };
        let mut any_runs = false;
        for node in &state.nodes {
            let runs = engine::of(state.mode).is_running(&self.folder, &state, node)?;
            any_runs |= runs;
            let answer = probe::alive_brokers(&node.address(), ANSWERS_WITHIN);
            let condition = match (runs, answer) {
                (false, _) => "stopped".into(),
                (true, Ok(alive)) => format!("answers and knows the brokers {alive:?} to be alive"),
                (true, Err(error)) => format!("runs and does not answer: {error:#}"),
            };
            let pid = node.pid.map_or_else(String::new, |pid| format!(", process {pid}"));
            let pid = if runs { pid } else { String::new() };
            eprintln!("broker {} at {}{pid}: {condition}", node.id, node.address());
        }
        ensure!(any_runs, "no Kafka runs; start it again with `{}`", self.verb("start"));
        println!("{GIVEN}={}", state.bootstrap());
        Ok(())
    }

    /// A cluster that was never started. What may lie around from one before is deleted.
    fn create(&self, mode: Mode, brokers: u32) -> Result<State> {
        self.folder.wipe()?;
        let state = State::new(mode, &ports::free(2 * brokers as usize)?);
        state.write(&self.folder.state())?;
        Ok(state)
    }

    /// Starts those of the nodes that do not run, and waits for all of them. Returns how many brokers ran
    /// before.
    fn bring_up(&self, mut state: State, nodes: Nodes) -> Result<usize> {
        let engine = engine::of(state.mode);
        let mut running = Vec::new();
        for node in &state.nodes {
            running.push(engine.is_running(&self.folder, &state, node)?);
        }
        let ran_before = running.iter().filter(|runs| **runs).count();
        let down: Vec<usize> = (0..running.len())
            .filter(|index| nodes.has(&state.nodes[*index]) && !running[*index])
            .collect();
        if down.is_empty() {
            eprintln!("already running: {ran_before} broker(s)");
        } else {
            self.write_settings(&state)?;
            engine.prepare(&self.folder, &state)?;
        }
        let ready = self
            .start_processes(&mut state, &down)
            .and_then(|()| self.wait_until_ready(&state, nodes));
        if ready.is_err() {
            for index in down {
                let started = Nodes::Only(state.nodes[index].id);
                self.end_nodes(&mut state, started, Signal::Kill)?;
            }
        }
        ready.map(|()| ran_before)
    }

    /// Before each start, so that a cluster that was kept gets settings that changed meanwhile.
    fn write_settings(&self, state: &State) -> Result<()> {
        for node in &state.nodes {
            let path = self.folder.settings(node.id);
            let data = engine::of(state.mode).data(&self.folder, node);
            fs::create_dir_all(self.folder.settings_folder(node.id))
                .and_then(|()| fs::write(&path, settings::render(state, node, &data)))
                .with_context(|| format!("writing {}", path.display()))?;
        }
        Ok(())
    }

    fn start_processes(&self, state: &mut State, indexes: &[usize]) -> Result<()> {
        for index in indexes {
            let node = &state.nodes[*index];
            self.check_ports(node)?;
            let pid = engine::of(state.mode).start(&self.folder, state, node)?;
            state.nodes[*index].pid = pid;
            // At once, so that an interrupted start leaves nothing that cannot be stopped.
            state.write(&self.folder.state())?;
        }
        Ok(())
    }

    fn check_ports(&self, node: &Node) -> Result<()> {
        for port in [node.port, node.controller_port] {
            ensure!(
                ports::is_free(port),
                "port {port} of broker {} was taken by another program meanwhile; `{}` lets the next \
                 start choose others",
                node.id,
                self.verb("wipe")
            );
        }
        Ok(())
    }

    /// Each of the nodes must answer and know all it should wait for: every broker when all were started,
    /// itself when only it was.
    fn wait_until_ready(&self, state: &State, nodes: Nodes) -> Result<()> {
        let engine = engine::of(state.mode);
        let deadline = Instant::now() + READY_WITHIN;
        let expected: Vec<u32> =
            state.nodes.iter().filter(|node| nodes.has(node)).map(|node| node.id).collect();
        for node in state.nodes.iter().filter(|node| nodes.has(node)) {
            loop {
                let alive = probe::alive_brokers(&node.address(), ANSWERS_WITHIN);
                let knows = |id: &u32| alive.as_ref().is_ok_and(|alive| alive.contains(id));
                if expected.iter().all(knows) {
                    break;
                }
                let log = || engine.log_tail(&self.folder, state, node);
                if !engine.is_running(&self.folder, state, node)? {
                    bail!("broker {} ended while it started:\n{}", node.id, log());
                }
                if Instant::now() > deadline {
                    bail!("broker {} is not ready after {READY_WITHIN:?}:\n{}", node.id, log());
                }
                thread::sleep(PAUSE);
            }
            probe::answers(&node.address(), ANSWERS_WITHIN)?;
        }
        Ok(())
    }

    fn end(&self, nodes: Nodes, signal: Signal) -> Result<()> {
        let _lock = self.folder.lock()?;
        match State::read(&self.folder.state())? {
            Some(mut state) => {
                check_number(&state, nodes)?;
                self.end_nodes(&mut state, nodes, signal)
            }
            None => {
                eprintln!("no Kafka runs");
                Ok(())
            }
        }
    }

    /// All at the same time; returns when they are gone.
    fn end_nodes(&self, state: &mut State, nodes: Nodes, signal: Signal) -> Result<()> {
        let engine = engine::of(state.mode);
        let meant = |node: &&Node| nodes.has(node);
        for node in state.nodes.iter().filter(meant) {
            engine.signal(&self.folder, state, node, signal)?;
        }
        let deadline = Instant::now() + STOPS_WITHIN;
        let mut was_killed = false;
        for node in state.nodes.iter().filter(meant) {
            while engine.is_running(&self.folder, state, node)? {
                if Instant::now() > deadline {
                    ensure!(!was_killed, "broker {} does not end even when killed", node.id);
                    was_killed = true;
                    eprintln!("broker {} does not stop: killing it", node.id);
                    engine.signal(&self.folder, state, node, Signal::Kill)?;
                }
                thread::sleep(PAUSE);
            }
        }
        for node in state.nodes.iter_mut().filter(|node| nodes.has(node)) {
            node.pid = None;
        }
        state.write(&self.folder.state())
    }

    fn existing(&self) -> Result<State> {
        State::read(&self.folder.state())?
            .with_context(|| format!("there is no such cluster; `{}` makes it", self.verb("start")))
    }

    /// A command about this cluster, as it is typed.
    fn verb(&self, verb: &str) -> String {
        let name = self.name.as_ref().map_or_else(String::new, |name| format!(" --name {name}"));
        format!("cargo xtask kafka {verb}{name}")
    }
}

fn check_number(state: &State, nodes: Nodes) -> Result<()> {
    let there = state.nodes.len();
    ensure!(
        state.nodes.iter().any(|node| nodes.has(node)),
        "there is no broker of that number: the cluster has 1 to {there}"
    );
    Ok(())
}
