//! `cargo xtask model`: every reachable state of the shipped state machines, explored by `xtask/model`.

use anyhow::Result;

use crate::cargo::run as run_command;
use crate::passed_on::PassedOn;

pub(crate) fn run(passed_on: &PassedOn) -> Result<()> {
    run_command(passed_on.to("lockgate-model")?)
}
