//! `cargo xtask model`: which models there are, and what to do with them.

use std::fmt::Debug;
use std::hash::Hash;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;
use lockgate_model::{SeedModel, Until, WiderModel, command_models, explore, spec::Spec};
use stateright::Model;

/// Explore every reachable state of the shipped state machines, and check what must hold in each.
///
/// `specification` drives the partition contexts through exactly the events of DecatonProcessorSpec.tla: its
/// distinct states are those that TLC finds. `contexts` drives them through what real clients do beyond that.
/// `command` drives the controller's sequencing machine against every reader that keeps the protocol, with
/// crashes. A property that is broken is shown with the shortest way there, and the exit status is 1.
#[derive(Parser)]
#[command(name = "cargo xtask model", bin_name = "cargo xtask model")]
struct Arguments {
    /// Only the models whose name contains one of these.
    names: Vec<String>,
    /// The specification's number of partitions (3, or 2 with --small).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=5))]
    partitions: Option<u32>,
    /// The specification's limit of pending records (2).
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..))]
    max_pending: Option<u32>,
    /// Small bounds, as in CI: seconds, not minutes.
    #[arg(long)]
    small: bool,
    /// Do not explore, but serve a page on which one model can be walked through.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, default_missing_value = "localhost:3000")]
    explore: Option<String>,
    /// Only print the names of the models.
    #[arg(long)]
    list: bool,
}

/// A model that can be explored, or shown.
struct Entry {
    name: String,
    /// Explores it; whether every property holds.
    explore: Box<dyn FnOnce(&str) -> bool>,
    serve: Box<dyn FnOnce(&str)>,
}

impl Entry {
    fn new<M>(name: impl Into<String>, model: M) -> Self
    where
        M: Model + Clone + Send + Sync + 'static,
        M::State: Clone + Debug + Hash + PartialEq + Send + Sync + 'static,
        M::Action: Clone + Debug + PartialEq + Send + Sync + 'static,
    {
        let shown = model.clone();
        Self {
            name: name.into(),
            explore: Box::new(|name| {
                let report = explore(name, model, Until::AllSeen);
                println!("{report}");
                report.holds()
            }),
            serve: Box::new(|address| {
                println!("explore it on http://{address} (end with Ctrl-C)");
                shown.checker().serve(address);
            }),
        }
    }
}

fn entries(arguments: &Arguments) -> Vec<Entry> {
    let partitions = arguments.partitions.unwrap_or(if arguments.small { 2 } else { 3 });
    let max_pending = arguments.max_pending.unwrap_or(2);
    let seed = SeedModel { spec: Spec { partitions, max_pending }, fault: None };
    let name = format!("specification: {partitions} partitions, limit {max_pending}");
    let mut entries = vec![Entry::new(name, seed)];
    let wider = if arguments.small { WiderModel::small() } else { WiderModel::full() };
    let wider = wider.into_iter();
    entries.extend(wider.map(|(name, model)| Entry::new(format!("contexts: {name}"), model)));
    let command = command_models(!arguments.small).into_iter();
    entries.extend(command.map(|(name, model)| Entry::new(format!("command: {name}"), model)));
    entries
}

fn run(arguments: &Arguments) -> Result<bool> {
    let named = |entry: &Entry| {
        arguments.names.is_empty() || arguments.names.iter().any(|name| entry.name.contains(name))
    };
    let mut chosen = entries(arguments);
    let all: String = chosen.iter().map(|entry| format!("\n  {}", entry.name)).collect();
    chosen.retain(named);
    if chosen.is_empty() {
        bail!("no model is called {}; there are:{all}", arguments.names.join(" or "));
    }
    if arguments.list {
        chosen.iter().for_each(|entry| println!("{}", entry.name));
        return Ok(true);
    }
    if let Some(address) = &arguments.explore {
        let [_] = &chosen[..] else {
            bail!("--explore shows one model; name one of:{all}");
        };
        (chosen.remove(0).serve)(address);
        return Ok(true);
    }
    let started = Instant::now();
    let mut holds = true;
    for entry in chosen {
        holds &= (entry.explore)(&entry.name);
    }
    println!("{:.1} s in all", started.elapsed().as_secs_f64());
    Ok(holds)
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => {
            eprintln!("error: a property does not hold");
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
