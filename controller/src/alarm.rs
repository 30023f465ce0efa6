//! Tells the driver when a thread panics, so that nobody waits for it.

use tokio::sync::mpsc::UnboundedSender;

use crate::sequence::{Event, Failure};

/// Goes off when it is dropped before it was switched off.
pub(crate) struct Alarm {
    who: &'static str,
    events: Option<UnboundedSender<Event>>,
}

impl Alarm {
    pub(crate) fn set(who: &'static str, events: UnboundedSender<Event>) -> Self {
        Self { who, events: Some(events) }
    }

    pub(crate) fn off(mut self) {
        self.events = None;
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(events) = &self.events {
            let failure = Failure::Bug(format!("{} panicked", self.who));
            let _ = events.send(Event::Broken { failure });
        }
    }
}
