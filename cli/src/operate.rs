//! Runs a pipeline to its end.
//!
//! A pipeline is opened and run, and if somebody else took over part of its work, opened again. Signals and wishes
//! count all the time: while it is opened, while it runs, and in between.

mod reload;
mod reopening;
mod wishes;

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockgate_controller::{Controller, Error, Handle, Phase, Status};
use lockgate_core::EndpointError;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;
use tokio::time::{Interval, MissedTickBehavior, interval, sleep, timeout};

use crate::control::{Advertised, Advertisement, Asked, Board, Wish as BoardWish};
use crate::exit::{Code, Failed};
use crate::progress;
use crate::supervisor::Supervisor;
use crate::terminal::Terminal;
pub(crate) use reload::Reloader;
use reopening::Reopening;
use wishes::{Wished, Wishes};

/// How often a person sees the line change.
const GLANCE: Duration = Duration::from_millis(200);
/// How often a log line says how far the run is.
const REPORT: Duration = Duration::from_secs(10);
/// How long a stop waits for a pipeline that is being opened. Nothing of it is under way yet.
const LETTING_GO: Duration = Duration::from_secs(1);

/// Opens what is run. May take a while, and is done on a thread of its own.
pub(crate) type Open = Box<dyn FnOnce() -> Result<Controller, Error> + Send>;

/// What is run, and what people can do about it.
pub(crate) struct Operation<'a> {
    /// The pipeline's name.
    pub(crate) pipeline: &'a str,
    pub(crate) terminal: &'a Terminal,
    /// Gives what is run; asked again when somebody else took over part of the work.
    pub(crate) compose: &'a dyn Fn() -> Result<Open, Failed>,
    /// `None` where a run can only be stopped.
    pub(crate) control: Option<Control>,
}

/// How a run is looked at, steered and changed.
pub(crate) struct Control {
    pub(crate) board: Arc<Board>,
    /// What comes by the board.
    pub(crate) asked: UnboundedReceiver<Asked>,
    pub(crate) reloader: Arc<Reloader>,
    /// Where it can be asked, for commands in the same folder to find.
    pub(crate) advertised: Option<(PathBuf, Advertised)>,
}

/// Runs a pipeline to its end, and again where somebody else took over part of the work.
pub(crate) fn operate(operation: Operation<'_>) -> Result<(), Failed> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::storage("starting the runtime", &error))?;
    runtime.block_on(async {
        let Operation { pipeline, terminal, compose, control } = operation;
        let (asked, steering) = match control {
            Some(Control { board, asked, reloader, advertised }) => {
                let supervisor = Arc::new(Supervisor::from_env());
                let (advertisement, is_ready) = (None, false);
                let steering =
                    Steering { board, reloader, advertised, advertisement, supervisor, is_ready };
                (Some(asked), Some(steering))
            }
            None => (None, None),
        };
        // Before anything is opened, so that a signal during a long recovery is not lost.
        let file = steering.as_ref().map(|steering| steering.reloader.file().to_owned());
        let wishes = Wishes::listen(asked, file)?;
        let mut running = Running { pipeline, compose, terminal, wishes, steering };
        let mut reopening = Reopening::default();
        loop {
            let begun = Instant::now();
            let reason = match running.once().await? {
                Ended::Done => return Ok(()),
                Ended::Superseded(reason) => reason,
            };
            running.show(None)?;
            let delay = reopening.delay(begun.elapsed());
            tracing::warn!("{reason}; opening the pipeline again in {delay:?}");
            if !running.wait(delay).await {
                return Ok(());
            }
        }
    })
}

/// How one run of the pipeline ended, if not with a failure.
enum Ended {
    /// For good: its inputs have ended, or a stop was wished for.
    Done,
    /// Somebody else took over part of the work; why.
    Superseded(Error),
}

/// Everything that a run needs.
struct Running<'a> {
    pipeline: &'a str,
    compose: &'a dyn Fn() -> Result<Open, Failed>,
    terminal: &'a Terminal,
    wishes: Wishes,
    steering: Option<Steering>,
}

