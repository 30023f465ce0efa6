//! `cargo xtask lint`: clippy over everything, warnings as errors.

use anyhow::Result;

use crate::cargo::{cargo, run as run_command};

pub(crate) fn run() -> Result<()> {
    run_command(cargo(&[
        "clippy",
        "--locked",
        "--workspace",
        "--all-targets",
        "--",
        "-D",
        "warnings",
    ])?)
}
