//! `cargo xtask test`: all tests of the workspace, from one build.

use std::process::Command;

use anyhow::Result;

use crate::cargo::{TEST_PROFILE, cargo, run as run_command};

/// What is passed on.
#[derive(clap::Args, Default)]
pub(crate) struct Arguments {
    /// Passed on to `cargo test`, for example a part of a test's name, or `-p PACKAGE`.
    #[arg(allow_hyphen_values = true)]
    cargo_test: Vec<String>,

    /// Passed on to each test program, for example `-- --nocapture`.
    #[arg(last = true)]
    test_program: Vec<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let mut command = cargo(&["test", "--locked", TEST_PROFILE])?;
    add(arguments, &mut command);
    run_command(command)
}

/// All packages are tested unless the arguments choose some.
fn add(arguments: &Arguments, command: &mut Command) {
    let chooses = |word: &String| word.starts_with("-p") || word.starts_with("--package");
    // clap leaves a `--` that follows other words among them.
    let mut for_cargo = arguments.cargo_test.iter().take_while(|word| *word != "--");
    if !for_cargo.any(chooses) {
        command.arg("--workspace");
    }
    command.args(&arguments.cargo_test);
    if !arguments.test_program.is_empty() {
        command.arg("--").args(&arguments.test_program);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn check(typed: &str, expected: &str) {
        let words = std::iter::once("test").chain(typed.split_whitespace());
        let line = Line::try_parse_from(words).unwrap();
        let mut command = Command::new("cargo");
        add(&line.arguments, &mut command);
        let passed_on: Vec<_> = command.get_args().map(|word| word.to_string_lossy()).collect();
        assert_eq!(passed_on.join(" "), expected, "{typed}");
    }

    #[test]
    fn everything_typed_is_passed_on() {
        check("", "--workspace");
        check("journal", "--workspace journal");
        check("-- --nocapture", "--workspace -- --nocapture");
        check("kill -- --nocapture -p", "--workspace kill -- --nocapture -p");
        check("--test kill --no-fail-fast", "--workspace --test kill --no-fail-fast");
    }

    #[test]
    fn a_chosen_package_is_the_only_one_tested() {
        check("-p lockgate-core", "-p lockgate-core");
        check(
            "--package=lockgate-core batch -- --exact",
            "--package=lockgate-core batch -- --exact",
        );
    }
}
