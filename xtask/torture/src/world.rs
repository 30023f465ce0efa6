//! What there is to work with, and what therefore can go wrong.

use std::env;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::broker::Broker;
use crate::clock;
use crate::disk;
use crate::schedule::Kind;

pub(crate) struct World {
    /// The program that is killed.
    pub(crate) program: PathBuf,
    /// Where everything lies.
    pub(crate) folder: PathBuf,
    pub(crate) broker: Option<Broker>,
    /// The library that lies about the time.
    pub(crate) clock: Option<PathBuf>,
    pub(crate) seed: u64,
}

impl World {
    /// As the environment says, which `cargo xtask torture` sets.
    pub(crate) fn from_env(seed: u64) -> Result<Self> {
        let path = |name: &str| {
            let path = env::var_os(name).map(PathBuf::from);
            path.with_context(|| format!("{name} is not set: start this as `cargo xtask torture`"))
        };
        let keeper = match (env::var_os("LOCKGATE_XTASK"), env::var("LOCKGATE_TORTURE_CLUSTER")) {
            (Some(program), Ok(name)) => Some((PathBuf::from(program), name)),
            _ => None,
        };
        let broker = match env::var("LOCKGATE_KAFKA") {
            Ok(servers) if !servers.trim().is_empty() => Some(Broker::new(&servers, keeper)?),
            _ => None,
        };
        Ok(Self {
            program: path("LOCKGATE_TORTURE_PROGRAM")?,
            folder: path("LOCKGATE_TORTURE_FOLDER")?,
            broker,
            clock: clock::library(),
            seed,
        })
    }

    /// An empty folder: what the last run kept is gone.
    pub(crate) fn clear(&self) -> Result<()> {
        disk::unmount_all(&self.folder);
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).with_context(|| format!("removing {}", self.folder.display()))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn broker(&self) -> Result<&Broker> {
        self.broker.as_ref().context("there is no broker")
    }

    /// What can go wrong here; for the rest, what it would need.
    pub(crate) fn possible(&self) -> (Vec<Kind>, Vec<String>) {
        let mut possible = vec![Kind::Freeze, Kind::FreezeLong, Kind::ReadOnlyState];
        let mut missing = Vec::new();
        if disk::may_mount() {
            possible.extend([Kind::FullState, Kind::FullOutput]);
        } else {
            missing.push("full disks are left out: mounting small ones takes root".into());
        }
        if self.clock.is_some() {
            possible.push(Kind::Clock);
        } else {
            missing.push(format!(
                "jumps of the clock are left out: there is no libfaketime ({})",
                clock::REMEDY
            ));
        }
        match &self.broker {
            Some(broker) if broker.may_be_killed() => possible.push(Kind::Broker),
            Some(_) => missing.push("the broker is not ours, and is not killed".into()),
            None => {}
        }
        (possible, missing)
    }
}
