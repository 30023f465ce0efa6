//! What can be typed.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};

use crate::command::{From, To};

const EXIT_CODES: &str = "\
Exit codes:
   0  done
   1  what was compared differs (lockgate diff)
  64  the command line is wrong
  65  damaged input or state, or a replay that differs from what was journaled
  69  a source or destination cannot be reached
  70  a bug in lockgate
  74  the disk failed, or a file or directory cannot be written
  75  a temporary failure: the state directory is in use, or the stop took too long
  78  the pipeline file is wrong, or is not the one the state directory belongs to

Log lines go to standard error; LOCKGATE_LOG sets their level (error, warn, info, debug, trace).";

/// Reads files and Kafka topics, cuts what arrives into numbered steps, and hands each step to the outputs exactly
/// once, through crashes and restarts.
#[derive(Debug, Parser)]
#[command(name = "lockgate", version, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a pipeline until its inputs end, or until SIGTERM or SIGINT.
    ///
    /// The first signal stops in order: steps under way are finished and a checkpoint is taken. A second
    /// one ends at once; the next start recovers.
    Run(Run),
    /// Record a slice of Kafka topics into one file.
    ///
    /// The file is Parquet: any tool that reads Parquet opens it, and `lockgate replay` gives it to a pipeline. It has
    /// all of each record: position, timestamp, key, value, headers. Without -e, -c and --for it goes on until SIGINT
    /// or SIGTERM, which end it in order. Nothing is committed to any group.
    Record(Record),
    /// Run a pipeline on what was recorded of its inputs, without them.
    ///
    /// The same steps come in the same order with the same positions and timestamps, and the hash of each is compared
    /// with the one that was recorded. Where no steps were recorded, each block of records is one. Outputs begin anew;
    /// nothing is stored.
    Replay(Replay),
    /// Check that recordings, or a state directory, are what was written.
    ///
    /// Of recordings every record is read and its hash compared with the one it was recorded with; of a state
    /// directory the hashes of checkpoint and journal are compared. The first fault of each recording goes to standard
    /// error, with step, partition and offset. A recording that was cut short is no fault: it has everything up to
    /// there.
    Verify {
        /// A recording, the directory of `lockgate run --record`, or a state directory.
        what: PathBuf,
    },
    /// Show what was recorded, or a state directory.
    Show(Show),
    /// Compare two recordings, two directories of recordings, two state directories, or two files that outputs wrote.
    ///
    /// Shows the first difference, side by side, and ends with 1; 0 if there is none. Recordings are compared step by
    /// step by the hashes they were recorded with, so that only the step that differs is read; whether the files still
    /// are what was recorded is for `lockgate verify` to say.
    Diff(Diff),
    /// Validate a pipeline file and print what would run.
    Check {
        /// The pipeline file (YAML or JSON).
        pipeline: PathBuf,
    },
    /// Write a commented starter pipeline with sample data.
    Init {
        /// Where to; nothing that exists there is overwritten.
        #[arg(default_value = ".")]
        directory: PathBuf,
    },
    /// Show a running pipeline: what people should know of it, and how far it is.
    Status {
        #[command(flatten)]
        at: At,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Watch a running pipeline in the terminal; q, Esc or Ctrl-C ends it.
    Top(At),
    /// Show records that pass by, one JSON object per line, as `lockgate show --json` does.
    ///
    /// Nothing waits for whoever looks: those come that it is quick enough for.
    Tap(Tap),
    /// Pause inputs of a running pipeline until they are resumed, over restarts too.
    Pause(Choice),
    /// Let paused inputs of a running pipeline read again.
    Resume(Choice),
    /// Let a running pipeline take a checkpoint, and wait for it.
    Checkpoint(At),
    /// Stop a running pipeline with a checkpoint, and wait for it; where there can be none, it keeps running.
    Suspend(At),
    /// Stop a running pipeline in order, as SIGTERM does, and wait for it.
    Stop(At),
    /// Let a running pipeline read its file again, and put in force what has changed.
    Reload(At),
    /// Print the JSON Schema of the pipeline file, with which editors complete and check it.
    Schema,
    /// Show a state directory: last checkpoint, journaled steps, positions.
    Inspect {
        /// The state directory; a pipeline may be running on it.
        state_dir: PathBuf,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// The pipeline file (YAML or JSON).
    pub(crate) pipeline: PathBuf,
    /// Where checkpoints and the journal are kept, in place of the pipeline's `state`.
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// Go on from the stored positions although a change of the pipeline resets them.
    #[arg(long)]
    pub(crate) accept: bool,
    /// Show what runs, and take wishes, at this address, in place of the pipeline's `control.listen`: a page, metrics,
    /// an API. Port 0 is any that is free; the log says which.
    ///
    /// Within reach of other machines it needs a token.
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// A file with the token that requests must carry, in place of the pipeline's `control.token_file`.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Record what each input gives, step by step, into this directory.
    ///
    /// Each start adds a recording of each input, `INPUT-NUMBER.parquet`; they are read together.
    #[arg(long, value_name = "DIR")]
    pub(crate) record: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Record {
    /// Bootstrap servers, separated by commas.
    #[arg(long, value_name = "HOST:PORT,...", required_unless_present = "from_state")]
    pub(crate) brokers: Option<String>,
    /// The topic; may be given several times. `^` begins a pattern.
    #[arg(long, value_name = "NAME", required_unless_present = "from_state")]
    pub(crate) topic: Vec<String>,
    /// In place of topics: the journaled steps in this state directory, those since its last checkpoint. They are read
    /// from the inputs of --pipeline again, compared with their hashes, and recorded into the directory --out.
    /// Nothing is changed, so this can be done after a crash before the pipeline is started again.
    #[arg(long, value_name = "DIR", requires = "pipeline", conflicts_with_all = [
        "brokers", "topic", "partitions", "from", "to", "count", "duration", "group", "mask", "hash_keys", "properties",
    ])]
    pub(crate) from_state: Option<PathBuf>,
    /// The pipeline file that the state directory belongs to.
    #[arg(long, value_name = "FILE", requires = "from_state")]
    pub(crate) pipeline: Option<PathBuf>,
    /// Only these partitions, separated by commas.
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(crate) partitions: Vec<u32>,
    /// Where to begin in each partition: beginning, end, stored, an offset, -N (so many before the end), or s@MS (at
    /// the first record of that time or later).
    #[arg(
        short = 'o',
        value_name = "FROM",
        default_value = "beginning",
        allow_hyphen_values = true
    )]
    pub(crate) from: From,
    /// Where to end in each partition: end (as it is now), an offset, -N, or e@MS. What is there is not recorded.
    #[arg(short = 'e', value_name = "TO", allow_hyphen_values = true)]
    pub(crate) to: Option<To>,
    /// At most so many records.
    #[arg(short = 'c', value_name = "COUNT")]
    pub(crate) count: Option<u64>,
    /// At most so long, such as 30s or 5m.
    #[arg(long = "for", value_name = "DURATION", value_parser = humantime::parse_duration)]
    pub(crate) duration: Option<Duration>,
    /// Where to; nothing that exists is overwritten. A name that ends in .jsonl, .ndjson or .json gets lines like those
    /// of `kcat -J`, which lack leader epochs and proof.
    #[arg(long, value_name = "PATH")]
    pub(crate) out: PathBuf,
    /// The group whose stored offsets `-o stored` means. It is not joined.
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Option<String>,
    /// Replace this field of JSON values by a hash of it: a name, or names from the outside to the inside, such as
    /// customer.email. May be given several times. Who can guess a value can check the guess.
    #[arg(long, value_name = "FIELD")]
    pub(crate) mask: Vec<String>,
    /// Replace keys by hashes of them.
    #[arg(long)]
    pub(crate) hash_keys: bool,
    /// A property of the client library, such as sasl.username=me; file:PATH is replaced by what is in the file.
    #[arg(short = 'X', value_name = "NAME=VALUE")]
    pub(crate) properties: Vec<String>,
}

