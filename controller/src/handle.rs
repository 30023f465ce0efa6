//! Steers a running pipeline and looks at it.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lockgate_core::{InputWatch, PartitionStatus};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{oneshot, watch};

use crate::sequence::{Answer, Event, Ticket};
use crate::status::Status;
use crate::tap::{Tap, TapError, Taps};
use crate::tuning::Reload;

/// Why what was asked for did not happen.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SteerError {
    /// The run ended before it could happen.
    #[error("the run has ended")]
    Ended,
    /// Nothing can be stored at the moment.
    #[error("there was no checkpoint: {reason}; the last one covers step {checkpoint}")]
    Blocked {
        /// What waits, and why.
        reason: String,
        /// The last step that a checkpoint covers.
        checkpoint: u64,
    },
    /// Somebody has paused an input where no checkpoint can be taken.
    #[error(
        "there can be no checkpoint: input {input} is paused in the middle of what must be read as a whole; \
         resume it first. The last one covers step {checkpoint}"
    )]
    AtBarrier {
        /// The input's name.
        input: String,
        /// The last step that a checkpoint covers.
        checkpoint: u64,
    },
    /// It took longer than a stop may take.
    #[error(
        "there was no checkpoint within shutdown_timeout; the last one covers step {checkpoint}"
    )]
    Late {
        /// The last step that a checkpoint covers.
        checkpoint: u64,
    },
    /// The pipeline stores nothing.
    #[error("the pipeline's delivery is none, so there are no checkpoints")]
    NoState,
}

/// Steers a running pipeline and looks at it. Every request can be dropped while it waits; it happens all the same.
#[derive(Clone)]
pub struct Handle {
    events: UnboundedSender<Event>,
    desk: Arc<Desk>,
    status: watch::Receiver<Status>,
    watches: Arc<[Option<Arc<dyn InputWatch>>]>,
    taps: Arc<Taps>,
    has_state: bool,
}

/// Those who wait for answers.
#[derive(Default)]
pub(crate) struct Desk {
    last: AtomicU64,
    waiting: Mutex<Waiting>,
}

#[derive(Default)]
struct Waiting {
    answers: BTreeMap<Ticket, oneshot::Sender<Answer>>,
    /// Whether nobody will be answered any more.
    is_over: bool,
}

impl Desk {
    fn ask(&self) -> (Ticket, oneshot::Receiver<Answer>) {
        let ticket = Ticket(self.last.fetch_add(1, Ordering::Relaxed));
        let (answer, answered) = oneshot::channel();
        let mut waiting = self.waiting();
        if !waiting.is_over {
            waiting.answers.insert(ticket, answer);
        }
        (ticket, answered)
    }

    pub(crate) fn answer(&self, ticket: Ticket, answer: Answer) {
        if let Some(waiting) = self.waiting().answers.remove(&ticket) {
            // Whoever asked may have gone.
            let _ = waiting.send(answer);
        }
    }

