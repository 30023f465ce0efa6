//! `lockgate run`.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use lockgate_controller::{Controller, Handle, Status};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval};

use crate::args::Run;
use crate::compose::compose;
use crate::exit::{Code, Failed};
use crate::pipeline;
use crate::progress;
use crate::terminal::Terminal;

/// How often a person sees the line change.
const GLANCE: Duration = Duration::from_millis(200);
/// Signals within this time are one.
const TOGETHER: Duration = Duration::from_millis(300);
/// How often a log line says how far the run is.
const REPORT: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &Run) -> Result<(), Failed> {
    let mut pipeline = pipeline::load(&args.pipeline)?;
    if let Some(state_dir) = &args.state_dir {
        pipeline.state_dir.clone_from(state_dir);
    }
    let terminal = Terminal::start()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::storage("starting the runtime", &error))?;
    runtime.block_on(async {
        // Before anything is opened, so that a signal during a long recovery is not lost.
        let signals = Signals::listen()?;
        let controller = Controller::open(compose(&pipeline, args.accept_changes)?)?;
        let handle = controller.handle();
        tracing::info!(pipeline = pipeline.name, "started");
        let ended = tokio::select! {
            ended = controller.run() => ended,
            never = watch(&handle, &terminal, signals) => match never {},
        };
        let status = handle.status().borrow().clone();
        terminal.finish(&progress::summary(&pipeline.name, &status));
        ended.map(|_| ()).map_err(Failed::from)
    })
}

struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn listen() -> Result<Self, Failed> {
        let listen =
            |kind| signal(kind).map_err(|error| Failed::storage("listening for signals", &error));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Shows progress and hands signals on. A second signal ends the process at once, whatever hangs.
async fn watch(handle: &Handle, terminal: &Terminal, mut signals: Signals) -> Infallible {
    let mut glance = interval(GLANCE);
    glance.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut shown, mut reported) = (Recent::default(), Recent::default());
    let mut stopping = None;
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
            () = signals.next() => {
                // What comes together (to a process and to its group) is one wish.
                if stopping.is_some_and(|since: Instant| since.elapsed() < TOGETHER) {
                    continue;
                }
                if stopping.is_some() {
                    terminal.finish("lockgate: ended at once by a second signal; the next start recovers\n");
                    Code::Temporary.exit();
                }
                stopping = Some(Instant::now());
                tracing::info!("stopping in order; a second signal ends at once");
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
