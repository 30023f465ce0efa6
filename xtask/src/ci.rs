//! `cargo xtask ci`: every check, in turn, until one fails.
//!
//! The stages are the other verbs, so whatever fails here can be repeated alone. Two tools may be missing,
//! rustfmt and clippy; their absence is shown twice. Nothing else is ever skipped.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::passed_on::PassedOn;
use crate::{cargo, doc, examples, fmt, lint, model, rules, sim, test};

/// One check: a verb, and the part of the Rust toolchain that it can be skipped without.
struct Stage {
    /// The verb with its options, as it is typed to repeat the stage.
    name: &'static str,
    /// The subcommand of cargo that may be missing, and the rustup component that brings it.
    optional: Option<Optional>,
    run: fn() -> Result<()>,
}

struct Optional {
    subcommand: &'static str,
    component: &'static str,
}

/// The cheap ones come first.
const STAGES: [Stage; 8] = [
    Stage {
        name: "fmt --check",
        optional: Some(Optional { subcommand: "fmt", component: "rustfmt" }),
        run: || fmt::run(&fmt::Arguments { check: true }),
    },
    Stage { name: "rules", optional: None, run: rules::run },
    Stage {
        name: "lint",
        optional: Some(Optional { subcommand: "clippy", component: "clippy" }),
        run: lint::run,
    },
    Stage {
        name: "test",
        optional: None,
        run: || test::run(&test::Arguments::default(), test::WhenMissing::Fail),
    },
    Stage {
        name: "model --small",
        optional: None,
        run: || model::run(&PassedOn::of(&["--small"])),
    },
    Stage { name: "sim", optional: None, run: || sim::run(&PassedOn::of(&["--seeds", "3000"])) },
    Stage { name: "examples", optional: None, run: examples::run },
    Stage { name: "doc", optional: None, run: || doc::run(&doc::Arguments::default()) },
];

/// How a stage ended.
#[derive(Debug, PartialEq)]
enum Ending {
    Passed,
    Skipped { warning: String },
    Failed { error: String },
    NotReached,
}

pub(crate) fn run() -> Result<()> {
    let started = Instant::now();
    let endings = run_stages(&STAGES, cargo::has_subcommand);
    println!("\nsummary");
    for (name, ending, elapsed) in &endings {
        println!("{}", summary_line(name, ending, *elapsed));
    }
    println!("  {:13} {:>7.1} s", "total", started.elapsed().as_secs_f64());
    verdict(&endings)
}

type Outcome = (&'static str, Ending, Duration);

/// Runs the stages in order; those after a failure are not reached.
fn run_stages(stages: &[Stage], installed: impl Fn(&str) -> Result<bool>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    let mut failed = false;
    for stage in stages {
        if failed {
            outcomes.push((stage.name, Ending::NotReached, Duration::ZERO));
            continue;
        }
        println!("\n==> {}", stage.name);
        let started = Instant::now();
        let ending = run_stage(stage, &installed);
        let elapsed = started.elapsed();
        failed = matches!(ending, Ending::Failed { .. });
        println!("<=={}", summary_line(stage.name, &ending, elapsed));
        outcomes.push((stage.name, ending, elapsed));
    }
    outcomes
}

fn run_stage(stage: &Stage, installed: impl Fn(&str) -> Result<bool>) -> Ending {
    let failed = |error: anyhow::Error| Ending::Failed { error: format!("{error:#}") };
    if let Some(optional) = &stage.optional {
        match installed(optional.subcommand) {
            Ok(true) => {}
            Ok(false) => {
                return Ending::Skipped {
                    warning: format!(
                        "WARNING: not checked, because `cargo {}` is not installed; get it with \
                         `rustup component add {}`",
                        optional.subcommand, optional.component
                    ),
                };
            }
            Err(error) => return failed(error),
        }
    }
    match (stage.run)() {
        Ok(()) => Ending::Passed,
        Err(error) => failed(error),
    }
}

fn summary_line(name: &str, ending: &Ending, elapsed: Duration) -> String {
    let seconds = elapsed.as_secs_f64();
    match ending {
        Ending::Passed => format!("  {name:13} {seconds:>7.1} s  passed"),
        Ending::Skipped { warning } => format!("  {name:13} {seconds:>7.1} s  SKIPPED  {warning}"),
        Ending::Failed { error } => format!("  {name:13} {seconds:>7.1} s  FAILED  {error}"),
        Ending::NotReached => format!("  {name:13} {:>7}    not reached", "-"),
    }
}

/// An error unless every stage passed or was skipped for a tool that may be missing.
fn verdict(outcomes: &[Outcome]) -> Result<()> {
    let failed = outcomes
        .iter()
        .find(|(_, ending, _)| !matches!(ending, Ending::Passed | Ending::Skipped { .. }));
    if let Some((name, ..)) = failed {
        bail!("ci failed; to repeat the stage alone: cargo xtask {name}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    fn stage(name: &'static str, run: fn() -> Result<()>) -> Stage {
        Stage { name, optional: None, run }
    }

    fn endings(outcomes: &[Outcome]) -> Vec<&Ending> {
        outcomes.iter().map(|(_, ending, _)| ending).collect()
    }

    #[test]
    fn the_first_failure_stops_the_rest_and_fails_the_whole() {
        let stages = [
            stage("one", || Ok(())),
            stage("two", || Err(anyhow!("inner").context("outer"))),
            stage("three", || Ok(())),
        ];
        let outcomes = run_stages(&stages, |_| Ok(true));
        let error = "outer: inner".to_owned();
        let expected = [&Ending::Passed, &Ending::Failed { error }, &Ending::NotReached];
        assert_eq!(endings(&outcomes), expected);
        let message = verdict(&outcomes).unwrap_err().to_string();
        assert!(message.ends_with("cargo xtask two"), "{message}");
    }

    #[test]
    fn a_missing_optional_tool_is_a_warning_that_the_summary_repeats() {
        let optional = Some(Optional { subcommand: "clippy", component: "clippy-component" });
        let run = || Err(anyhow!("must not run"));
        let stages = [Stage { name: "lint", optional, run }, stage("test", || Ok(()))];
        let outcomes = run_stages(&stages, |_| Ok(false));
        let (name, ending, elapsed) = &outcomes[0];
        let line = summary_line(name, ending, *elapsed);
        assert!(line.contains("SKIPPED  WARNING"), "{line}");
        assert!(line.contains("rustup component add clippy-component"), "{line}");
        assert_eq!(outcomes[1].1, Ending::Passed);
        assert!(verdict(&outcomes).is_ok());
    }

    #[test]
    fn only_fmt_and_lint_can_be_skipped() {
        let can_be_skipped: Vec<&str> = STAGES
            .iter()
            .filter(|stage| stage.optional.is_some())
            .map(|stage| stage.name)
            .collect();
        assert_eq!(can_be_skipped, ["fmt --check", "lint"]);
    }

    #[test]
    fn not_knowing_whether_a_tool_is_there_is_a_failure() {
        let outcomes = run_stages(&STAGES[..1], |_| Err(anyhow!("cannot start cargo")));
        assert!(verdict(&outcomes).is_err());
    }
}
