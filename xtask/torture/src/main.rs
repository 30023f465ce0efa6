//! `cargo xtask torture`: the real program on a real disk and a real broker, killed again and again.
//!
//! For every pair of input and output: records of known content go in, everything that can go wrong does, at moments
//! that follow from a seed, and what comes out is compared. Not here: states that only a model or a simulation
//! reaches (`xtask/model`, `xtask/sim`).

mod broker;
mod campaign;
mod clock;
mod compare;
mod disk;
mod log;
mod outcome;
mod pair;
mod pipeline;
mod process;
mod record;
mod round;
mod schedule;
mod source;
mod tally;
mod world;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use clap::Parser;

use campaign::Campaign;
use pair::Pair;
use schedule::Kind;
use source::Source;
use tally::{Tally, table};
use world::World;

/// Kill the real program on a real disk and a real broker, again and again, and compare what comes out.
///
/// Standard output is not among the outputs: what was printed cannot be taken back. Half of the kills are aimed at
/// the middle of a checkpoint. The exit status is 1 if anything was lost, doubled past the promise, out of order, or
/// ended in a way that nobody documents; the folder of that round is kept.
#[derive(Parser)]
#[command(name = "cargo xtask torture", bin_name = "cargo xtask torture")]
struct Arguments {
    /// How many kills, over all pairs; what else goes wrong follows from it. 30 take about two minutes.
    #[arg(long, value_name = "N", default_value_t = 1000)]
    kills: u32,
    /// Only these pairs, such as `plain-to-file` or a part of names, such as `topic`.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    pair: Vec<String>,
    /// Decides what happens when; without one, the time does.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Show the pairs, and what can go wrong.
    #[arg(long)]
    list: bool,
}

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

/// Whether there was no breach.
fn run(arguments: &Arguments) -> Result<bool> {
    let pairs = chosen(&arguments.pair)?;
    if arguments.list {
        list(&pairs);
        return Ok(true);
    }
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(..1 << 32));
    let world = World::from_env(seed)?;
    let (pairs, left_out): (Vec<Pair>, Vec<Pair>) =
        pairs.into_iter().partition(|pair| world.broker.is_some() || !pair.needs_broker());
    let (possible, mut missing) = world.possible();
    if !left_out.is_empty() {
        let count = left_out.len();
        missing.push(format!("THERE IS NO KAFKA BROKER: {count} PAIRS ARE LEFT OUT"));
    }
    ensure!(!pairs.is_empty(), "no pair is left: {}", missing.join("; "));
    println!("seed {seed}: {} kills over {} pairs", arguments.kills, pairs.len());
    missing.iter().for_each(|missing| println!("warning: {missing}"));

    world.clear()?;
    let begun = Instant::now();
    let plans = schedule::plan(seed, arguments.kills, &pairs, &possible);
    let mut tallies: Vec<(String, Tally)> = Vec::new();
    let mut source: Option<Source> = None;
    for (pair, plan) in pairs.iter().zip(plans) {
        if plan.is_empty() {
            continue;
        }
        let source = match source.take().filter(|made| made.input == pair.input) {
            Some(made) => source.insert(made),
            None => source.insert(Source::make(&world, pair.input)?),
        };
        let pair_begun = Instant::now();
        let mut campaign = Campaign::new(&world, *pair, source);
        let done = campaign.run(plan);
        let mut tally = campaign.tally;
        if let Err(breach) = &done {
            tally.breaches += 1;
            println!("\nBREACH in {}: {breach:#}\n", pair.name());
        }
        println!(
            "{:<24} {:>4} kills, {:>4} runs, {:>5.1} s{}",
            pair.name(),
            tally.kills,
            tally.runs,
            pair_begun.elapsed().as_secs_f64(),
            if tally.missed > 0 { format!(", {} came too late", tally.missed) } else { "".into() }
        );
        tallies.push((pair.name(), tally));
    }
    println!("\n{}", table(&tallies));
    println!(
        "in checkpoint: all = while outputs prepare + positions are stored + outputs complete"
    );
    println!("seed {seed}, {:.0} s", begun.elapsed().as_secs_f64());
    missing.iter().for_each(|missing| println!("warning: {missing}"));
    let breaches: u64 = tallies.iter().map(|(_, tally)| tally.breaches).sum();
    if breaches > 0 {
        println!("{breaches} breaches; what was kept is in {}", world.folder.display());
        let pairs = arguments.pair.iter().map(|name| format!(" --pair {name}")).collect::<String>();
        println!("again: cargo xtask torture --kills {} --seed {seed}{pairs}", arguments.kills);
        return Ok(false);
    }
    world.clear()?;
    Ok(true)
}

/// The pairs whose names have one of these in them; without any, all.
fn chosen(names: &[String]) -> Result<Vec<Pair>> {
    let all = Pair::all();
    for name in names {
        if !all.iter().any(|pair| pair.name().contains(name.as_str())) {
            bail!("there is no pair {name}; --list shows all");
        }
    }
    let is_wanted = |pair: &Pair| {
        names.is_empty() || names.iter().any(|name| pair.name().contains(name.as_str()))
    };
    Ok(all.into_iter().filter(is_wanted).collect())
}

fn list(pairs: &[Pair]) {
    for pair in pairs {
        let promise = if pair.may_double() {
            "at least once"
        } else if pair.has_fixed_bytes() {
            "exactly once, byte for byte"
        } else {
            "exactly once"
        };
        let broker = if pair.needs_broker() { ", needs a broker" } else { "" };
        println!("{:<24} {promise}{broker}", pair.name());
    }
    println!("\nstdout is left out: what was printed cannot be taken back\n");
    for kind in [Kind::Kill].into_iter().chain(Kind::OTHERS) {
        println!("{:<24} {}", kind.name(), kind.meaning());
    }
}