#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Replay {
    /// A recording, the directory of `lockgate run --record`, or lines of `kcat -J` (`*.jsonl`).
    pub(crate) recording: PathBuf,
    /// The pipeline file (YAML or JSON). What its outputs write begins anew.
    #[arg(required_unless_present = "to_kafka", conflicts_with = "to_kafka")]
    pub(crate) pipeline: Option<PathBuf>,
    /// Write the records back into topics of these brokers, in place of a pipeline; partitions and timestamps are
    /// kept.
    #[arg(long, value_name = "HOST:PORT,...")]
    pub(crate) to_kafka: Option<String>,
    /// The topic to write to, which must exist; left out: of the same name as the one that was recorded.
    #[arg(long, value_name = "NAME", requires = "to_kafka")]
    pub(crate) topic: Option<String>,
    /// The input that the recording is of, where the pipeline has several.
    #[arg(long, value_name = "NAME")]
    pub(crate) input: Option<String>,
    /// The first step.
    #[arg(long, value_name = "N")]
    pub(crate) from_step: Option<u64>,
    /// The last step.
    #[arg(long, value_name = "N")]
    pub(crate) to_step: Option<u64>,
    /// Only the records of this partition: `TOPIC[N]`, or the path of a file.
    #[arg(long, value_name = "PARTITION")]
    pub(crate) only: Option<String>,
    /// So many times as fast as the timestamps of the records say, such as 1x or 10x; as fast as it goes otherwise.
    #[arg(long, value_name = "FACTOR", value_parser = speed)]
    pub(crate) speed: Option<f64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Show {
    /// A recording, the directory of `lockgate run --record`, or a state directory.
    pub(crate) what: PathBuf,
    /// Only this input, where the directory has recordings of several.
    #[arg(long, value_name = "NAME")]
    pub(crate) input: Option<String>,
    /// Only this step, with its number of records and hash. Where no steps were recorded, each block of records is one,
    /// counted from 1.
    #[arg(long, value_name = "N")]
    pub(crate) step: Option<u64>,
    /// Only the records of this partition: `TOPIC[N]`, or the path of a file.
    #[arg(long, value_name = "PARTITION")]
    pub(crate) partition: Option<String>,
    /// So many records of each input, the first ones; left out: 20, with --json all.
    #[arg(short = 'n', long = "records", value_name = "N")]
    pub(crate) records: Option<u64>,
    /// Print one JSON object per record and line; what is not UTF-8 comes as base64 in `key_base64`, `value_base64`.
    ///
    /// Of a state directory, print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Diff {
    /// A recording, the directory of `lockgate run --record`, a state directory, or any other file.
    pub(crate) a: PathBuf,
    /// The same kind of thing.
    pub(crate) b: PathBuf,
    /// Only this input, where the directories have recordings of several.
    #[arg(long, value_name = "NAME")]
    pub(crate) input: Option<String>,
    /// Read and compare the records of all steps, also of those whose recorded hashes are the same.
    #[arg(long)]
    pub(crate) records: bool,
}

