//! Keeps what the inputs gave, step by step.

use lockgate_core::{EndpointError, PartDigest, Step};

/// Takes down every step of a run, beside the outputs. It stands on the same thread.
pub trait Recorder: Send {
    /// Takes down a step, with the digests of its parts, in their order. Steps come in their order and, under exactly
    /// once, when they are durable in the journal. After a crash those that no checkpoint covers come again.
    ///
    /// # Errors
    /// If it cannot be kept. That ends the run.
    fn record(&mut self, step: &Step, digests: &[PartDigest]) -> Result<(), EndpointError>;

    /// Makes durable what was taken down: a checkpoint follows, after which these steps do not come again.
    ///
    /// # Errors
    /// If it cannot be kept. That ends the run.
    fn flush(&mut self) -> Result<(), EndpointError>;
}
