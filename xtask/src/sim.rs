//! `cargo xtask sim`: the shipped controller where everything goes wrong, simulated by `xtask/sim`.

use anyhow::Result;

use crate::cargo::run as run_command;
use crate::passed_on::PassedOn;

pub(crate) fn run(passed_on: &PassedOn) -> Result<()> {
    run_command(passed_on.to("lockgate-sim")?)
}
