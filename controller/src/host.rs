//! Where the work is done that must not hold up the driver, and what time it is there: threads of their own and the
//! system's clock, or, for a simulation, whatever its caller wants.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::thread::{Builder, JoinHandle};
use std::time::SystemTime;

use crate::sequence::SequenceFault;
use crate::state::StateFault;

/// What is to be done until it is done.
pub type Task = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where the driver lets others work.
pub trait Host: Send + Sync {
    /// Begins `task`. Gives the thread to wait for when the run is over, if it is one.
    ///
    /// # Errors
    /// If it cannot be begun.
    fn spawn(&self, name: &'static str, task: Task) -> io::Result<Option<JoinHandle<()>>>;

    /// The time to write beside what is stored. Nothing depends on it.
    fn wall_clock(&self) -> SystemTime;

    /// A deliberate fault to run with.
    #[doc(hidden)]
    fn fault(&self) -> Option<HostFault> {
        None
    }
}

/// A deliberate fault, so that a checker can be shown to find it. It has an effect with debug assertions only.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostFault {
    Sequence(SequenceFault),
    State(StateFault),
}

/// Each task on a thread of its own, where it may block.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads;

impl Host for Threads {
    fn spawn(&self, name: &'static str, task: Task) -> io::Result<Option<JoinHandle<()>>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
        let thread = Builder::new().name(name.into()).spawn(move || runtime.block_on(task))?;
        Ok(Some(thread))
    }

    fn wall_clock(&self) -> SystemTime {
        SystemTime::now()
    }
}
