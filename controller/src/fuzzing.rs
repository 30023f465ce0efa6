//! A run that does not exist, for the targets in `fuzz/`. It is there under `cfg(fuzzing)` only.

use std::sync::Arc;

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

use crate::handle::{Desk, Handle, Parts};
use crate::sequence::{Answer, Event};
use crate::status::Status;

/// What is asked of a run that does not exist.
pub struct Fake {
    events: UnboundedReceiver<Event>,
    desk: Arc<Desk>,
    /// Published for as long as this lives.
    _status: watch::Sender<Status>,
}

impl Fake {
    /// A handle, and where everything goes that is asked by it.
    pub fn new(status: Status) -> (Handle, Self) {
        let (events, asked) = unbounded_channel();
        let (published, status) = watch::channel(status);
        let desk = Arc::<Desk>::default();
        let parts = Parts {
            events,
            desk: desk.clone(),
            status,
            watches: Arc::new([None, None]),
            taps: Arc::default(),
            has_state: true,
        };
        (Handle::new(parts), Self { events: asked, desk, _status: published })
    }

    /// Waits for the next thing that is asked, and answers it. `None` when nobody can ask any more.
    pub async fn asked(&mut self) -> Option<Event> {
        let event = self.events.recv().await?;
        match &event {
            Event::PausesAwaited { ticket } => self.desk.answer(*ticket, Answer::PausesKept),
            Event::CheckpointAwaited { ticket } => {
                self.desk.answer(*ticket, Answer::Checkpointed { step: 7 });
            }
            Event::SuspendRequested { ticket } => {
                self.desk.answer(*ticket, Answer::AtBarrier { input: 0 });
            }
            _ => {}
        }
        Some(event)
    }
}
