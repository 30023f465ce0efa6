//! `cargo xtask examples`: builds every example, with the profile of the tests.

use anyhow::Result;

use crate::cargo::{TEST_PROFILE, cargo, run as run_command};

pub(crate) fn run() -> Result<()> {
    run_command(cargo(&["build", "--locked", "--workspace", "--examples", TEST_PROFILE])?)
}
