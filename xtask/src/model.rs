//! `cargo xtask model`: every reachable state of the shipped state machines, in a program of its own, so that
//! xtask itself need not compile what it explores.

use anyhow::Result;

use crate::cargo::{TEST_PROFILE, cargo, run as run_command};

/// What is passed on.
#[derive(clap::Args, Default)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Passed on; `--help` shows what there is.
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    arguments: Vec<String>,
}

impl Arguments {
    /// Small bounds.
    pub(crate) fn small() -> Self {
        Self { arguments: vec!["--small".into()] }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut command =
        cargo(&["run", "--locked", "--quiet", TEST_PROFILE, "-p", "lockgate-model", "--"])?;
    command.args(&arguments.arguments);
    run_command(command)
}
