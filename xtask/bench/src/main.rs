//! Measures how fast lockgate is, beside yardsticks that do as little as possible with the same data.
//!
//! `cargo xtask bench` builds it, with the `lockgate` binary beside it, and starts it. What is compared runs in
//! turn, each as a process of its own, and what counts is the ratio. A yardstick is this program, too, with the
//! sub-command `yardstick`; the few things that only a program that embeds lockgate can see are `library`.
//!
//! Not here: whether what lockgate does is right; tests and models say so.

mod benchmark;
mod broker;
mod chart;
mod library;
mod machine;
mod report;
mod rounds;
mod running;
mod site;
mod spread;
mod yardstick;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use benchmark::Benchmark;
use report::Report;
use site::Site;

/// Measure how fast lockgate is beside yardsticks, all in turn and in one run.
#[derive(Parser)]
#[command(name = "cargo xtask bench", bin_name = "cargo xtask bench", after_help = benchmark::list())]
#[command(args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(flatten)]
    wanted: Wanted,
    #[command(subcommand)]
    verb: Option<Verb>,
}

#[derive(Args)]
struct Wanted {
    /// What to measure (listed below); without a name, all but `peers`.
    #[arg(value_name = "NAME", value_parser = benchmark::named)]
    names: Vec<Benchmark>,
    /// How often each is measured; one more round before them warms up and is not counted.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Multiplies the amounts of data: 0.05 is for a quick look, in which start-up may count.
    #[arg(long, default_value_t = 1.0, value_parser = size)]
    size: f64,
    /// Write the results to docs/bench.json and docs/bench.svg, in place of the target folder.
    #[arg(long)]
    publish: bool,
    /// Only say whether a broker is needed.
    #[arg(long, hide = true)]
    asks_for_broker: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// A bare loop to compare with.
    #[command(subcommand, hide = true)]
    Yardstick(yardstick::Yardstick),
    /// A part of lockgate as a program that embeds it sees it.
    #[command(subcommand, hide = true)]
    Library(library::Library),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.verb {
        Some(Verb::Yardstick(yardstick)) => yardstick.run(),
        Some(Verb::Library(part)) => part.run(),
        None => measure(arguments.wanted),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(wanted: Wanted) -> Result<()> {
    let names = if wanted.names.is_empty() { Benchmark::usual() } else { wanted.names };
    if wanted.asks_for_broker {
        println!("{}", if names.iter().any(|name| name.needs_broker()) { "yes" } else { "no" });
        return Ok(());
    }
    let site = Site::new(wanted.rounds, wanted.size)?;
    let mut report = Report::new(&site);
    let mut topics = benchmark::Topics::default();
    for name in names {
        eprintln!("{}", name.name());
        let rows = name.measure(&site, &mut topics)?;
        report.rows.extend(rows);
    }
    println!("{}", report.table());
    let folder = if wanted.publish { site.docs()? } else { site.results()? };
    report.write(&folder)
}

fn size(typed: &str) -> Result<f64, String> {
    let size: f64 = typed.parse().map_err(|_| "a number such as 0.05 or 2".to_owned())?;
    if (0.001..=100.0).contains(&size) { Ok(size) } else { Err("from 0.001 to 100".into()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn an_unknown_name_is_refused_and_the_known_ones_are_told() {
        let error = Arguments::try_parse_from(["bench", "file-nul"]).err().unwrap().to_string();
        assert!(error.contains("file-nul") && error.contains("file-null, file-file"), "{error}");
    }

    #[test]
    fn names_rounds_and_size_are_taken() {
        let line = ["bench", "idle", "latency", "--rounds", "2", "--size", "0.05"];
        let wanted = Arguments::try_parse_from(line).unwrap().wanted;
        assert_eq!(wanted.names, [Benchmark::Idle, Benchmark::Latency]);
        assert_eq!((wanted.rounds, wanted.size), (2, 0.05));
        assert!(Arguments::try_parse_from(["bench", "--size", "0"]).is_err());
        assert!(Arguments::try_parse_from(["bench", "--rounds", "0"]).is_err());
    }

    #[test]
    fn every_name_is_in_the_help() {
        let help = Arguments::command().render_long_help().to_string();
        for benchmark in Benchmark::ALL {
            assert!(help.contains(benchmark.name()), "{help}");
        }
    }
}
