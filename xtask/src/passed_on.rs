//! Verbs whose work is done by a program of its own, so that xtask itself need not compile what that program looks into.

use std::process::Command;

use anyhow::Result;

use crate::cargo::{TEST_PROFILE, cargo};

/// What is passed on.
#[derive(clap::Args, Default)]
#[command(disable_help_flag = true)]
pub(crate) struct PassedOn {
    /// Passed on; `--help` shows what there is.
    #[arg(allow_hyphen_values = true, trailing_var_arg = true)]
    pub(crate) arguments: Vec<String>,
}

impl PassedOn {
    /// What CI passes on.
    pub(crate) fn of(arguments: &[&str]) -> Self {
        Self { arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect() }
    }

    /// The program of `package`, optimised and with assertions.
    pub(crate) fn to(&self, package: &str) -> Result<Command> {
        let mut command =
            cargo(&["run", "--locked", "--quiet", TEST_PROFILE, "-p", package, "--"])?;
        command.args(&self.arguments);
        Ok(command)
    }
}
