//! Why a pipeline could not be started or did not end well.

use std::sync::Arc;

use lockgate_core::{EndpointError, Position};

use crate::sequence::Failure;
use crate::state::StateError;

/// Why a pipeline could not be started or did not end well.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// An input failed.
    #[error("input {input}: {error}")]
    Input {
        /// Its name.
        input: String,
        /// Why.
        error: EndpointError,
    },
    /// An output failed.
    #[error("output {output}: {error}")]
    Output {
        /// Its name.
        output: String,
        /// Why.
        error: EndpointError,
    },
    /// A reader broke the protocol or died.
    #[error("{0}")]
    Protocol(#[from] lockgate_core::ProtocolError),
    /// A reader stayed silent for too long.
    #[error("input {input}: the reader has not answered for {} s", silent.as_secs())]
    Stalled {
        /// The input's name.
        input: String,
        /// How long.
        silent: std::time::Duration,
    },
    /// A replayed step is not what was journaled.
    #[error("{0}")]
    Diverged(Box<Divergence>),
    /// The circuit failed.
    #[error("the circuit failed at step {step}: {error}")]
    Circuit {
        /// The step; 0 for its restored state.
        step: u64,
        /// Why.
        error: lockgate_core::BoxError,
    },
    /// The grace time of an orderly stop was over.
    #[error(
        "stopped after shutdown_timeout without a last checkpoint; the next start goes on from step \
         {checkpoint} and replays what came after"
    )]
    StoppedLate {
        /// The last step that a checkpoint covers.
        checkpoint: u64,
    },
    /// Our own fault.
    #[error("{0}; this is a bug in lockgate")]
    Bug(String),
}

/// Where a replay differs from what was journaled.
#[derive(Debug, thiserror::Error)]
#[error(
    "input {input}: step {step} is not what was journaled: {expected} records were journaled with hash \
     {expected_hash:016x}, {found} came back with hash {found_hash:016x}; the step should end at {seek}; \
     the source has changed since: restore it, or start afresh with another state directory"
)]
pub struct Divergence {
    /// The input's name.
    pub input: String,
    /// The step.
    pub step: u64,
    /// Number of records journaled.
    pub expected: u64,
    /// Hash journaled.
    pub expected_hash: u64,
    /// Number of records replayed.
    pub found: u64,
    /// Hash of what was replayed.
    pub found_hash: u64,
    /// Where the step should end, as the reader gave it.
    pub seek: Position,
}

impl Error {
    /// Gives names to what the machine knows by number.
    pub(crate) fn named(failure: Arc<Failure>, inputs: &[String]) -> Self {
        let failure = Arc::try_unwrap(failure);
        // Whoever ends a run lets go of the reason.
        let failure = failure.unwrap_or_else(|shared| Failure::Bug(format!("{shared:?}")));
        match failure {
            Failure::Input { input, error } => Error::Input { input: inputs[input].clone(), error },
            Failure::Protocol(error) => Error::Protocol(error),
            Failure::Stalled { input, silent } => {
                Error::Stalled { input: inputs[input].clone(), silent }
            }
            Failure::Diverged { step, input, seek, journaled, replayed } => {
                Error::Diverged(Box::new(Divergence {
                    input: inputs[input].clone(),
                    step,
                    expected: journaled.records,
                    expected_hash: journaled.hash,
                    found: replayed.records,
                    found_hash: replayed.hash,
                    seek,
                }))
            }
            Failure::Circuit { step, error } => Error::Circuit { step, error },
            Failure::Output { output, error } => Error::Output { output, error },
            Failure::State(error) => Error::State(error),
            Failure::Bug(text) => Error::Bug(text),
        }
    }
}
