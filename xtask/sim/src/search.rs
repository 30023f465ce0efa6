//! Many seeds on all cores, and what they came to.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::deliberate::Deliberate;
use crate::fault::Coverage;
use crate::life::simulate;
use crate::plan::Plan;

/// What a search came to.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) seeds: u64,
    pub(crate) took: Duration,
    pub(crate) coverage: Coverage,
    /// The first seed that something went wrong with.
    pub(crate) failed: Option<u64>,
}

/// When a search ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Until {
    Seeds(u64),
    Time(Duration),
}

/// Runs the seeds from `first` on, with a deliberate fault if one is wanted, until something goes wrong or it is
/// enough.
///
/// # Errors
/// If a folder cannot be used.
pub(crate) fn search(
    first: u64,
    until: Until,
    deliberate: Option<Deliberate>,
    folder: &Path,
) -> io::Result<Found> {
    let begun = Instant::now();
    let next = AtomicU64::new(first);
    let ends = AtomicBool::new(false);
    let found = Mutex::new(Found::default());
    let work = |number: usize| -> io::Result<()> {
        let folder = folder.join(number.to_string());
        std::fs::create_dir_all(&folder)?;
        let mut coverage = Coverage::default();
        let mut seeds = 0;
        while !ends.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let is_enough = match until {
                Until::Seeds(seeds) => seed - first >= seeds,
                Until::Time(time) => begun.elapsed() >= time,
            };
            if is_enough {
                break;
            }
            let report = simulate(&Plan::of(seed), deliberate, false, &folder)?;
            coverage.merge(&report.coverage);
            seeds += 1;
            if !report.breaches.is_empty() {
                ends.store(true, Ordering::Relaxed);
                let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                found.failed = Some(found.failed.map_or(seed, |other| other.min(seed)));
            }
        }
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        found.seeds += seeds;
        found.coverage.merge(&coverage);
        Ok(())
    };
    let work = &work;
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..cores).map(|number| scope.spawn(move || work(number))).collect();
        threads.into_iter().try_for_each(|thread| {
            thread.join().unwrap_or_else(|_| Err(io::Error::other("a simulation panicked")))
        })
    })?;
    let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.took = begun.elapsed();
    Ok(found)
}
