//! Looks for partitions that are added and topics that are made anew while a reader runs, on a thread of its own:
//! asking may take long.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use lockgate_core::EndpointError;

use super::ask::{Place, Questions};
use super::gauges::Gauges;
use super::topics::Topics;
use crate::client::Client;
use crate::client::Name;
use crate::waker::Waker;

/// One look may take so long; the next one comes anyway.
const PATIENCE: Duration = Duration::from_secs(2);

/// A topic is gone when it was not there so often in a row.
const MISSES: u32 = 3;

/// What a watch needs.
pub(super) struct Looks {
    pub(super) client: Client,
    pub(super) brokers: String,
    pub(super) topics: Topics,
    /// The ids of those that have one.
    pub(super) ids: BTreeMap<String, String>,
    /// Whether partitions that are added are read.
    pub(super) grows: bool,
    /// The partitions that are known.
    pub(super) known: BTreeSet<Name>,
    pub(super) every: Duration,
    pub(super) waker: Waker,
    pub(super) gauges: Arc<Gauges>,
}

/// What has changed.
#[derive(Debug)]
pub(super) enum Found {
    /// A partition was added, which begins at `first`; `id` is its topic's.
    Partition { topic: String, id: Option<String>, number: u32, first: u64 },
    /// A topic was deleted and made anew.
    Recreated { topic: String, before: String, now: String },
    /// A topic is not there any more.
    Vanished { topic: String },
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
        let mut misses = BTreeMap::new();
        self.look_at_ends();
        while stopped.recv_timeout(self.every) == Err(RecvTimeoutError::Timeout) {
            match self.look(&mut misses) {
                Ok(found) => found.into_iter().for_each(|found| {
                    tracing::info!(?found, "a topic has changed");
                    if let Found::Partition { topic, id, number, .. } = &found {
                        self.known.insert((topic.clone(), *number));
                        self.ids.extend(id.clone().map(|id| (topic.clone(), id)));
                    }
                    let _ = report.send(found);
                    self.waker.wake();
                }),
                Err(error) => tracing::debug!("looking for new partitions: {error}"),
            }
            self.look_at_ends();
        }
    }

    /// Where the logs end, also of what is not fetched at the moment.
    fn look_at_ends(&self) {
        let Self { client, brokers, .. } = self;
        let questions = Questions { client, brokers, patience: PATIENCE };
        let known: Vec<Name> = self.known.iter().cloned().collect();
        match questions.offsets(&known, Place::End) {
            Ok(ends) => self.gauges.ends(&ends),
            Err(error) => tracing::debug!("looking where the logs end: {error}"),
        }
    }

    /// `misses` says how often in a row a topic was not there.
    fn look(&self, misses: &mut BTreeMap<String, u32>) -> Result<Vec<Found>, EndpointError> {
        let Self { client, brokers, .. } = self;
        let questions = Questions { client, brokers, patience: PATIENCE };
        let (mut found, mut new) = (Vec::new(), Vec::new());
        let known = self.known.iter().map(|(topic, _)| topic.clone());
        let topics: BTreeSet<String> = known.chain(self.topics.find(&questions)?).collect();
        let mut ids = BTreeMap::new();
        for topic in &topics {
            let numbers = match questions.partitions(topic) {
                Ok(numbers) => numbers,
                Err(EndpointError::Configuration(_)) => {
                    // A broker that has just started may not know yet what there is.
                    let misses = misses.entry(topic.clone()).or_default();
                    *misses += 1;
                    if *misses == MISSES {
                        found.push(Found::Vanished { topic: topic.clone() });
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            misses.remove(topic);
            let (before, now) = (self.ids.get(topic), questions.id(topic)?);
            if let (Some(before), Some(now)) = (before, &now)
                && before != now
            {
                let (before, now) = (before.clone(), now.clone());
                found.push(Found::Recreated { topic: topic.clone(), before, now });
                continue;
            }
            ids.insert(topic.clone(), now);
            if self.grows {
                let names = numbers.into_iter().map(|number| (topic.clone(), number));
                new.extend(names.filter(|name| !self.known.contains(name)));
            }
        }
        let firsts = questions.offsets(&new, Place::Beginning)?;
        found.extend(firsts.into_iter().filter_map(|((topic, number), first)| {
            let id = ids.get(&topic).cloned().flatten();
            Some(Found::Partition { topic, id, number, first: first? })
        }));
        Ok(found)
    }
}
