//! Parts of lockgate as a program that embeds it sees them: for what is too small to be seen in a whole process.
//!
//! Each does its work so many times and prints how many nanoseconds one took. Run in `callgrind` with two amounts,
//! it tells the instructions of one.

mod hash;
mod steps;

use anyhow::Result;
use clap::{Subcommand, ValueEnum};

/// Which part.
#[derive(Subcommand)]
pub(crate) enum Library {
    /// The hash of a part of a step, for each record.
    Hash { layout: Layout, records: u64 },
    /// Steps of one record that has no bytes, from an input in memory to no output.
    Steps {
        /// With journal and checkpoints.
        #[arg(long)]
        exactly_once: bool,
        steps: u64,
    },
}

/// How records lie in memory.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Layout {
    /// Lines of 200 bytes in the block that was read, as from a file.
    Lines,
    /// Values of 100 bytes, each copied, as from Kafka.
    Rows,
}

impl Library {
    pub(crate) fn run(self) -> Result<()> {
        let ns = match self {
            Self::Hash { layout, records } => hash::run(layout, records)?,
            Self::Steps { exactly_once, steps } => steps::run(exactly_once, steps)?,
        };
        println!("{ns}");
        Ok(())
    }
}
