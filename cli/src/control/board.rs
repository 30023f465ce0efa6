//! Where a run and those who look at it meet. It is there while the pipeline is being opened, too.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use lockgate_controller::Handle;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};

use super::report::{Change, LastReload, Report, report};

/// What does not change while the process runs.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The pipeline's name.
    pub(crate) pipeline: String,
    /// Its file.
    pub(crate) file: PathBuf,
    /// What it promises: `exactly_once`, `at_least_once` or `none`.
    pub(crate) delivery: &'static str,
    /// Its inputs, in their order.
    pub(crate) inputs: Vec<Endpoint>,
    /// Its outputs, in their order.
    pub(crate) outputs: Vec<Endpoint>,
    /// When the process started to work.
    pub(crate) started_at: SystemTime,
}

/// An input or output.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// Its name.
    pub(crate) name: String,
    /// Its kind, as in the pipeline file.
    pub(crate) kind: &'static str,
}

/// What somebody asks of the process, beside what goes to the run's own handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// An end in order, as by SIGTERM.
    Stop,
    /// The pipeline file, read again, as by SIGHUP.
    Reload,
}

/// A wish, and who waits for the outcome of a reload.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) wish: Wish,
    pub(crate) answer: Option<oneshot::Sender<Reloaded>>,
}

impl Asked {
    /// A wish to which nobody waits for an answer.
    pub(crate) fn of(wish: Wish) -> Self {
        Self { wish, answer: None }
    }
}

/// What changed by a reload, or why nothing did.
pub(crate) type Reloaded = Result<Vec<Change>, ReloadError>;

/// Why the pipeline file was not put in force. The settings in force before stay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReloadError {
    /// It cannot be read, or is wrong.
    #[error("{0}")]
    Invalid(String),
    /// It changes what cannot change while the pipeline runs.
    #[error("{0}")]
    NotLive(String),
    /// The process is about to end.
    #[error("the pipeline is stopping")]
    Stopping,
}

/// Where a run and those who look at it meet.
pub(crate) struct Board {
    pub(crate) facts: Facts,
    run: watch::Sender<Option<Handle>>,
    wishes: UnboundedSender<Asked>,
    last_reload: Mutex<Option<LastReload>>,
    seen: Mutex<Seen>,
    is_seen: Condvar,
}

/// Who looked when, and at what.
#[derive(Default)]
struct Seen {
    last: Option<Instant>,
    /// Why the run failed, if it did.
    failure: Option<String>,
    /// Whether somebody was told.
    is_told: bool,
}

/// Whoever looked within this time looks on.
const WATCHING: Duration = Duration::from_secs(5);

impl Board {
    /// A board, and the wishes that come by it.
    pub(crate) fn new(facts: Facts) -> (Self, UnboundedReceiver<Asked>) {
        let (wishes, wished) = unbounded_channel();
        let run = watch::Sender::new(None);
        let (last_reload, seen, is_seen) = Default::default();
        (Self { facts, run, wishes, last_reload, seen, is_seen }, wished)
    }

    /// The pipeline was opened, or (with `None`) is closed to be opened again.
    pub(crate) fn show(&self, run: Option<Handle>) {
        self.run.send_replace(run);
    }

    /// The run, while there is one: not while the pipeline is being opened.
    pub(crate) fn run(&self) -> Option<Handle> {
        self.run.borrow().clone()
    }

    /// Notices when the pipeline is opened and closed.
    pub(crate) fn runs(&self) -> watch::Receiver<Option<Handle>> {
        self.run.subscribe()
    }

    /// What people see.
    pub(crate) fn report(&self) -> Report {
        let status = self.run().map(|run| run.status().borrow().clone());
        let last_reload = self.last_reload();
        let mut seen = self.seen();
        seen.last = Some(Instant::now());
        seen.is_told = seen.failure.is_some();
        self.is_seen.notify_all();
        report(&self.facts, status.as_ref(), last_reload, seen.failure.as_deref())
    }

    /// How the last reload went.
    pub(crate) fn last_reload(&self) -> Option<LastReload> {
        self.last_reload.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The run has failed. Waits, for so long at most, until those who look have seen why.
    pub(crate) fn failed(&self, why: &str, patience: Duration) {
        let mut seen = self.seen();
        seen.failure = Some(why.to_owned());
        if seen.last.is_some_and(|last| last.elapsed() < WATCHING) {
            let untold = |seen: &mut Seen| !seen.is_told;
            let waited = self.is_seen.wait_timeout_while(seen, patience, untold);
            drop(waited);
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for an end in order.
    pub(crate) fn stop(&self) {
        let _ = self.wishes.send(Asked::of(Wish::Stop));
    }

    /// Reads the pipeline file again and puts it in force; gives what has changed when all of it is.
    ///
    /// # Errors
    /// If that cannot be; the settings in force before stay.
    pub(crate) async fn reload(&self) -> Reloaded {
        let (answer, answered) = oneshot::channel();
        let _ = self.wishes.send(Asked { wish: Wish::Reload, answer: Some(answer) });
        answered.await.unwrap_or(Err(ReloadError::Stopping))
    }

    /// How a reload went, for people to see.
    pub(crate) fn reloaded(&self, outcome: &Reloaded) {
        let (changes, error) = match outcome {
            Ok(changes) => (changes.clone(), None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        let last = LastReload { at: SystemTime::now().into(), changes, error };
        *self.last_reload.lock().unwrap_or_else(PoisonError::into_inner) = Some(last);
    }
}
