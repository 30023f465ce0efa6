//! What a reader says, one after the other.

use std::sync::Arc;

use lockgate_core::{Batch, BufferSize, EndpointError, InputConsumer, QueueLimits, Resume};
use tokio::sync::mpsc::UnboundedSender;

/// How much the reader may hold: what is enough to keep writing busy.
const LIMITS: QueueLimits =
    QueueLimits { max_queued_records: 1_000_000, max_queued_bytes: 32 << 20 };

pub(super) enum Said {
    Buffered(BufferSize),
    Discarded(BufferSize),
    Extended(Vec<Batch>),
    End,
    Failed(EndpointError),
}

pub(super) struct Listener {
    pub(super) sender: UnboundedSender<Said>,
    /// How many records are handed over at a time at most.
    pub(super) most: usize,
}

impl Listener {
    pub(super) fn shared(self) -> Arc<dyn InputConsumer> {
        Arc::new(self)
    }

    fn say(&self, said: Said) {
        // Nobody listens any more when the recording is over.
        let _ = self.sender.send(said);
    }
}

impl InputConsumer for Listener {
    fn max_batch_size(&self) -> usize {
        self.most
    }

    fn limits(&self) -> QueueLimits {
        LIMITS
    }

    fn buffered(&self, amount: BufferSize) {
        self.say(Said::Buffered(amount));
    }

    fn discarded(&self, amount: BufferSize) {
        self.say(Said::Discarded(amount));
    }

    fn replayed(&self, _batches: Vec<Batch>) {}

    fn extended(&self, batches: Vec<Batch>, _resume: Resume) {
        self.say(Said::Extended(batches));
    }

    fn eoi(&self) {
        self.say(Said::End);
    }

    fn error(&self, fatal: bool, error: EndpointError) {
        if fatal {
            self.say(Said::Failed(error));
        } else {
            tracing::warn!("{error}");
        }
    }

    fn policy_applied(&self, policy: &'static str, text: String) {
        tracing::warn!(policy, "{text}");
    }
}
