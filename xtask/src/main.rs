//! Every chore of the repository: `cargo xtask <verb>`, one file per verb.
//!
//! What CI runs is `cargo xtask ci`, and each of its stages is a verb that a person can run alone. No
//! chore may live in a CI file or a script only.

mod bench;
mod browser;
mod cargo;
mod ci;
mod doc;
mod examples;
mod fmt;
mod fuzz;
mod kafka;
mod lint;
mod model;
mod passed_on;
mod prove;
mod rules;
mod sim;
mod test;
mod torture;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use passed_on::PassedOn;

/// The chores of the lockgate repository. `ci` runs all that must pass before a change is good.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run every check in turn and stop at the first that fails: fmt, rules, lint, test, model, sim, examples,
    /// doc.
    ///
    /// Where rustfmt or clippy is not installed, that stage is skipped with a warning. Anything else that
    /// cannot run is a failure.
    Ci,
    /// Run all tests of the workspace: unit, integration and documentation tests.
    ///
    /// They are built once, optimised and with assertions (`[profile.ci]` in Cargo.toml), because the kill
    /// tests push hundreds of megabytes through the binary. A Kafka broker is started for them and stopped (see
    /// `cargo xtask kafka --help`); without one, the tests that need it are left out, and their number is told.
    Test(test::Arguments),
    /// Format every crate with rustfmt.
    Fmt(fmt::Arguments),
    /// Run clippy over everything, tests and examples included; a warning is an error.
    Lint,
    /// Check the house rules a program can check: dependencies, layers, layout, purity, lengths, paths.
    Rules,
    /// Explore every reachable state of the shipped state machines; minutes, or seconds with `--small`.
    Model(PassedOn),
    /// Simulate the shipped controller with everything that can go wrong, one seed after the other.
    Sim(PassedOn),
    /// Throw bytes and operations that nobody would think of at what reads files, states and requests, for minutes.
    ///
    /// Needs a nightly compiler and cargo-fuzz, and is no part of `ci`. An input that makes a target fail is left in
    /// fuzz/artifacts.
    Fuzz(fuzz::Arguments),
    /// Kill the release binary on a real disk and a real broker, again and again; `--list` shows between what.
    Torture(PassedOn),
    /// Build every example.
    Examples,
    /// Start, kill and stop a real Kafka on loopback: LOCKGATE_KAFKA's, or in Docker, or with Java and Maven.
    Kafka(kafka::Arguments),
    /// Kill processes and brokers again and again under millions of records, for many minutes.
    Prove(prove::Arguments),
    /// Measure how fast lockgate is beside bare loops over the same files and topics; `--help` names what there is.
    Bench(PassedOn),
    /// Build the documentation of the workspace; a warning is an error.
    Doc(doc::Arguments),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().verb {
        Verb::Ci => ci::run(),
        Verb::Test(arguments) => test::run(&arguments, test::WhenMissing::LeaveOut),
        Verb::Fmt(arguments) => fmt::run(&arguments),
        Verb::Lint => lint::run(),
        Verb::Rules => rules::run(),
        Verb::Model(passed_on) => model::run(&passed_on),
        Verb::Sim(passed_on) => sim::run(&passed_on),
        Verb::Fuzz(arguments) => fuzz::run(&arguments),
        Verb::Torture(passed_on) => torture::run(&passed_on),
        Verb::Examples => examples::run(),
        Verb::Kafka(arguments) => kafka::run(&arguments),
        Verb::Prove(arguments) => prove::run(&arguments),
        Verb::Bench(passed_on) => bench::run(&passed_on),
        Verb::Doc(arguments) => doc::run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
