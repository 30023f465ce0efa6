//! The port through which steps leave.

use std::sync::Arc;

use serde_json::Value as JsonValue;

use crate::batch::Batch;
use crate::error::EndpointError;
use crate::resume::Position;

/// A destination of steps. One thread owns it and calls it in this order:
///
/// `attach`, `recover`, then any number of `positions` with its `write`, and for each checkpoint `prepare`, (the
/// checkpoint becomes durable), `checkpointed`, with nothing between `prepare` and `checkpointed`. `finish` comes
/// once, before the last checkpoint, when all input has ended.
pub trait Output: Send {
    /// What the pipeline knows before the output is opened: `last_step` is the last step that it has a
    /// checkpoint of or can replay, 0 if there is none. A destination that holds a later one is ahead of the
    /// state that is to be restored. `reporter` can be told at any time, from any thread.
    fn attach(&mut self, last_step: u64, reporter: Arc<dyn OutputReporter>) {
        let _ = (last_step, reporter);
    }

    /// Opens the destination and undoes everything after `position`; `None` on the very first start,
    /// when what is already there stays. Gives the position from which writing goes on, which will come
    /// back here unless a later one is stored. What a crash left unfinished between a checkpoint and
    /// [`checkpointed`](Self::checkpointed) is completed here.
    ///
    /// # Errors
    /// When the destination cannot be opened, or is not what `position` describes.
    fn recover(&mut self, position: Option<&JsonValue>) -> Result<JsonValue, EndpointError>;

    /// Where the inputs that took part in step `step` stand after it, told once before the step is written. For a
    /// destination that makes positions durable together with the data.
    fn positions(&mut self, step: u64, positions: &[InputPosition]) {
        let _ = (step, positions);
    }

    /// Writes the output of step `step`, whose journal entry is durable.
    ///
    /// # Errors
    /// After [`EndpointError::StorageFull`] nothing of the step has been written and the same call may
    /// come again. After any other error the output is not used any more.
    fn write(&mut self, step: u64, batches: &[Batch]) -> Result<(), EndpointError>;

    /// Makes everything written so far durable and gives the position that claims it.
    ///
    /// # Errors
    /// After [`EndpointError::StorageFull`] the same call may come again.
    fn prepare(&mut self) -> Result<JsonValue, EndpointError>;

    /// The checkpoint with the position from [`prepare`](Self::prepare) is durable: what must follow
    /// (a final name, an acknowledgement) can be done.
    ///
    /// # Errors
    /// After [`EndpointError::StorageFull`] the same call may come again. What any other error leaves undone
    /// is completed by the next [`recover`](Self::recover).
    fn checkpointed(&mut self) -> Result<(), EndpointError>;

    /// All input has ended: whatever is held open for more (the last segment) is closed.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    fn finish(&mut self) -> Result<(), EndpointError> {
        Ok(())
    }
}

/// Where an input stands after a step.
#[derive(Clone, Debug, PartialEq)]
pub struct InputPosition {
    /// The input's place in the pipeline, from 0.
    pub input: usize,
    /// As the reader gave it, whole or what changed; `None` at a barrier.
    pub seek: Option<Arc<Position>>,
}

/// Where an output reports to. Calls do not block.
pub trait OutputReporter: Send + Sync {
    /// Something does not work at the moment, and is tried again.
    fn trouble(&self, error: EndpointError);

    /// It works again.
    fn recovered(&self);

    /// A stated policy was applied (a record skipped): counted under `policy`, with a text that says to what.
    fn policy_applied(&self, policy: &'static str, text: String);
}

impl Output for Box<dyn Output> {
    fn attach(&mut self, last_step: u64, reporter: Arc<dyn OutputReporter>) {
        (**self).attach(last_step, reporter);
    }

    fn positions(&mut self, step: u64, positions: &[InputPosition]) {
        (**self).positions(step, positions);
    }

    fn recover(&mut self, position: Option<&JsonValue>) -> Result<JsonValue, EndpointError> {
        (**self).recover(position)
    }

    fn write(&mut self, step: u64, batches: &[Batch]) -> Result<(), EndpointError> {
        (**self).write(step, batches)
    }

    fn prepare(&mut self) -> Result<JsonValue, EndpointError> {
        (**self).prepare()
    }

    fn checkpointed(&mut self) -> Result<(), EndpointError> {
        (**self).checkpointed()
    }

    fn finish(&mut self) -> Result<(), EndpointError> {
        (**self).finish()
    }
}