struct Steering {
    board: Arc<Board>,
    reloader: Arc<Reloader>,
    /// Said when the state directory is ours.
    advertised: Option<(PathBuf, Advertised)>,
    advertisement: Option<Advertisement>,
    supervisor: Arc<Supervisor>,
    /// Whether the supervisor knows that the start is over.
    is_ready: bool,
}

impl Running<'_> {
    /// Opens the pipeline and runs it.
    async fn once(&mut self) -> Result<Ended, Failed> {
        let controller = match self.open().await? {
            None => {
                tracing::info!("stopped before anything was read");
                return Ok(Ended::Done);
            }
            Some(Err(error)) if is_superseded(&error) => return Ok(Ended::Superseded(error)),
            Some(opened) => opened?,
        };
        let handle = controller.handle();
        tracing::info!(pipeline = self.pipeline, "started");
        self.show(Some(handle.clone()))?;
        let ended = tokio::select! {
            ended = controller.run() => ended,
            never = self.watch(&handle) => match never {},
        };
        match ended {
            Err(error) if is_superseded(&error) && !self.wishes.are_stopping() => {
                Ok(Ended::Superseded(error))
            }
            ended => {
                let status = handle.status().borrow().clone();
                self.terminal.finish(&progress::summary(self.pipeline, &status));
                match ended {
                    // Others go on with what this process has given up.
                    Err(error) if is_superseded(&error) => tracing::warn!("{error}"),
                    ended => drop(ended?),
                }
                Ok(Ended::Done)
            }
        }
    }

    /// Opens the pipeline on a thread of its own, since that may take a while; `None` if a stop is wished for
    /// meanwhile.
    async fn open(&mut self) -> Result<Option<Result<Controller, Error>>, Failed> {
        let composed = (self.compose)()?;
        let (tell, mut opened) = oneshot::channel();
        let open = move || {
            // Nobody listens any more after a stop.
            let _ = tell.send(composed());
        };
        let thread = std::thread::Builder::new().name("open".into()).spawn(open);
        thread.map_err(|error| Failed::storage("starting a thread", &error))?;
        let mut pulse = self.pulse();
        loop {
            tokio::select! {
                _ = beat(&mut pulse) => self.is_alive(),
                opened = &mut opened => match opened {
                    Ok(opened) => return Ok(Some(opened)),
                    Err(_) => return Err(panicked()),
                },
                wished = self.wishes.next() => if self.obey(wished) {
                    break;
                },
            }
        }
        tokio::select! {
            opened = timeout(LETTING_GO, opened) => match opened {
                Ok(Ok(Err(error))) if !is_superseded(&error) => Ok(Some(Err(error))),
                Ok(Err(_)) => Err(panicked()),
                Ok(Ok(_)) | Err(_) => Ok(None),
            },
            never = self.end_at_once() => match never {},
        }
    }

    /// Waits; false if a stop is wished for meanwhile.
    async fn wait(&mut self, delay: Duration) -> bool {
        let mut waited = std::pin::pin!(sleep(delay));
        loop {
            tokio::select! {
                () = &mut waited => return true,
                wished = self.wishes.next() => if self.obey(wished) {
                    return false;
                },
            }
        }
    }

    /// Lets people look at the run, or see that there is none at the moment.
    fn show(&mut self, run: Option<Handle>) -> Result<(), Failed> {
        let Some(steering) = &mut self.steering else { return Ok(()) };
        if run.is_some()
            && let Some((state_dir, advertised)) = steering.advertised.take()
        {
            steering.advertisement = Some(Advertisement::write(&state_dir, advertised)?);
        }
        steering.board.show(run);
        Ok(())
    }

    /// How often the supervisor wants to hear that the process works.
    fn pulse(&self) -> Option<Interval> {
        let every = self.steering.as_ref()?.supervisor.watchdog_interval()?;
        let mut pulse = interval(every);
        pulse.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Some(pulse)
    }

    /// A start is over when what a crash left has been replayed.
    fn is_through_with(&mut self, phase: Phase) {
        if let Some(steering) = &mut self.steering
            && !steering.is_ready
            && phase != Phase::Replaying
        {
            steering.is_ready = true;
            steering.supervisor.ready();
        }
    }

    fn is_alive(&self) {
        if let Some(steering) = &self.steering {
            steering.supervisor.alive();
        }
    }

    /// Does what is wished for, or ends the process. Whether that is an end in order.
    fn obey(&self, wished: Wished) -> bool {
        match wished {
            Wished::Asked(Asked { wish: BoardWish::Stop, .. }) => {
                tracing::info!("stopping in order; a second signal ends at once");
                if let Some(steering) = &self.steering {
                    steering.supervisor.stopping();
                }
                true
            }
            Wished::Asked(Asked { wish: BoardWish::Reload, answer }) => {
                if let Some(Steering { board, reloader, supervisor, is_ready, .. }) = &self.steering
                {
                    // Before the start is over the supervisor waits for something else.
                    let supervisor = is_ready.then(|| supervisor.clone());
                    supervisor.iter().for_each(|supervisor| supervisor.reloading());
                    let reload = reloader.clone().reload(board.clone());
                    tokio::spawn(async move {
                        let outcome = reload.await;
                        supervisor.iter().for_each(|supervisor| supervisor.ready());
                        // Whoever asked may have gone.
                        let _ = answer.map(|answer| answer.send(outcome));
                    });
                }
                false
            }
            Wished::EndAtOnce => {
                self.terminal.finish(
                    "lockgate: ended at once by a second signal; the next start recovers\n",
                );
                Code::Temporary.exit();
            }
        }
    }

    /// Waits for a second signal, when there is nothing more to ask for.
    async fn end_at_once(&mut self) -> Infallible {
        loop {
            let wished = self.wishes.next().await;
            self.obey(wished);
        }
    }

    /// Shows progress and hands wishes on. A second signal ends the process at once, whatever hangs.
    async fn watch(&mut self, handle: &Handle) -> Infallible {
        let mut glance = interval(GLANCE);
        glance.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let (mut shown, mut reported) = (Recent::default(), Recent::default());
        let mut pulse = self.pulse();
        loop {
            tokio::select! {
                _ = beat(&mut pulse) => self.is_alive(),
                _ = glance.tick() => {
                    let status = handle.status().borrow().clone();
                    self.is_through_with(status.phase);
                    if self.terminal.is_shown() {
                        let line = progress::line(&status, shown.since(GLANCE * 5, &status));
                        self.terminal.show(line);
                    } else if reported.begun.elapsed() >= REPORT {
                        let line = progress::line(&status, reported.since(REPORT, &status));
                        tracing::info!("{line}");
                        if let Some(steering) = &self.steering {
                            steering.supervisor.status(&line);
                        }
                    }
                }
                wished = self.wishes.next() => if self.obey(wished) {
                    handle.stop();
                },
            }
        }
    }
}