/// Which running pipeline is asked.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Which pipeline")]
pub(crate) struct At {
    /// Where it is asked; left out: the variable LOCKGATE_AT, or what the process of --pipeline says.
    #[arg(long, value_name = "HOST:PORT or URL", conflicts_with_all = ["pipeline", "state_dir"])]
    pub(crate) at: Option<String>,
    /// The pipeline file that it runs; left out: pipeline.yaml.
    #[arg(long, value_name = "FILE", conflicts_with = "state_dir")]
    pub(crate) pipeline: Option<PathBuf>,
    /// The state directory that it runs on, in place of --pipeline.
    #[arg(long, value_name = "DIR")]
    pub(crate) state_dir: Option<PathBuf>,
    /// The file with the token that it wants; left out: the variable LOCKGATE_TOKEN_FILE, or what the process says.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// The certificates (PEM) by which to know it, in place of those that this machine trusts.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Choice {
    /// The inputs; left out: all of them.
    #[arg(value_name = "INPUT")]
    pub(crate) inputs: Vec<String>,
    #[command(flatten)]
    pub(crate) at: At,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tap {
    /// The input or output.
    pub(crate) name: String,
    /// It is an input.
    #[arg(long, conflicts_with = "output")]
    pub(crate) input: bool,
    /// It is an output.
    #[arg(long)]
    pub(crate) output: bool,
    /// So many records.
    #[arg(short = 'n', long = "records", value_name = "N", default_value_t = 10,
        value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) records: u64,
    #[command(flatten)]
    pub(crate) at: At,
}

fn speed(text: &str) -> Result<f64, String> {
    let factor = text.strip_suffix('x').unwrap_or(text).parse::<f64>().ok();
    let factor = factor.filter(|factor| factor.is_finite() && *factor > 0.0);
    factor.ok_or_else(|| "it must be a number above 0, such as 1x, 10x or 0.5x".into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_well_formed() {
        Args::command().debug_assert();
    }
}
