//! `cargo xtask prove`: what `cargo xtask test` does with Kafka in small, with millions of records and for minutes.

use std::env;

use anyhow::{Context, Result};

use crate::cargo::{TEST_PROFILE, cargo, run as run_command};
use crate::kafka::{self, Wanted};
use crate::test::XTASK;

/// What to prove.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Part of the name of a proof, for example `kills`, `group` or `outage`; without one, all of them, one after
    /// the other.
    name: Vec<String>,
}

/// Says to the tests which form is wanted.
const FORM: &str = "LOCKGATE_PROOF";

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let broker = kafka::ensure(Wanted::default())?;
    let bootstrap = broker.needed().context("nothing can be proved")?;
    let mut command =
        cargo(&["test", "--locked", TEST_PROFILE, "-p", "lockgate", "--test", "kafka"])?;
    command.env(kafka::GIVEN, bootstrap).env(XTASK, env::current_exe()?).env(FORM, "full");
    command.arg("--").args(["--nocapture", "--test-threads", "1"]).args(&arguments.name);
    run_command(command)
}
