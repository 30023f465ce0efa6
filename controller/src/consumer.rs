//! Where the readers report to: every call becomes an event.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use lockgate_core::{Batch, BufferSize, EndpointError, InputConsumer, QueueLimits, Resume};
use tokio::sync::mpsc::UnboundedSender;

use crate::sequence::Event;

/// How often each stated policy was applied to an input.
pub(crate) type PolicyCounts = Arc<Mutex<BTreeMap<&'static str, u64>>>;

/// Texts logged per policy; what comes after them is only counted.
const LOGGED: u64 = 10;

pub(crate) struct Consumer {
    pub(crate) input: usize,
    pub(crate) name: String,
    pub(crate) max_batch_records: usize,
    pub(crate) limits: QueueLimits,
    pub(crate) policies: PolicyCounts,
    pub(crate) events: UnboundedSender<Event>,
}

impl Consumer {
    fn send(&self, event: Event) {
        // When nobody listens any more the run is over.
        let _ = self.events.send(event);
    }
}

impl InputConsumer for Consumer {
    fn max_batch_size(&self) -> usize {
        self.max_batch_records
    }

    fn limits(&self) -> QueueLimits {
        self.limits
    }

    fn buffered(&self, amount: BufferSize) {
        self.send(Event::Buffered { input: self.input, amount });
    }

    fn replayed(&self, batches: Vec<Batch>) {
        self.send(Event::Replayed { input: self.input, batches });
    }

    fn extended(&self, batches: Vec<Batch>, resume: Resume) {
        self.send(Event::Extended { input: self.input, batches, resume });
    }

    fn eoi(&self) {
        self.send(Event::EndOfInput { input: self.input });
    }

    fn error(&self, fatal: bool, error: EndpointError) {
        self.send(Event::InputFailed { input: self.input, fatal, error });
    }

    fn policy_applied(&self, policy: &'static str, text: String) {
        let mut counts = self.policies.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(policy).or_insert(0);
        *count += 1;
        match *count {
            ..=LOGGED => tracing::warn!(input = self.name, policy, "{text}"),
            n if n == LOGGED + 1 => {
                tracing::warn!(input = self.name, policy, "more of the same is only counted");
            }
            _ => {}
        }
    }
}
