//! `cargo xtask sim`: the shipped controller in a world where everything goes wrong, in a program of its own.

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
    /// Seconds, not hours.
    pub(crate) fn small() -> Self {
        Self { arguments: vec!["--seeds".into(), "3000".into()] }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut command =
        cargo(&["run", "--locked", "--quiet", TEST_PROFILE, "-p", "lockgate-sim", "--"])?;
    command.args(&arguments.arguments);
    run_command(command)
}
