//! Where readers and outputs report to: what a reader says becomes an event.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use lockgate_core::{
    Batch, BufferSize, EndpointError, InputConsumer, OutputReporter, QueueLimits, Resume,
};
use tokio::sync::mpsc::UnboundedSender;

use crate::sequence::Event;

/// How often each stated policy was applied to an input or output.
#[derive(Debug, Default)]
pub(crate) struct PolicyCounts(Mutex<BTreeMap<&'static str, u64>>);

impl PolicyCounts {
    /// Counts a policy once more. The first times `log` gets the text, then once that there is more of the same.
    fn add(&self, policy: &'static str, text: &str, log: impl Fn(&str)) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = counts.entry(policy).or_insert(0);
        *count += 1;
        match *count {
            ..=LOGGED => log(text),
            n if n == LOGGED + 1 => log("more of the same is only counted"),
            _ => {}
        }
    }

    pub(crate) fn now(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Texts logged per policy; what comes after them is only counted.
const LOGGED: u64 = 10;

pub(crate) struct Consumer {
    pub(crate) input: usize,
    pub(crate) bounds: Arc<Bounds>,
    pub(crate) policies: Arc<PolicyCounts>,
    pub(crate) events: UnboundedSender<Event>,
}

/// What bounds a reader, readable from its thread while it changes.
#[derive(Debug, Default)]
pub(crate) struct Bounds {
    max_batch_records: AtomicUsize,
    max_queued_records: AtomicU64,
    max_queued_bytes: AtomicU64,
}

impl Bounds {
    pub(crate) fn new(max_batch_records: usize, limits: QueueLimits) -> Self {
        let bounds = Self::default();
        bounds.set_batch(max_batch_records);
        bounds.set_limits(limits);
        bounds
    }

    pub(crate) fn set_batch(&self, max_batch_records: usize) {
        self.max_batch_records.store(max_batch_records.max(1), Ordering::Release);
    }

    pub(crate) fn set_limits(&self, limits: QueueLimits) {
        self.max_queued_records.store(limits.max_queued_records, Ordering::Release);
        self.max_queued_bytes.store(limits.max_queued_bytes, Ordering::Release);
    }

    fn limits(&self) -> QueueLimits {
        QueueLimits {
            max_queued_records: self.max_queued_records.load(Ordering::Acquire),
            max_queued_bytes: self.max_queued_bytes.load(Ordering::Acquire),
        }
    }
}

impl Consumer {
    fn send(&self, event: Event) {
        // When nobody listens any more the run is over.
        let _ = self.events.send(event);
    }
}

impl InputConsumer for Consumer {
    fn max_batch_size(&self) -> usize {
        self.bounds.max_batch_records.load(Ordering::Acquire)
    }

    fn limits(&self) -> QueueLimits {
        self.bounds.limits()
    }

    fn buffered(&self, amount: BufferSize) {
        self.send(Event::Buffered { input: self.input, amount });
    }

    fn discarded(&self, amount: BufferSize) {
        self.send(Event::Discarded { input: self.input, amount });
    }

    fn request_checkpoint(&self) {
        self.send(Event::CheckpointRequested);
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
        // In the span of the input.
        let log = |text: &str| tracing::warn!(policy, "{text}");
        self.policies.add(policy, &text, log);
    }
}

/// What an output reports.
pub(crate) struct Reporter {
    pub(crate) name: String,
    pub(crate) policies: Arc<PolicyCounts>,
    pub(crate) trouble: Arc<Trouble>,
    pub(crate) retries: AtomicU64,
}

/// What does not work at the moment.
pub(crate) type Trouble = Mutex<Option<String>>;

impl OutputReporter for Reporter {
    fn trouble(&self, error: EndpointError) {
        let text = error.to_string();
        self.retries.fetch_add(1, Ordering::Relaxed);
        tracing::warn!(output = self.name, "{text}");
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    fn recovered(&self) {
        if self.trouble.lock().unwrap_or_else(PoisonError::into_inner).take().is_some() {
            tracing::info!(output = self.name, "it works again");
        }
    }

    fn policy_applied(&self, policy: &'static str, text: String) {
        let log = |text: &str| tracing::warn!(output = self.name, policy, "{text}");
        self.policies.add(policy, &text, log);
    }
}
