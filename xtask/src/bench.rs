//! `cargo xtask bench`: how fast lockgate is beside its yardsticks, measured by a program of its own
//! (`xtask/bench`), which is built in release with the binary that it measures.

use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::{cargo, output, run as run_command, target_folder, workspace_root};
use crate::kafka::{self, Wanted};
use crate::passed_on::PassedOn;

/// Says which Kafka it is, where that is known.
const KAFKA_VERSION: &str = "LOCKGATE_BENCH_KAFKA";

pub(crate) fn run(passed_on: &PassedOn) -> Result<()> {
    let packages = ["-p", "lockgate", "-p", "lockgate-bench"];
    run_command(cargo(&[&["build", "--locked", "--quiet", "--release"][..], &packages].concat())?)?;
    let program = target_folder()?.join("release").join("lockgate-bench");
    let measure = || -> Result<Command> {
        let mut command = Command::new(&program);
        command.current_dir(workspace_root()?).args(&passed_on.arguments);
        Ok(command)
    };
    // What is typed wrong is told before a broker is started.
    let mut asking = measure()?;
    asking.arg("--asks-for-broker");
    let needs_broker = match output(asking)?.as_slice() {
        b"yes\n" => true,
        b"no\n" => false,
        help => {
            print!("{}", String::from_utf8_lossy(help));
            return Ok(());
        }
    };
    let mut command = measure()?;
    if !needs_broker {
        return run_command(command);
    }
    let broker = kafka::ensure(Wanted::default())?;
    let bootstrap = broker.needed().context("what was asked for cannot be measured")?;
    command.env(kafka::GIVEN, bootstrap);
    if let Some(version) = broker.version() {
        command.env(KAFKA_VERSION, version);
    }
    run_command(command)
}
