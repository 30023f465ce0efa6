//! `cargo xtask torture`: the real program on a real disk and a real broker, killed again and again by a program of its
//! own.

use std::env;

use anyhow::Result;

use crate::cargo::{cargo, run as run_command, target_folder};
use crate::kafka::{self, Broker, Wanted};
use crate::passed_on::PassedOn;
use crate::test::XTASK;

/// A cluster of its own: its broker is killed, too.
const CLUSTER: &str = "torture";
const CLUSTER_NAME: &str = "LOCKGATE_TORTURE_CLUSTER";

/// The program that is killed. Where it is set already, nothing is built.
const PROGRAM: &str = "LOCKGATE_TORTURE_PROGRAM";
const FOLDER: &str = "LOCKGATE_TORTURE_FOLDER";

pub(crate) fn run(passed_on: &PassedOn) -> Result<()> {
    let mut command = passed_on.to("lockgate-torture")?;
    let only_tells = |argument: &String| ["--list", "--help", "-h"].contains(&argument.as_str());
    if passed_on.arguments.iter().any(only_tells) {
        return run_command(command);
    }
    let target = target_folder()?;
    if env::var_os(PROGRAM).is_none() {
        run_command(cargo(&["build", "--locked", "--release", "-p", "lockgate"])?)?;
        command.env(PROGRAM, target.join("release/lockgate"));
    }
    command.env(FOLDER, target.join("torture")).env(XTASK, env::current_exe()?);
    let wanted = Wanted { name: Some(CLUSTER.into()), brokers: Some(1) };
    let broker = kafka::ensure(wanted)?;
    match &broker {
        Broker::Unavailable { why, remedy } => {
            eprintln!("WARNING: there is no Kafka broker: {why}; {remedy}");
            command.env_remove(kafka::GIVEN);
        }
        there => {
            command.env(kafka::GIVEN, there.needed()?).env(CLUSTER_NAME, CLUSTER);
        }
    }
    run_command(command)
}
