//! `lockgate run`.
//!
//! A pipeline is opened and run, and if somebody else took over part of its work, opened again. Signals count
//! all the time: while it is opened, while it runs, and in between.

mod reopening;

use std::convert::Infallible;
use std::time::{Duration, Instant};

use lockgate_controller::{Controller, Error, Handle, Status};
use lockgate_core::EndpointError;
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use crate::args::Run;
use crate::compose::compose;
use crate::exit::{Code, Failed};
use crate::pipeline;
use crate::progress;
use crate::recorder::DirectoryRecorder;
use crate::signals::{Signals, Wish};
use crate::terminal::Terminal;
use reopening::Reopening;

/// How often a person sees the line change.
const GLANCE: Duration = Duration::from_millis(200);
/// How often a log line says how far the run is.
const REPORT: Duration = Duration::from_secs(10);
/// How long a stop waits for a pipeline that is being opened. Nothing of it is under way yet.
const LETTING_GO: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Run) -> Result<(), Failed> {
    let mut pipeline = pipeline::load(&args.pipeline)?;
    if let Some(state_dir) = &args.state_dir {
        pipeline.state_dir.clone_from(state_dir);
    }
    let open = || {
        let mut composed = compose(&pipeline, args.accept)?;
        if let Some(directory) = &args.record {
            composed.recorder = Some(Box::new(DirectoryRecorder::new(directory, &pipeline)?));
        }
        for brokers in pipeline.brokers() {
            tracing::info!("connecting to Kafka at {brokers}");
        }
        Ok(Box::new(move || Controller::open(composed)) as Open)
    };
    operate(&pipeline.name, &open)
}

/// Opens what is run. May take a while, and is done on a thread of its own.
pub(super) type Open = Box<dyn FnOnce() -> Result<Controller, Error> + Send>;

/// Runs what `compose` gives to its end, and again where somebody else took over part of the work.
pub(super) fn operate(
    pipeline: &str,
    compose: &dyn Fn() -> Result<Open, Failed>,
) -> Result<(), Failed> {
    let terminal = Terminal::start()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::storage("starting the runtime", &error))?;
    runtime.block_on(async {
        // Before anything is opened, so that a signal during a long recovery is not lost.
        let signals = Signals::listen()?;
        let mut operation = Operation { pipeline, compose, terminal: &terminal, signals };
        let mut reopening = Reopening::default();
        loop {
            let begun = Instant::now();
            let reason = match operation.run_once().await? {
                Ended::Done => return Ok(()),
                Ended::Superseded(reason) => reason,
            };
            let delay = reopening.delay(begun.elapsed());
            tracing::warn!("{reason}; opening the pipeline again in {delay:?}");
            if !operation.wait(delay).await {
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
struct Operation<'a> {
    /// Its name.
    pipeline: &'a str,
    compose: &'a dyn Fn() -> Result<Open, Failed>,
    terminal: &'a Terminal,
    signals: Signals,
}

impl Operation<'_> {
    /// Opens the pipeline and runs it.
    async fn run_once(&mut self) -> Result<Ended, Failed> {
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
        let ended = tokio::select! {
            ended = controller.run() => ended,
            never = watch(&handle, self.terminal, &mut self.signals) => match never {},
        };
        let stopping = self.signals.are_stopping();
        match ended {
            Err(error) if is_superseded(&error) && !stopping => Ok(Ended::Superseded(error)),
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
        tokio::select! {
            opened = &mut opened => match opened {
                Ok(opened) => return Ok(Some(opened)),
                Err(_) => return Err(panicked()),
            },
            wish = self.signals.wish() => obey(wish, self.terminal),
        }
        tokio::select! {
            opened = timeout(LETTING_GO, opened) => match opened {
                Ok(Ok(Err(error))) if !is_superseded(&error) => Ok(Some(Err(error))),
                Ok(Err(_)) => Err(panicked()),
                Ok(Ok(_)) | Err(_) => Ok(None),
            },
            never = end_at_once(self.terminal, &mut self.signals) => match never {},
        }
    }

    /// Waits; false if a stop is wished for meanwhile.
    async fn wait(&mut self, delay: Duration) -> bool {
        tokio::select! {
            () = sleep(delay) => true,
            wish = self.signals.wish() => {
                obey(wish, self.terminal);
                false
            }
        }
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

/// Says that a stop is under way, or ends the process.
fn obey(wish: Wish, terminal: &Terminal) {
    match wish {
        Wish::Stop => tracing::info!("stopping in order; a second signal ends at once"),
        Wish::EndAtOnce => {
            terminal
                .finish("lockgate: ended at once by a second signal; the next start recovers\n");
            Code::Temporary.exit();
        }
    }
}

/// Waits for a second signal, when there is nothing more to ask for.
async fn end_at_once(terminal: &Terminal, signals: &mut Signals) -> Infallible {
    loop {
        obey(signals.wish().await, terminal);
    }
}

/// Shows progress and hands signals on. A second signal ends the process at once, whatever hangs.
async fn watch(handle: &Handle, terminal: &Terminal, signals: &mut Signals) -> Infallible {
    let mut glance = interval(GLANCE);
    glance.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut shown, mut reported) = (Recent::default(), Recent::default());
    loop {
        tokio::select! {
            _ = glance.tick() => {
                let status = handle.status().borrow().clone();
                if terminal.is_shown() {
                    terminal.show(progress::line(&status, shown.since(GLANCE * 5, &status)));
                } else if reported.begun.elapsed() >= REPORT {
                    let line = progress::line(&status, reported.since(REPORT, &status));
                    tracing::info!("{line}");
                }
            }
            wish = signals.wish() => {
                obey(wish, terminal);
                handle.stop();
            }
        }
    }
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
