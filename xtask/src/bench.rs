//! `cargo xtask bench`: how fast, as a ratio to a yardstick, both run in turn on the same data.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::cargo::{cargo, run as run_command, target_folder};
use crate::kafka::{self, Wanted};

/// What to measure.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Size of the input in megabytes.
    #[arg(long, default_value_t = 1000)]
    megabytes: u64,
    /// How often each program runs.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Read Kafka topics instead of a file, beside bare loops over the same topics.
    #[arg(long)]
    kafka: bool,
}

const LINE_BYTES: u64 = 200;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    if arguments.kafka { topics(arguments) } else { files(arguments) }
}

fn topics(arguments: &Arguments) -> Result<()> {
    let broker = kafka::ensure(Wanted::default())?;
    let bootstrap = broker.needed().context("nothing can be measured")?;
    let mut command = cargo(&[
        "run",
        "--locked",
        "--release",
        "-p",
        "lockgate",
        "--example",
        "kafka_speed",
        "--",
    ])?;
    command.args([arguments.megabytes.to_string(), arguments.rounds.to_string()]);
    command.env(kafka::GIVEN, bootstrap);
    run_command(command)
}

fn files(arguments: &Arguments) -> Result<()> {
    run_command(cargo(&["build", "--locked", "--release", "-p", "lockgate"])?)?;
    let yardstick = ["-p", "lockgate-file-adapter", "--example", "split_lines"];
    run_command(cargo(&[&["build", "--locked", "--release"][..], &yardstick[..]].concat())?)?;
    let target = target_folder()?;
    let bench = Bench::new(&target, arguments.megabytes)?;
    let (input, lines) = (bench.folder.join("in.log"), bench.lines);

    let split = |_: &Path| {
        let mut command = Command::new(target.join("release/examples/split_lines"));
        command.arg(&input);
        command
    };
    println!("{lines} lines of {LINE_BYTES} bytes, {} rounds, warm cache", arguments.rounds);
    println!("ratio of speeds, a run as a whole process: median (lowest to highest)");
    for (name, pipeline) in [
        ("to null, exactly once", bench.pipeline("exactly_once", "null: {}")?),
        ("to null, no promise", bench.pipeline("none", "null: {}")?),
        ("to a file, exactly once", bench.pipeline("exactly_once", "file: {path: out.log}")?),
    ] {
        let lockgate = |folder: &Path| {
            let mut command = Command::new(target.join("release/lockgate"));
            command.arg("run").arg(&pipeline).arg("--state-dir").arg(folder.join("state"));
            command
        };
        let mut ratios = Vec::new();
        let (mut slowest, mut fastest) = (Duration::ZERO, Duration::MAX);
        // The first round warms the cache and is not counted.
        for round in 0..=arguments.rounds {
            let yardstick = bench.time(&split)?;
            let ours = bench.time(&lockgate)?;
            if round > 0 {
                ratios.push(yardstick.as_secs_f64() / ours.as_secs_f64());
                (slowest, fastest) = (slowest.max(ours), fastest.min(ours));
            }
        }
        ratios.sort_by(f64::total_cmp);
        let (low, median, high) = (ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
        println!(
            "  {name:<26} {median:.2} ({low:.2} to {high:.2}), {fastest:.2?} to {slowest:.2?}"
        );
    }
    Ok(())
}

/// A folder with the input, removed at the end.
struct Bench {
    folder: PathBuf,
    lines: u64,
}

impl Bench {
    fn new(target: &Path, megabytes: u64) -> Result<Self> {
        let folder = target.join("bench");
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        let lines = megabytes * 1_000_000 / LINE_BYTES;
        let mut file = BufWriter::with_capacity(1 << 20, File::create(folder.join("in.log"))?);
        for number in 0..lines {
            let filler = "lockgate ".repeat(30);
            let width = LINE_BYTES as usize - 13;
            writeln!(file, "{number:012}{}", &filler[..width])?;
        }
        // On the disk before anything is timed: a journal would have to wait for it.
        file.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        Ok(Self { folder, lines })
    }

    fn pipeline(&self, delivery: &str, output: &str) -> Result<PathBuf> {
        let text = format!(
            "name: bench\ndelivery: {delivery}\ninputs: {{in: {{file: {{paths: in.log}}}}}}\n\
             outputs: {{out: {{{output}}}}}\n"
        );
        // One file for each, because all are made before the first runs.
        let path = self.folder.join(format!("{delivery}-{}.yaml", output.len()));
        fs::write(&path, text)?;
        Ok(path)
    }

    fn time(&self, command: &impl Fn(&Path) -> Command) -> Result<Duration> {
        let _ = fs::remove_dir_all(self.folder.join("state"));
        let _ = fs::remove_file(self.folder.join("out.log"));
        let mut command = command(&self.folder);
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let begun = Instant::now();
        let ended = command.output().with_context(|| format!("starting {command:?}"))?;
        let elapsed = begun.elapsed();
        let said = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.success(), "{command:?} failed: {said}");
        Ok(elapsed)
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