    /// Nobody will be answered any more.
    pub(crate) fn close(&self) {
        *self.waiting() = Waiting { answers: BTreeMap::new(), is_over: true };
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a handle is made of.
pub(crate) struct Parts {
    pub(crate) events: UnboundedSender<Event>,
    pub(crate) desk: Arc<Desk>,
    pub(crate) status: watch::Receiver<Status>,
    pub(crate) watches: Arc<[Option<Arc<dyn InputWatch>>]>,
    pub(crate) taps: Arc<Taps>,
    pub(crate) has_state: bool,
}

impl Handle {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts { events, desk, status, watches, taps, has_state } = parts;
        Self { events, desk, status, watches, taps, has_state }
    }

    /// The status, published several times a second.
    pub fn status(&self) -> &watch::Receiver<Status> {
        &self.status
    }

    /// Where the input with this place in the pipeline stands in its source, by partition; nothing for inputs that do
    /// not say.
    pub fn partitions(&self, input: usize) -> Vec<PartitionStatus> {
        let watch = self.watches.get(input).and_then(Option::as_ref);
        watch.map(|watch| watch.partitions()).unwrap_or_default()
    }

    /// Looks at some of the records that pass by, without holding anything up: those come that the looker is quick
    /// enough for, whole batches at a time.
    ///
    /// # Errors
    /// If too many are looking.
    pub fn tap(&self, tap: Tap) -> Result<crate::tap::Tapped, TapError> {
        self.taps.open(tap)
    }

    /// Stops in order: steps under way are finished, a checkpoint is taken.
    pub fn stop(&self) {
        self.send(Event::StopRequested);
    }

    /// Pauses the inputs with these places in the pipeline until [`resume`](Self::resume), over restarts too. When
    /// this returns that is durable; without a state directory it holds for this run.
    ///
    /// # Errors
    /// If the run ends before it is durable.
    pub async fn pause(&self, inputs: &[usize]) -> Result<(), SteerError> {
        inputs.iter().for_each(|input| self.send(Event::PauseRequested { input: *input }));
        self.ask(|ticket| Event::PausesAwaited { ticket }).await.map(|_| ())
    }

    /// Takes back [`pause`](Self::pause).
    ///
    /// # Errors
    /// If the run ends before it is durable.
    pub async fn resume(&self, inputs: &[usize]) -> Result<(), SteerError> {
        inputs.iter().for_each(|input| self.send(Event::ResumeRequested { input: *input }));
        self.ask(|ticket| Event::PausesAwaited { ticket }).await.map(|_| ())
    }

    /// Takes a checkpoint as soon as no reader is at a barrier; gives the last step that it covers.
    ///
    /// # Errors
    /// If there can be none, or the disk is full.
    pub async fn checkpoint(&self) -> Result<u64, SteerError> {
        self.checkpointed(|ticket| Event::CheckpointAwaited { ticket }).await
    }

    /// Stops in order, but only with a checkpoint: where there cannot be one within `shutdown_timeout`, the pipeline
    /// runs on. Gives the last step when the run is over.
    ///
    /// # Errors
    /// If there was none.
    pub async fn suspend(&self) -> Result<u64, SteerError> {
        self.checkpointed(|ticket| Event::SuspendRequested { ticket }).await
    }

    /// Puts other settings in force, without losing or reading anything twice. Returns when all of them are; a later
    /// call takes the place of one that still waits.
    ///
    /// # Errors
    /// If the run ends before.
    pub async fn reload(&self, reload: Reload) -> Result<(), SteerError> {
        self.ask(|ticket| Event::ReloadRequested { reload, ticket }).await.map(|_| ())
    }

    async fn checkpointed(&self, event: impl FnOnce(Ticket) -> Event) -> Result<u64, SteerError> {
        if !self.has_state {
            return Err(SteerError::NoState);
        }
        match self.ask(event).await? {
            Answer::Checkpointed { step } | Answer::Suspended { step } => Ok(step),
            Answer::Blocked { reason, checkpoint } => {
                Err(SteerError::Blocked { reason, checkpoint })
            }
            Answer::Late { checkpoint } => Err(SteerError::Late { checkpoint }),
            Answer::AtBarrier { input } => {
                let status = self.status.borrow();
                let input = status.inputs.get(input).map(|input| input.name.clone());
                let checkpoint = status.checkpointed_step;
                Err(SteerError::AtBarrier { input: input.unwrap_or_default(), checkpoint })
            }
            Answer::PausesKept | Answer::Reloaded => Err(SteerError::Ended),
        }
    }

    async fn ask(&self, event: impl FnOnce(Ticket) -> Event) -> Result<Answer, SteerError> {
        let (ticket, answered) = self.desk.ask();
        self.send(event(ticket));
        answered.await.map_err(|_| SteerError::Ended)
    }

    fn send(&self, event: Event) {
        let _ = self.events.send(event);
    }
}
