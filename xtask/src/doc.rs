//! `cargo xtask doc`: the documentation of the workspace, warnings as errors.

use anyhow::Result;

use crate::cargo::{TEST_PROFILE, cargo, run as run_command};

/// Whether to show it.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Open the documentation in a browser when it is built.
    #[arg(long)]
    open: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut command = cargo(&["doc", "--locked", TEST_PROFILE, "--workspace", "--no-deps"])?;
    command.env("RUSTDOCFLAGS", "-D warnings");
    if arguments.open {
        command.arg("--open");
    }
    run_command(command)
}
