//! Trying again while a disk is full.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc::{Receiver, UnboundedSender};

use crate::host::Host;
use crate::sequence::Event;

/// How long to wait for space before trying again.
const PATIENCE: Duration = Duration::from_millis(500);

/// Lets one task wait for space on a disk and be called off while it waits.
pub(crate) struct SpaceWait {
    pub(crate) events: UnboundedSender<Event>,
    /// Disconnected when the run is over.
    pub(crate) called_off: Receiver<()>,
    pub(crate) host: Arc<dyn Host>,
}

impl SpaceWait {
    /// Calls `attempt` until it gives something else than a full disk, or the run is called off. Says
    /// when it starts and stops waiting.
    pub(crate) async fn until_space<T, E: ToString>(
        &mut self,
        is_full: impl Fn(&E) -> bool,
        mut attempt: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut waited = false;
        loop {
            match attempt() {
                Err(error) if is_full(&error) => {
                    if !waited {
                        waited = true;
                        let _ = self.events.send(Event::Blocked { reason: error.to_string() });
                    }
                    tokio::select! {
                        biased;
                        // Nothing comes; only the end of the run is told.
                        _ = self.called_off.recv() => return Err(error),
                        () = self.host.sleep(PATIENCE) => {}
                    }
                }
                settled => {
                    if waited {
                        let _ = self.events.send(Event::Unblocked);
                    }
                    return settled;
                }
            }
        }
    }
}
