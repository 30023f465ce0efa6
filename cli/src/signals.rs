//! What SIGTERM, SIGINT and SIGHUP wish for.

use std::time::{Duration, Instant};

use tokio::signal::unix::{self, SignalKind, signal};

use crate::exit::Failed;

/// Signals within this time are one.
const TOGETHER: Duration = Duration::from_millis(300);

/// What a signal wishes for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// An end in order.
    Stop,
    /// An end at once, whatever hangs.
    EndAtOnce,
    /// The settings read again.
    Reload,
}

/// The signals that the process gets from now on.
pub(crate) struct Signals {
    terminate: unix::Signal,
    interrupt: unix::Signal,
    hang_up: Option<unix::Signal>,
    stopping: Option<Instant>,
}

impl Signals {
    /// SIGHUP is left to do what it does, ending the process, unless it `reloads`.
    pub(crate) fn listen(reloads: bool) -> Result<Self, Failed> {
        let listen =
            |kind| signal(kind).map_err(|error| Failed::storage("listening for signals", &error));
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hang_up: reloads.then(|| listen(SignalKind::hangup())).transpose()?,
            stopping: None,
        })
    }

    /// The next wish. Nothing is lost when this is dropped before there is one.
    pub(crate) async fn next(&mut self) -> Signal {
        loop {
            let hang_up = async {
                match &mut self.hang_up {
                    Some(hang_up) => hang_up.recv().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = self.terminate.recv() => {}
                _ = self.interrupt.recv() => {}
                _ = hang_up => return Signal::Reload,
            }
            match self.stopping {
                None => {
                    self.stopping = Some(Instant::now());
                    return Signal::Stop;
                }
                // What comes together (to a process and to its group) is one wish.
                Some(since) if since.elapsed() < TOGETHER => {}
                Some(_) => return Signal::EndAtOnce,
            }
        }
    }
}
