//! What can be wrong with a state directory.

use std::path::PathBuf;

use super::DATABASE;
use super::schema::FORMAT;

/// What is wrong with a state directory.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// Another process works on it.
    #[error(
        "state directory {path} is in use by process {holder}; \
         wait for it to end, or give this run another --state-dir"
    )]
    InUse {
        /// The directory.
        path: PathBuf,
        /// The other process: number and name.
        holder: String,
    },
    /// There is none where one was expected.
    #[error("{path} is not a state directory: it has no {DATABASE}")]
    Missing {
        /// The directory.
        path: PathBuf,
    },
    /// It is damaged.
    #[error(
        "state directory {path}: {what}; nothing was changed: restore the directory from a copy, \
         or remove it to start from the beginning"
    )]
    Damaged {
        /// The directory.
        path: PathBuf,
        /// What is damaged.
        what: String,
    },
    /// Another version of lockgate wrote it.
    #[error("state directory {path} has format {found}, this program reads format {FORMAT}")]
    Format {
        /// The directory.
        path: PathBuf,
        /// What it has.
        found: String,
    },
    /// The pipeline is not the one that the directory belongs to.
    #[error(
        "the pipeline is not the one that state directory {path} belongs to:\n{}\n\
         run the old pipeline to its end, give this one another --state-dir, or go on from the stored \
         positions with --accept",
        changes.join("\n")
    )]
    Changed {
        /// The directory.
        path: PathBuf,
        /// One line per difference.
        changes: Vec<String>,
    },
    /// Journaled steps would not be what they were.
    #[error(
        "state directory {path} has steps that have to be run again as they were, and these settings changed \
         meanwhile:\n{}\n\
         start once with the old settings and stop it in order, after which the change needs no consent; or go \
         on from the stored positions with --accept",
        changes.join("\n")
    )]
    ChangedBeforeReplay {
        /// The directory.
        path: PathBuf,
        /// One line per difference.
        changes: Vec<String>,
    },
    /// The journal needs an input that the pipeline does not have any more.
    #[error(
        "state directory {path}: journaled steps need the input {input:?}, which the pipeline does not \
         have; run it once more with that input"
    )]
    InputGone {
        /// The directory.
        path: PathBuf,
        /// The input.
        input: String,
    },
    /// The disk is full; nothing was changed.
    #[error("state directory {path}: the disk is full")]
    Full {
        /// The directory.
        path: PathBuf,
    },
    /// The disk or the database failed.
    #[error("state directory {path}: {what}: {source}")]
    Storage {
        /// The directory.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: lockgate_core::BoxError,
    },
}
