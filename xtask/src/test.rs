//! `cargo xtask test`: all tests of the workspace, from one build, with a real Kafka broker beside them and a real
//! browser to look at the page.

use std::env;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::browser;
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

/// What to do where a broker or a browser is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenMissing {
    /// Leave out the tests that need it, and say so at the end.
    LeaveOut,
    Fail,
}

/// What a test program needs and a machine may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    Broker,
    Browser,
}

impl Need {
    fn name(self) -> &'static str {
        match self {
            Need::Broker => "a Kafka broker",
            Need::Browser => "a browser",
        }
    }
}

/// A need that cannot be met, why, and what to do.
struct Lack {
    need: Need,
    why: String,
}

const KAFKA: &str = "lockgate-kafka-adapter";
const CLI: &str = "lockgate";

/// The test programs of the packages in which some need something, and what they need.
const PROGRAMS: [(&str, &str, Option<Need>); 6] = [
    (KAFKA, "interleavings", None),
    (KAFKA, "input", Some(Need::Broker)),
    (KAFKA, "output", Some(Need::Broker)),
    (CLI, "end_to_end", None),
    (CLI, "kafka", Some(Need::Broker)),
    (CLI, "browser", Some(Need::Browser)),
];

/// What else these packages have.
const OTHERS: [(&str, &str); 2] = [(KAFKA, "--lib"), (CLI, "--lib")];

/// Names this program for tests that start and kill brokers of their own.
pub(crate) const XTASK: &str = "LOCKGATE_XTASK";

pub(crate) fn run(arguments: &Arguments, when_missing: WhenMissing) -> Result<()> {
    let mut command = cargo(&["test", "--locked", TEST_PROFILE])?;
    let chosen = chosen_packages(arguments);
    let is_wanted = |package| chosen.is_empty() || chosen.contains(&package);
    if !is_wanted(KAFKA) && !is_wanted(CLI) {
        add(arguments, &mut command);
        return run_command(command);
    }
    let mut lacks = Vec::new();
    let broker = kafka::ensure(Wanted::default())?;
    if let Broker::Unavailable { why, remedy } = &broker {
        lacks.push(Lack { need: Need::Broker, why: format!("{why}; {remedy}") });
    }
    if let Some(why) = browser::missing().filter(|_| is_wanted(CLI)) {
        lacks.push(Lack { need: Need::Browser, why: format!("{why}; {}", browser::REMEDY) });
    }
    if let Some(Lack { need, why }) = lacks.first()
        && (!chosen.is_empty() || when_missing == WhenMissing::Fail)
    {
        bail!("the tests that need {} cannot run: {why}", need.name());
    }
    // The broker stops when it is dropped.
    let bootstrap = broker.needed().ok();
    let give = |command: &mut Command| -> Result<()> {
        if let Some(bootstrap) = bootstrap {
            command.env(kafka::GIVEN, bootstrap).env(XTASK, env::current_exe()?);
        }
        Ok(())
    };
    if !lacks.is_empty() {
        return leave_out(arguments, &lacks, give);
    }
    give(&mut command)?;
    add(arguments, &mut command);
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

/// The packages of which a part is left out.
fn packages_cut(lacking: &[Need]) -> Vec<&'static str> {
    let is_cut = |package: &&str| {
        PROGRAMS
            .iter()
            .any(|(of, _, need)| of == package && need.is_some_and(|need| lacking.contains(&need)))
    };
    [KAFKA, CLI].into_iter().filter(is_cut).collect()
}

/// What is left of these packages, as it is said to `cargo test`.
fn rest(packages: &[&str], lacking: &[Need]) -> Vec<&'static str> {
    let others = OTHERS.iter().filter(|(package, _)| packages.contains(package));
    let mut words: Vec<&str> = others.map(|(_, word)| *word).collect();
    // One is enough for both, and more are refused.
    words.dedup();
    for (package, program, need) in &PROGRAMS {
        if packages.contains(package) && !need.is_some_and(|need| lacking.contains(&need)) {
            words.extend(["--test", program]);
        }
    }
    words
}

/// Runs all that does not need what is lacking, and ends with what was left out.
fn leave_out(
    arguments: &Arguments,
    lacks: &[Lack],
    give: impl Fn(&mut Command) -> Result<()>,
) -> Result<()> {
    let lacking: Vec<Need> = lacks.iter().map(|lack| lack.need).collect();
    let packages = packages_cut(&lacking);
    let mut lines = Vec::new();
    for Lack { need, why } in lacks {
        let mut list = cargo(&["test", "--locked", TEST_PROFILE])?;
        for (package, program, _) in PROGRAMS.iter().filter(|(.., of)| *of == Some(*need)) {
            list.args(["-p", package, "--test", program]);
        }
        list.args(["--quiet", "--", "--list"]);
        let name = need.name();
        let list = output(list).with_context(|| format!("counting the tests that need {name}"))?;
        let count = count_tests(&String::from_utf8_lossy(&list));
        lines.push(format!("{count} tests were left out, because they need {name}: {why}"));
    }
    if arguments.cargo_test.is_empty() {
        let mut others = cargo(&["test", "--locked", TEST_PROFILE])?;
        packages.iter().for_each(|package| {
            others.args(["-p", package]);
        });
        others.args(rest(&packages, &lacking));
        add_typed(arguments, &mut others);
        give(&mut others)?;
        run_command(others)?;
    }
    let mut command = cargo(&["test", "--locked", TEST_PROFILE, "--workspace"])?;
    packages.iter().for_each(|package| {
        command.args(["--exclude", package]);
    });
    add_typed(arguments, &mut command);
    give(&mut command)?;
    run_command(command)?;
    lines.iter().for_each(|line| println!("{line}"));
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
    fn only_what_needs_the_missing_thing_is_left_out() {
        let check = |lacking: &[Need], packages: &[&str], kept: &str| {
            assert_eq!(packages_cut(lacking), packages, "{lacking:?}");
            assert_eq!(rest(packages, lacking).join(" "), kept, "{lacking:?}");
        };
        check(&[Need::Browser], &[CLI], "--lib --test end_to_end --test kafka");
        check(
            &[Need::Broker],
            &[KAFKA, CLI],
            "--lib --test interleavings --test end_to_end --test browser",
        );
        let both = [Need::Broker, Need::Browser];
        check(&both, &[KAFKA, CLI], "--lib --test interleavings --test end_to_end");
    }

    /// A test program that nobody names here would not run where something is missing.
    #[test]
    fn every_test_program_of_these_packages_is_known() {
        let root = crate::cargo::workspace_root().unwrap();
        for (package, folder) in [(KAFKA, "kafka-adapter/tests"), (CLI, "cli/tests")] {
            let entries =
                std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path());
            let programs = entries.filter(|path| {
                path.extension().is_some_and(|end| end == "rs") || path.join("main.rs").is_file()
            });
            for path in programs {
                let name = path.file_stem().unwrap().to_str().unwrap();
                let is_known =
                    PROGRAMS.iter().any(|(of, program, _)| *of == package && *program == name);
                assert!(is_known, "{folder} has {name}; say in PROGRAMS what it needs");
            }
        }
    }

    #[test]
    fn tests_are_counted() {
        assert_eq!(count_tests("a::b: test\nc: test\n\n2 tests, 0 benchmarks\nd: bench\n"), 2);
    }
}
