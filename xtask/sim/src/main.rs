//! `cargo xtask sim`: the shipped controller in a world where everything goes wrong, in virtual time.
//!
//! Real are the controller with its sequencing machine and its driver, the partition contexts, the journal and the
//! state directory with its database. Simulated are time, threads, the disk below the database, sources and outputs.

mod check;
mod deliberate;
mod disk;
mod fault;
mod host;
mod life;
mod output;
mod panics;
mod plan;
mod search;
mod shrink;
mod source;
mod tally;
#[cfg(test)]
mod tests;
mod world;

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Parser;

use fault::{Coverage, EFFECTS, Fault};
use life::simulate;
use plan::Plan;
use search::{Until, search};

/// Simulate the shipped controller with everything that can go wrong, one seed after the other.
///
/// A seed decides everything: the pipeline, what goes wrong when, and every delay. The first seed that something goes
/// wrong with that must never go wrong ends the search; its plan is made smaller and printed, with what happened, and
/// the exit status is 1. So it is if a kind of fault, or an effect that matters, never came in 3,000
/// seeds or more.
#[derive(Parser)]
#[command(name = "cargo xtask sim", bin_name = "cargo xtask sim")]
struct Arguments {
    /// Run this seed only, and tell what happens.
    #[arg(long, value_name = "N", conflicts_with_all = ["minutes", "seeds", "plan", "faults"])]
    seed: Option<u64>,
    /// Run a plan as an earlier run printed it, and tell what happens.
    #[arg(long, value_name = "JSON", conflicts_with_all = ["minutes", "seeds", "faults"])]
    plan: Option<String>,
    /// Search for so many minutes.
    #[arg(long, value_name = "M", conflicts_with_all = ["seeds", "faults"])]
    minutes: Option<u32>,
    /// Search so many seeds.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    seeds: u64,
    /// The first seed of a search.
    #[arg(long, value_name = "N", default_value_t = 0)]
    first: u64,
    /// Put deliberate faults into the shipped code, one after the other, and find each of them within a minute.
    #[arg(long)]
    faults: bool,
}

/// In so many seeds every kind of fault strikes.
const ENOUGH_SEEDS: u64 = 3_000;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    // In memory, where there is such a place: what must survive is simulated.
    let memory = Path::new("/dev/shm");
    let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
    let folder = folder.context("making a folder for the state directories")?;
    if arguments.faults {
        deliberate::find_all(folder.path())?;
        return Ok(true);
    }
    if let Some(seed) = arguments.seed {
        return tell(&Plan::of(seed), folder.path());
    }
    if let Some(plan) = &arguments.plan {
        return tell(&serde_json::from_str(plan).context("the plan")?, folder.path());
    }
    let until = match arguments.minutes {
        Some(minutes) => Until::Time(Duration::from_secs(60 * u64::from(minutes))),
        None => Until::Seeds(arguments.seeds),
    };
    let found = search(arguments.first, until, None, folder.path())?;
    let missing = show(&found.coverage);
    let seconds = found.took.as_secs_f64();
    println!(
        "{} seeds in {seconds:.1} s ({:.0} a second)",
        found.seeds,
        found.seeds as f64 / seconds
    );
    let Some(seed) = found.failed else {
        if found.seeds >= ENOUGH_SEEDS && !missing.is_empty() {
            bail!("these did not happen in {} seeds: {}", found.seeds, missing.join(", "));
        }
        return Ok(true);
    };
    println!("\nseed {seed} went wrong; the smallest plan that still does:");
    let (plan, _) = shrink::shrink(Plan::of(seed), None, folder.path())?;
    tell(&plan, folder.path())
}

/// Runs a plan and tells what happens. Whether all went well.
fn tell(plan: &Plan, folder: &Path) -> Result<bool> {
    println!("{}\n", serde_json::to_string(plan)?);
    let report = simulate(plan, None, true, folder)?;
    report.trace.iter().for_each(|line| println!("{line}"));
    for breach in &report.breaches {
        println!("\nmust never happen: {breach}");
    }
    if !report.breaches.is_empty() {
        println!("\nagain: cargo xtask sim --plan '{}'", serde_json::to_string(plan)?);
    }
    Ok(report.breaches.is_empty())
}

/// Prints what happened how often. The faults that did not.
fn show(coverage: &Coverage) -> Vec<&'static str> {
    for (what, times) in coverage.iter() {
        println!("{times:>12}  {what}");
    }
    let all = Fault::names().into_iter().chain(EFFECTS);
    all.filter(|name| coverage.of(name) == 0).collect()
}
