//! What is known of a cluster between two calls: which brokers there are, on which ports, as which processes.
//!
//! The file outlives the processes, so that a broker comes back on its port with its data. Whether a process
//! still runs is never taken from here.

use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// What brokers run in.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Mode {
    Docker,
    Java,
}

/// A cluster that was started at some time.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct State {
    pub(super) mode: Mode,
    /// What Kafka calls the cluster, 22 characters of base64.
    pub(super) cluster_id: String,
    pub(super) nodes: Vec<Node>,
}

/// One broker, which is also one controller.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(super) struct Node {
    /// Its number, from 1: what Kafka calls broker id and node id.
    pub(super) id: u32,
    pub(super) port: u16,
    pub(super) controller_port: u16,
    /// The process it was last started as; none in Docker.
    pub(super) pid: Option<u32>,
}

impl State {
    /// A new cluster of one broker for every two ports.
    pub(super) fn new(mode: Mode, ports: &[u16]) -> Self {
        let nodes = (1..).zip(ports.chunks_exact(2)).map(|(id, ports)| Node {
            id,
            port: ports[0],
            controller_port: ports[1],
            pid: None,
        });
        Self { mode, cluster_id: new_cluster_id(), nodes: nodes.collect() }
    }

    pub(super) fn read(path: &Path) -> Result<Option<Self>> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        let state = serde_json::from_str(&text).with_context(|| {
            format!("{} is damaged: stop brokers that run by hand and delete it", path.display())
        })?;
        Ok(Some(state))
    }

    /// Replaces the file as a whole.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let unfinished = path.with_extension("json.new");
        fs::write(&unfinished, serde_json::to_string_pretty(self)? + "\n")
            .and_then(|()| fs::rename(&unfinished, path))
            .with_context(|| format!("writing {}", path.display()))
    }

    /// The bootstrap servers.
    pub(super) fn bootstrap(&self) -> String {
        self.nodes.iter().map(Node::address).collect::<Vec<_>>().join(",")
    }
}

impl Node {
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

/// 16 bytes in base64, of which the last character holds two bits only. No `-` and no `_`: the first must not
/// be at the start, and the id becomes part of a container's name.
fn new_cluster_id() -> String {
    const CHARACTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    let random = RandomState::new();
    let character = |place: usize| {
        let number = random.hash_one(place) % CHARACTERS.len() as u64;
        char::from(CHARACTERS[number as usize])
    };
    (0..21).map(character).chain(['A']).collect()
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let folder = env::temp_dir().join(format!("lockgate-kafka-state-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("state.json");
        assert_eq!(State::read(&path).unwrap(), None);

        let mut state = State::new(Mode::Java, &[1, 2, 3, 4, 5, 6]);
        state.nodes[1].pid = Some(77);
        state.write(&path).unwrap();
        assert_eq!(State::read(&path).unwrap(), Some(state));

        fs::write(&path, "{").unwrap();
        let error = State::read(&path).unwrap_err().to_string();
        assert!(error.contains("is damaged"), "{error}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn every_broker_is_in_the_bootstrap_servers() {
        let state = State::new(Mode::Docker, &[21001, 21002, 21003, 21004, 21005, 21006]);
        assert_eq!(state.bootstrap(), "127.0.0.1:21001,127.0.0.1:21003,127.0.0.1:21005");
        assert_eq!(state.nodes[2].id, 3);
    }

    #[test]
    fn a_cluster_id_is_new_each_time() {
        let (one, other) = (new_cluster_id(), new_cluster_id());
        assert_eq!(one.len(), 22);
        assert_ne!(one, other);
    }
}
