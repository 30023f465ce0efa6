//! Looks for partitions that are added and topics that are made anew while a reader runs, on a thread of its own:
//! asking may take long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use lockgate_core::EndpointError;

use super::ask::{Name, Place, Questions};
use super::client::{Client, Waker};

/// One look may take so long; the next one comes anyway.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a watch needs.
pub(super) struct Looks {
    pub(super) client: Client,
    pub(super) brokers: String,
    pub(super) topics: Vec<String>,
    /// The ids of those that have one.
    pub(super) ids: BTreeMap<String, String>,
    /// Whether partitions that are added are read.
    pub(super) grows: bool,
    /// The partitions that are known.
    pub(super) known: BTreeSet<Name>,
    pub(super) every: Duration,
    pub(super) waker: Waker,
}

/// What has changed.
#[derive(Debug)]
pub(super) enum Found {
    /// A partition was added, which begins at `first`.
    Partition { topic: String, number: u32, first: u64 },
    /// A topic was deleted and made anew.
    Recreated { topic: String, before: String, now: String },
}

/// A watch that goes on until it is dropped.
pub(super) struct Watch {
    found: Receiver<Found>,
    /// Dropped to end the thread.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    pub(super) fn start(looks: Looks) -> Result<Self, EndpointError> {
        let (report, found) = channel();
        let (stop, stopped) = channel();
        let run = move || looks.run(&report, &stopped);
        let thread = std::thread::Builder::new().name("kafka-watch".into()).spawn(run);
        let thread = thread.map_err(|error| EndpointError::Unavailable {
            what: "starting a thread for a Kafka input".into(),
            source: error.into(),
        })?;
        Ok(Self { found, stop: Some(stop), thread: Some(thread) })
    }

    /// The next change.
    pub(super) fn found(&self) -> Option<Found> {
        self.found.try_recv().ok()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been printed; without the watch nothing was lost.
            let _ = thread.join();
        }
    }
}

impl Looks {
    fn run(mut self, report: &Sender<Found>, stopped: &Receiver<()>) {
        while stopped.recv_timeout(self.every) == Err(RecvTimeoutError::Timeout) {
            match self.look() {
                Ok(found) => found.into_iter().for_each(|found| {
                    tracing::info!(?found, "a topic has changed");
                    if let Found::Partition { topic, number, .. } = &found {
                        self.known.insert((topic.clone(), *number));
                    }
                    let _ = report.send(found);
                    self.waker.wake();
                }),
                Err(error) => tracing::debug!("looking for new partitions: {error}"),
            }
        }
    }

    fn look(&self) -> Result<Vec<Found>, EndpointError> {
        let Self { client, brokers, .. } = self;
        let questions = Questions { client, brokers, patience: PATIENCE };
        let (mut found, mut new) = (Vec::new(), Vec::new());
        for topic in &self.topics {
            let (before, now) = (self.ids.get(topic), questions.id(topic)?);
            if let (Some(before), Some(now)) = (before, now)
                && *before != now
            {
                found.push(Found::Recreated { topic: topic.clone(), before: before.clone(), now });
                continue;
            }
            if self.grows {
                let numbers = questions.partitions(topic)?.into_iter();
                let names = numbers.map(|number| (topic.clone(), number));
                new.extend(names.filter(|name| !self.known.contains(name)));
            }
        }
        let firsts = questions.offsets(&new, Place::Beginning)?;
        found.extend(firsts.into_iter().filter_map(|((topic, number), first)| {
            Some(Found::Partition { topic, number, first: first? })
        }));
        Ok(found)
    }
}
