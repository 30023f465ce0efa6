//! The ports of the input side: an endpoint is opened into a reader, which answers to a consumer.

use std::num::NonZeroU32;
use std::sync::Arc;

use serde_json::Value as JsonValue;

use crate::batch::Batch;
use crate::command::InputReaderCommand;
use crate::error::EndpointError;
use crate::record::{BufferSize, QueueLimits};
use crate::resume::{FaultTolerance, Resume};
use crate::watch::InputWatch;

/// A configured source that can be opened.
pub trait InputEndpoint: Send {
    /// The strongest level that its readers can keep.
    fn fault_tolerance(&self) -> FaultTolerance;

    /// Opens a reader that will keep the promises of `level`, at most
    /// [`fault_tolerance`](Self::fault_tolerance). It reads nothing before the first command.
    ///
    /// `resume` is the `seek` of an earlier [`Resume`]; `None` means the very first start. A symbolic
    /// start ("the end") must have become a number before this returns.
    ///
    /// # Errors
    /// When the source cannot be opened, or is not the one that `resume` describes.
    fn open(
        self: Box<Self>,
        level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Box<dyn InputReader>, EndpointError>;
}

/// An open source. It executes commands, on a thread of its own if it needs one, in the order in which
/// they come, and answers to its [`InputConsumer`].
pub trait InputReader: Send {
    /// Accepts a command; must not block. Commands come only as
    /// [`ReaderProtocol`](crate::ReaderProtocol) allows.
    fn request(&self, command: InputReaderCommand);

    /// Whether the reader has ended, by end of input with nothing left to hand over, by a fatal error
    /// that it has reported, or after [`InputReaderCommand::Disconnect`]. A reader that is closed
    /// otherwise has died. A closed reader answers nothing, not even a `Queue` that it was sent before.
    fn is_closed(&self) -> bool;

    /// The position to store in a checkpoint that is taken before the reader has handed over anything:
    /// where it started. `None` if that is "the beginning", for which nothing needs to be stored.
    fn start(&self) -> Option<JsonValue> {
        None
    }

    /// A checkpoint with this position of the reader is durable: upstream can be told that what lies before it
    /// is done with. Must not block.
    fn checkpointed(&self, seek: &JsonValue) {
        let _ = seek;
    }

    /// From now on at most this many records of each partition are to be pending. Comes while the reader is paused
    /// and holds nothing. Must not block. For readers that bound partitions one by one; others have
    /// [`QueueLimits`] only.
    fn reload(&self, max_pending_records: NonZeroU32) {
        let _ = max_pending_records;
    }

    /// What people who watch can look at while it runs.
    fn watch(&self) -> Option<Arc<dyn InputWatch>> {
        None
    }
}

/// Where a reader reports to. Calls do not block.
pub trait InputConsumer: Send + Sync {
    /// How many records to hand over at most in answer to one `Queue`. May change from one to the next.
    fn max_batch_size(&self) -> usize;

    /// How much the reader may hold. Changes only while the reader is paused and holds nothing.
    fn limits(&self) -> QueueLimits;

    /// The reader has buffered this much more.
    fn buffered(&self, amount: BufferSize);

    /// The reader has let go of this much that it had buffered and not handed over: it was told to stop reading
    /// the part of the source it came from, and whoever reads that part next will read it.
    fn discarded(&self, amount: BufferSize);

    /// A checkpoint is wanted soon: part of the source is about to be given up.
    fn request_checkpoint(&self) {}

    /// The answer to `Replay`: the records of the step.
    fn replayed(&self, batches: Vec<Batch>);

    /// The answer to `Queue`: the records, and where the reader stands after them.
    fn extended(&self, batches: Vec<Batch>, resume: Resume);

    /// All input has been buffered; nothing more will come.
    fn eoi(&self);

    /// Something went wrong. After a fatal error the reader gives nothing more and may close.
    fn error(&self, fatal: bool, error: EndpointError);

    /// A stated policy was applied (a line cut short, a file skipped): counted under `policy`, with a
    /// text that says to what.
    fn policy_applied(&self, policy: &'static str, text: String);
}