async fn beat(pulse: &mut Option<Interval>) {
    match pulse {
        Some(pulse) => drop(pulse.tick().await),
        None => std::future::pending().await,
    }
}

/// The panic has been printed.
fn panicked() -> Failed {
    Failed::new(Code::Bug, "opening the pipeline panicked")
}

/// Whether the pipeline can be opened again to go on with the rest.
fn is_superseded(error: &Error) -> bool {
    matches!(
        error,
        Error::Input { error: EndpointError::Superseded { .. }, .. }
            | Error::Output { error: EndpointError::Superseded { .. }, .. }
    )
}

/// A status of a while ago, to tell rates from.
struct Recent {
    begun: Instant,
    before: Option<Status>,
    latest: Option<Status>,
}

impl Default for Recent {
    fn default() -> Self {
        Self { begun: Instant::now(), before: None, latest: None }
    }
}

impl Recent {
    /// The status of about `age` ago; the first one is that of the start.
    fn since(&mut self, age: Duration, now: &Status) -> &Status {
        if self.latest.is_none() || self.begun.elapsed() >= age {
            self.begun = Instant::now();
            self.before = self.latest.replace(now.clone());
        }
        self.before.get_or_insert_with(|| Status {
            inputs: now.inputs.iter().map(|_| Default::default()).collect(),
            ..Status::default()
        })
    }
}
