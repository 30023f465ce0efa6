//! `cargo xtask fuzz`: the targets in `fuzz/`, each for some minutes.
//!
//! What is found while it runs goes into `fuzz/target/corpus`; with `--keep` a small part of that goes into
//! `fuzz/corpus`, from where every run begins. An input that makes a target fail is in `fuzz/artifacts`: it becomes a test
//! of the crate concerned, and whatever is like it is put right with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::cargo::{run as run_command, workspace_root};

/// What a person has to do where something is missing.
const REMEDY: &str = "fuzzing needs a nightly compiler and cargo-fuzz: `rustup toolchain install nightly` and \
                      `cargo install cargo-fuzz --locked`";

/// So many inputs of each target are kept in the repository,
const KEPT: usize = 50;
/// none of them larger than this.
const KEPT_BYTES: u64 = 1024;

/// Which targets, and for how long.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The targets, by the names of their files in `fuzz/targets`; all if there are none.
    targets: Vec<String>,
    /// For how long each of them runs.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// Afterwards, take the inputs that reach most with the fewest bytes into `fuzz/corpus`.
    #[arg(long)]
    keep: bool,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let root = workspace_root()?;
    ensure!(is_there(&root), "{REMEDY}");
    let known = known(&root)?;
    let chosen = if arguments.targets.is_empty() { &known } else { &arguments.targets };
    if let Some(unknown) = chosen.iter().find(|target| !known.contains(target)) {
        bail!("there is no target `{unknown}`; there are {}", known.join(", "));
    }
    let mut failed = Vec::new();
    for target in chosen {
        println!("\n{target}, {} minutes", arguments.minutes);
        if let Err(error) = run_target(&root, target, arguments.minutes) {
            println!("{error:#}");
            failed.push(target.as_str());
        }
        if arguments.keep {
            keep(&root, target)?;
        }
    }
    if failed.is_empty() {
        return Ok(());
    }
    bail!(
        "faults in {}: what led to them is in fuzz/artifacts. Put right what it shows, and make it a test of the \
         crate concerned",
        failed.join(", ")
    )
}

/// The targets, by the names of their files.
fn known(root: &Path) -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in fs::read_dir(root.join("fuzz/targets")).context("cannot list fuzz/targets")? {
        let path = entry?.path();
        targets.extend(path.file_stem().map(|name| name.to_string_lossy().into_owned()));
    }
    targets.sort();
    Ok(targets)
}

fn is_there(root: &Path) -> bool {
    let mut command = nightly(root, &["fuzz", "--version"]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// A command of the nightly cargo, whichever cargo has started us.
fn nightly(root: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.current_dir(root).args(["run", "nightly", "cargo"]).args(arguments);
    // What the stable cargo says of itself.
    for name in ["CARGO", "RUSTUP_TOOLCHAIN", "RUSTC", "RUSTDOC"] {
        command.env_remove(name);
    }
    // The C of zstd is built with the sanitizer, too, and librdkafka's configure links against it.
    command.env("LDFLAGS", "-fsanitize=address");
    let memory = Path::new("/dev/shm");
    if memory.is_dir() {
        // Files of a moment need no disk.
        command.env("TMPDIR", memory);
    }
    command
}

/// What was found so far, and what is in the repository.
fn corpora(root: &Path, target: &str) -> Result<(PathBuf, PathBuf)> {
    let (found, kept) =
        (root.join("fuzz/target/corpus").join(target), root.join("fuzz/corpus").join(target));
    for folder in [&found, &kept] {
        fs::create_dir_all(folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
    }
    Ok((found, kept))
}

fn run_target(root: &Path, target: &str, minutes: u64) -> Result<()> {
    let (found, kept) = corpora(root, target)?;
    let mut command = nightly(root, &["fuzz", "run", target]);
    command.args([found, kept]).arg("--");
    command.arg(format!("-max_total_time={}", minutes * 60));
    // No input takes long, or much memory, whatever it is.
    command.args(["-timeout=20", "-rss_limit_mb=1024", "-malloc_limit_mb=256", "-max_len=8192"]);
    command.args(["-print_final_stats=1", "-use_value_profile=1"]);
    let dictionary = root.join("fuzz/dictionaries").join(target);
    if dictionary.is_file() {
        command.arg(format!("-dict={}", dictionary.display()));
    }
    run_command(command)
}

/// Takes a small part of what was found into the repository.
fn keep(root: &Path, target: &str) -> Result<()> {
    let (found, kept) = corpora(root, target)?;
    let mut command = nightly(root, &["fuzz", "cmin", target]);
    command.arg(&found);
    run_command(command)?;
    let mut inputs = Vec::new();
    for folder in [&kept, &found] {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            inputs.push((entry.metadata()?.len(), entry.file_name(), fs::read(entry.path())?));
        }
    }
    inputs.retain(|(bytes, ..)| *bytes <= KEPT_BYTES);
    inputs.sort();
    inputs.dedup_by(|one, other| one.2 == other.2);
    let chosen = spread(&inputs, KEPT);
    fs::remove_dir_all(&kept)?;
    fs::create_dir_all(&kept)?;
    for (_, name, bytes) in &chosen {
        fs::write(kept.join(name), bytes)?;
    }
    println!("{target}: {} inputs are in fuzz/corpus", chosen.len());
    Ok(())
}

/// At most `most` of them, from the first to the last.
fn spread<T>(all: &[T], most: usize) -> Vec<&T> {
    let step = all.len().div_ceil(most.max(1)).max(1);
    all.iter().step_by(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_many_is_spread_over_all() {
        assert_eq!(spread(&[1, 2, 3], 5), [&1, &2, &3]);
        let all: Vec<usize> = (0..101).collect();
        let some = spread(&all, 50);
        assert!(some.len() <= 50 && *some[0] == 0 && **some.last().unwrap() >= 98, "{some:?}");
    }

    /// One that is not in the manifest would never be built.
    #[test]
    fn every_target_is_in_the_manifest() {
        let root = workspace_root().unwrap();
        let manifest = fs::read_to_string(root.join("fuzz/Cargo.toml")).unwrap();
        for target in known(&root).unwrap() {
            assert!(manifest.contains(&format!("path = \"targets/{target}.rs\"")), "{target}");
        }
    }
}
