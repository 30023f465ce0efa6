//! What can be typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

const EXIT_CODES: &str = "\
Exit codes:
   0  done
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
    /// Go on from the stored positions although the pipeline has changed since.
    #[arg(long)]
    pub(crate) accept_changes: bool,
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
