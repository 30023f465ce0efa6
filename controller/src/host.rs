//! Where the work is done that must not hold up the driver, and what time it is there: threads of their own and the
//! system's clock, or, for a simulation, whatever its caller wants.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Builder, JoinHandle, Thread};
use std::time::{Duration, Instant, SystemTime};

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

    /// Is done when this time has passed.
    fn sleep(&self, time: Duration) -> Task;

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

/// Each task on a thread of its own, where it may block: what it calls is in no runtime.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads;

impl Host for Threads {
    fn spawn(&self, name: &'static str, task: Task) -> io::Result<Option<JoinHandle<()>>> {
        Builder::new().name(name.into()).spawn(move || finish(task)).map(Some)
    }

    fn sleep(&self, time: Duration) -> Task {
        Box::pin(Nap { until: Instant::now() + time, is_timed: false })
    }

    fn wall_clock(&self) -> SystemTime {
        SystemTime::now()
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn finish(mut task: Task) {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    while task.as_mut().poll(&mut context).is_pending() {
        thread::park();
    }
}

/// Waits with a thread that wakes it: nobody naps but for a disk that is full.
struct Nap {
    until: Instant,
    is_timed: bool,
}

impl Future for Nap {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Poll::Ready(());
        }
        if !std::mem::replace(&mut self.is_timed, true) {
            let waker = context.waker().clone();
            thread::spawn(move || {
                thread::sleep(left);
                waker.wake();
            });
        }
        Poll::Pending
    }
}
