//! `cargo xtask fmt`: rustfmt over every crate.

use anyhow::Result;

use crate::cargo::{cargo, run as run_command};

/// Whether to write.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Change nothing; fail and show what would change.
    #[arg(long)]
    pub(crate) check: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut command = cargo(&["fmt", "--all"])?;
    if arguments.check {
        command.arg("--check");
    }
    run_command(command)
}
