//! Looks at records that pass by.
//!
//! The worker gives away shared batches, which costs it a counter each, and only while somebody looks. Whoever is not
//! quick enough misses some: nothing waits for a looker.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lockgate_core::{Batch, Part};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// So many may look at the same time.
const MAX_LOOKERS: usize = 16;
/// So many batches wait for a looker at most; each keeps its arena in memory.
const WAITING: usize = 2;

/// Where to look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tap {
    /// At what the input with this place in the pipeline gives, as it goes into the circuit.
    Input(usize),
    /// At what the output with this place in the pipeline has taken.
    Output(usize),
}

/// Batches as they passed by, each with the number of its step. Ends with the run.
pub type Tapped = Receiver<(u64, Batch)>;

/// Too many are looking.
#[derive(Debug, thiserror::Error)]
#[error("{MAX_LOOKERS} are looking at records already; wait for one of them to end")]
pub struct TapError;

/// Where somebody looks, and where that goes.
type Looker = (Tap, Sender<(u64, Batch)>);

/// Those who look.
#[derive(Debug, Default)]
pub(crate) struct Taps {
    /// How many there are, to be asked without a lock.
    count: AtomicUsize,
    lookers: Mutex<Vec<Looker>>,
}

impl Taps {
    pub(crate) fn open(&self, tap: Tap) -> Result<Tapped, TapError> {
        let mut lookers = self.lookers();
        lookers.retain(|(_, looker)| !looker.is_closed());
        if lookers.len() >= MAX_LOOKERS {
            return Err(TapError);
        }
        let (looker, tapped) = channel(WAITING);
        lookers.push((tap, looker));
        self.count.store(lookers.len(), Ordering::Relaxed);
        Ok(tapped)
    }

    /// What the inputs gave to a step.
    pub(crate) fn parts(&self, step: u64, parts: &[Part]) {
        if self.count.load(Ordering::Relaxed) > 0 {
            for part in parts {
                self.show(Tap::Input(part.input), step, &part.batches);
            }
        }
    }

    /// What an output has taken of a step.
    pub(crate) fn output(&self, output: usize, step: u64, batches: &[Batch]) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.show(Tap::Output(output), step, batches);
        }
    }

    /// Nothing more comes.
    pub(crate) fn close(&self) {
        self.lookers().clear();
        self.count.store(0, Ordering::Relaxed);
    }

    fn show(&self, at: Tap, step: u64, batches: &[Batch]) {
        let mut lookers = self.lookers();
        let send = |looker: &Sender<(u64, Batch)>| {
            for batch in batches {
                match looker.try_send((step, batch.clone())) {
                    Ok(()) => {}
                    Err(TrySendError::Full(_)) => break,
                    Err(TrySendError::Closed(_)) => return false,
                }
            }
            true
        };
        lookers.retain(|(tap, looker)| *tap != at || send(looker));
        self.count.store(lookers.len(), Ordering::Relaxed);
    }

    fn lookers(&self) -> MutexGuard<'_, Vec<Looker>> {
        self.lookers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Taps {
    fn drop(&mut self) {
        self.close();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockgate_core::{BatchBuilder, Partition};

    use super::*;

    fn batch() -> Batch {
        BatchBuilder::new(Arc::new(Partition { source: "a".into(), number: None })).build()
    }

    #[test]
    fn whoever_is_slow_misses_some_and_nobody_waits() {
        let taps = Taps::default();
        let mut tapped = taps.open(Tap::Output(1)).unwrap();
        for step in 1..=9 {
            taps.output(0, step, &[batch()]);
            taps.output(1, step, &[batch()]);
        }
        let mut steps = Vec::new();
        while let Ok((step, _)) = tapped.try_recv() {
            steps.push(step);
        }
        assert_eq!(steps, [1, 2]);
        taps.output(1, 10, &[batch()]);
        assert_eq!(tapped.try_recv().map(|(step, _)| step), Ok(10));
        drop(tapped);
        taps.output(1, 11, &[batch()]);
        assert_eq!(taps.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn only_so_many_look() {
        let taps = Taps::default();
        let open: Vec<_> = (0..MAX_LOOKERS).map(|_| taps.open(Tap::Input(0)).unwrap()).collect();
        assert!(taps.open(Tap::Input(0)).is_err());
        drop(open);
        assert!(taps.open(Tap::Input(0)).is_ok());
    }
}
