//! The thread that owns the state directory. Steps that wait together become durable together.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::UNIX_EPOCH;

use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};

use crate::alarm::Alarm;
use crate::host::Host;
use crate::script::Script;
use crate::sequence::{Checkpoint, Event, Failure, JournaledStep, Ticket};
use crate::space::SpaceWait;
use crate::state::{State, StateError};
use crate::status::JournalStatus;

/// Steps read at a time when the journal is replayed.
const LOAD_STEPS: u32 = 1000;

/// Steps made durable at most in one transaction.
const APPEND_STEPS: usize = 64;

/// Where journaled steps come from.
pub(crate) enum Source {
    /// New ones are stored there too.
    State(State),
    Script(Script),
}

enum Work {
    Load { after: u64 },
    Append(JournaledStep),
    Store(Checkpoint),
    KeepPaused { inputs: Vec<usize>, ticket: Ticket },
}

/// What the state directory holds, readable from any thread.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    steps: AtomicU64,
    bytes: AtomicU64,
    checkpoint_bytes: AtomicU64,
}

impl Kept {
    pub(crate) fn journal(&self) -> JournalStatus {
        let [steps, bytes] = [&self.steps, &self.bytes].map(|n| n.load(Ordering::Relaxed));
        JournalStatus { steps, bytes }
    }

    pub(crate) fn checkpoint_bytes(&self) -> u64 {
        self.checkpoint_bytes.load(Ordering::Relaxed)
    }
}

/// The thread; it ends, and releases the state directory, when this is dropped.
pub(crate) struct Journal {
    work: Option<UnboundedSender<Work>>,
    thread: Option<JoinHandle<()>>,
    /// Calls off waiting for space when dropped.
    patience: Option<Sender<()>>,
    kept: Arc<Kept>,
}

impl Journal {
    /// `size` is what the journal has already.
    pub(crate) fn start(
        host: &Arc<dyn Host>,
        source: Source,
        size: JournalStatus,
        events: UnboundedSender<Event>,
    ) -> Result<Self, std::io::Error> {
        let kept = Arc::new(Kept {
            steps: size.steps.into(),
            bytes: size.bytes.into(),
            ..Kept::default()
        });
        let (work, waiting) = unbounded_channel();
        let (patience, called_off) = channel(1);
        let keeper = Keeper {
            work: waiting,
            waiting: VecDeque::new(),
            space: SpaceWait { events, called_off, host: host.clone() },
            kept: kept.clone(),
        };
        let thread = host.spawn("lockgate-journal", Box::pin(keeper.run(source)))?;
        Ok(Self { work: Some(work), thread, patience: Some(patience), kept })
    }

    pub(crate) fn load(&self, after: u64) {
        self.send(Work::Load { after });
    }

    pub(crate) fn append(&self, step: JournaledStep) {
        self.send(Work::Append(step));
    }

    pub(crate) fn store(&self, checkpoint: Checkpoint) {
        self.send(Work::Store(checkpoint));
    }

    pub(crate) fn keep_paused(&self, inputs: Vec<usize>, ticket: Ticket) {
        self.send(Work::KeepPaused { inputs, ticket });
    }

    /// What the state directory holds.
    pub(crate) fn kept(&self) -> &Kept {
        &self.kept
    }

    fn send(&self, work: Work) {
        // If the thread is gone it has said why; that event ends the run.
        let _ = self.work.as_ref().map(|sender| sender.send(work));
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.patience = None;
        self.work = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What works on the state directory.
struct Keeper {
    work: UnboundedReceiver<Work>,
    /// Work that has come and waits.
    waiting: VecDeque<Work>,
    space: SpaceWait,
    kept: Arc<Kept>,
}

impl Keeper {
    async fn run(mut self, mut source: Source) {
        let alarm = Alarm::set("the thread of the state directory", self.space.events.clone());
        while let Some(work) = self.next().await {
            let done = match &mut source {
                Source::State(state) => self.keep(state, work).await,
                Source::Script(script) => follow(script, &work),
            };
            let failed = done.is_err();
            let event = done.unwrap_or_else(|failure| Event::Broken { failure });
            if self.space.events.send(event).is_err() || failed {
                break;
            }
        }
        alarm.off();
    }

    async fn next(&mut self) -> Option<Work> {
        let next = match self.waiting.pop_front() {
            Some(work) => work,
            None => self.work.recv().await?,
        };
        while let Ok(work) = self.work.try_recv() {
            self.waiting.push_back(work);
        }
        Some(next)
    }

    async fn keep(&mut self, state: &mut State, work: Work) -> Result<Event, Failure> {
        let done = match work {
            Work::Load { after } => {
                state.journaled(after, LOAD_STEPS).map(|steps| Event::JournalLoaded { steps })
            }
            Work::Append(step) => {
                let steps = self.together(step);
                let through = steps.last().map_or(0, |step| step.step);
                self.space.until_space(is_full, || state.append(&steps)).await.map(|bytes| {
                    self.kept.steps.fetch_add(steps.len() as u64, Ordering::Relaxed);
                    self.kept.bytes.fetch_add(bytes, Ordering::Relaxed);
                    Event::Journaled { through }
                })
            }
            Work::Store(checkpoint) => {
                let now =
                    self.space.host.wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default();
                let store = || state.store(&checkpoint, now.as_millis() as u64);
                self.space.until_space(is_full, store).await.map(|bytes| {
                    // It covers every step that was journaled before.
                    self.kept.steps.store(0, Ordering::Relaxed);
                    self.kept.bytes.store(0, Ordering::Relaxed);
                    self.kept.checkpoint_bytes.store(bytes, Ordering::Relaxed);
                    Event::Stored
                })
            }
            Work::KeepPaused { inputs, ticket } => {
                let keep = || state.keep_paused(&inputs);
                self.space.until_space(is_full, keep).await.map(|()| Event::PausesKept { ticket })
            }
        };
        done.map_err(Failure::State)
    }

    /// This step and those that wait behind it.
    fn together(&mut self, first: JournaledStep) -> Vec<JournaledStep> {
        let mut steps = vec![first];
        while steps.len() < APPEND_STEPS
            && let Some(Work::Append(_)) = self.waiting.front()
            && let Some(Work::Append(step)) = self.waiting.pop_front()
        {
            steps.push(step);
        }
        steps
    }
}

fn follow(script: &mut Script, work: &Work) -> Result<Event, Failure> {
    match work {
        Work::Load { .. } => {
            let steps: Vec<_> = script.steps.by_ref().take(LOAD_STEPS as usize).collect();
            match steps.is_empty() && script.stops {
                true => Ok(Event::StopRequested),
                false => Ok(Event::JournalLoaded { steps }),
            }
        }
        Work::Append(step) => {
            let text = format!("step {} is not in the script of the replay", step.step);
            Err(Failure::Bug(text))
        }
        Work::Store(_) => Ok(Event::Stored),
        Work::KeepPaused { ticket, .. } => Ok(Event::PausesKept { ticket: *ticket }),
    }
}

fn is_full(error: &StateError) -> bool {
    matches!(error, StateError::Full { .. })
}
