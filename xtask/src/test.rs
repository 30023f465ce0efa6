//! `cargo xtask test`: all tests of the workspace, from one build, with a real Kafka broker beside them.

use std::env;
use std::process::Command;

use anyhow::{Context, Result};

use crate::cargo::{TEST_PROFILE, cargo, output, run as run_command};
use crate::kafka::{self, Broker, Wanted};

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

/// What to do without a Kafka broker.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WithoutBroker {
    /// Leave out the tests that need one, and say so at the end.
    LeaveOut,
    Fail,
}

/// The packages that have tests which need a broker.
const WITH_BROKER: [&str; 2] = ["lockgate-kafka-adapter", "lockgate"];

/// Their test programs that need one.
const NEED_BROKER: [&str; 3] = ["input", "output", "kafka"];

/// What else they have.
const NEED_NONE: [&str; 4] = ["--lib", "--bins", "--test", "end_to_end"];

/// Names this program for tests that start and kill brokers of their own.
pub(crate) const XTASK: &str = "LOCKGATE_XTASK";

pub(crate) fn run(arguments: &Arguments, without_broker: WithoutBroker) -> Result<()> {
    let mut command = cargo(&["test", "--locked", TEST_PROFILE])?;
    let chosen = chosen_packages(arguments);
    let is_chosen = WITH_BROKER.iter().any(|package| chosen.contains(package));
    if !is_chosen && !chosen.is_empty() {
        add(arguments, &mut command);
        return run_command(command);
    }
    let broker = kafka::ensure(Wanted::default())?;
    if let Broker::Unavailable { why, remedy } = &broker
        && !is_chosen
        && without_broker == WithoutBroker::LeaveOut
    {
        return leave_out(arguments, command, &format!("{why}; {remedy}"));
    }
    let bootstrap = broker.needed().context("the tests against Kafka cannot run")?;
    command.env(kafka::GIVEN, bootstrap).env(XTASK, env::current_exe()?);
    add(arguments, &mut command);
    // The broker stops when it is dropped.
    run_command(command)
}

/// The packages that were asked for; none means all.
fn chosen_packages(arguments: &Arguments) -> Vec<&str> {
    let words: Vec<&str> = typed_for_cargo(arguments).collect();
    let chosen = words.iter().enumerate().filter_map(|(index, word)| match *word {
        "-p" | "--package" => words.get(index + 1).copied(),
        _ => word.strip_prefix("--package=").or_else(|| word.strip_prefix("-p")),
    });
    chosen.collect()
}

/// Runs all that needs no broker, and ends with what was left out.
fn leave_out(arguments: &Arguments, mut command: Command, why: &str) -> Result<()> {
    let of_packages = || -> Result<Command> {
        let mut command = cargo(&["test", "--locked", TEST_PROFILE])?;
        WITH_BROKER.iter().for_each(|package| {
            command.args(["-p", package]);
        });
        Ok(command)
    };
    let mut list = of_packages()?;
    NEED_BROKER.iter().for_each(|test| {
        list.args(["--test", test]);
    });
    list.args(["--quiet", "--", "--list"]);
    let list = output(list).context("counting the tests that need a Kafka broker")?;
    let left_out = count_tests(&String::from_utf8_lossy(&list));
    if arguments.cargo_test.is_empty() {
        let mut others = of_packages()?;
        others.args(NEED_NONE);
        add_typed(arguments, &mut others);
        run_command(others)?;
    }
    command.arg("--workspace");
    WITH_BROKER.iter().for_each(|package| {
        command.args(["--exclude", package]);
    });
    add_typed(arguments, &mut command);
    run_command(command)?;
    println!("{left_out} tests were left out, because they need a Kafka broker: {why}");
    Ok(())
}

/// How many tests a test program lists.
fn count_tests(list: &str) -> usize {
    list.lines().filter(|line| line.ends_with(": test")).count()
}

fn typed_for_cargo(arguments: &Arguments) -> impl Iterator<Item = &str> {
    // clap leaves a `--` that follows other words among them.
    arguments.cargo_test.iter().map(String::as_str).take_while(|word| *word != "--")
}

/// All packages are tested unless the arguments choose some.
fn add(arguments: &Arguments, command: &mut Command) {
    if chosen_packages(arguments).is_empty() {
        command.arg("--workspace");
    }
    add_typed(arguments, command);
}

fn add_typed(arguments: &Arguments, command: &mut Command) {
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

    #[test]
    fn chosen_packages_are_known_however_they_are_typed() {
        let check = |typed: &str, expected: &[&str]| {
            let words = std::iter::once("test").chain(typed.split_whitespace());
            let line = Line::try_parse_from(words).unwrap();
            assert_eq!(chosen_packages(&line.arguments), expected, "{typed}");
        };
        check("", &[]);
        check("journal -- -p lockgate-core", &[]);
        check("-p lockgate-core -p xtask", &["lockgate-core", "xtask"]);
        check("-pxtask", &["xtask"]);
        check("--package=lockgate", &["lockgate"]);
        check("--package lockgate journal", &["lockgate"]);
    }

    #[test]
    fn tests_are_counted() {
        assert_eq!(count_tests("a::b: test\nc: test\n\n2 tests, 0 benchmarks\nd: bench\n"), 2);
    }
}
