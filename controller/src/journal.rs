//! The thread that owns the state directory. Steps that wait together become durable together.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::mpsc::UnboundedSender;

use crate::alarm::Alarm;
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
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
    /// Calls off waiting for space when dropped.
    patience: Option<Sender<()>>,
    kept: Arc<Kept>,
}

impl Journal {
    /// `size` is what the journal has already.
    pub(crate) fn start(
        source: Source,
        size: JournalStatus,
        events: UnboundedSender<Event>,
    ) -> Result<Self, std::io::Error> {
        let kept = Arc::new(Kept {
            steps: size.steps.into(),
            bytes: size.bytes.into(),
            ..Kept::default()
        });
        let keeps = kept.clone();
        let (work, receiver) = channel();
        let (patience, called_off) = channel();
        let space = SpaceWait { events, called_off };
        let thread = std::thread::Builder::new()
            .name("lockgate-journal".into())
            .spawn(move || run(source, &receiver, &space, &keeps))?;
        Ok(Self { work: Some(work), thread: Some(thread), patience: Some(patience), kept })
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

fn run(mut source: Source, work: &Receiver<Work>, space: &SpaceWait, kept: &Kept) {
    let alarm = Alarm::set("the thread of the state directory", space.events.clone());
    let mut waiting = VecDeque::new();
    while let Some(next) = waiting.pop_front().or_else(|| work.recv().ok()) {
        waiting.extend(work.try_iter());
        let done = match &mut source {
            Source::State(state) => keep(state, next, &mut waiting, space, kept),
            Source::Script(script) => follow(script, &next),
        };
        let failed = done.is_err();
        let event = done.unwrap_or_else(|failure| Event::Broken { failure });
        if space.events.send(event).is_err() || failed {
            break;
        }
    }
    alarm.off();
}

fn keep(
    state: &mut State,
    work: Work,
    waiting: &mut VecDeque<Work>,
    space: &SpaceWait,
    kept: &Kept,
) -> Result<Event, Failure> {
    let done = match work {
        Work::Load { after } => {
            state.journaled(after, LOAD_STEPS).map(|steps| Event::JournalLoaded { steps })
        }
        Work::Append(step) => {
            let mut steps = vec![step];
            while steps.len() < APPEND_STEPS
                && let Some(Work::Append(_)) = waiting.front()
                && let Some(Work::Append(step)) = waiting.pop_front()
            {
                steps.push(step);
            }
            let through = steps.last().map_or(0, |step| step.step);
            space.until_space(is_full, || state.append(&steps)).map(|bytes| {
                kept.steps.fetch_add(steps.len() as u64, Ordering::Relaxed);
                kept.bytes.fetch_add(bytes, Ordering::Relaxed);
                Event::Journaled { through }
            })
        }
        Work::Store(checkpoint) => {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let store = || state.store(&checkpoint, now.as_millis() as u64);
            space.until_space(is_full, store).map(|bytes| {
                // It covers every step that was journaled before.
                kept.steps.store(0, Ordering::Relaxed);
                kept.bytes.store(0, Ordering::Relaxed);
                kept.checkpoint_bytes.store(bytes, Ordering::Relaxed);
                Event::Stored
            })
        }
        Work::KeepPaused { inputs, ticket } => {
            let keep = || state.keep_paused(&inputs);
            space.until_space(is_full, keep).map(|()| Event::PausesKept { ticket })
        }
    };
    done.map_err(Failure::State)
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
