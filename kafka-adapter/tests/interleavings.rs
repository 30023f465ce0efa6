//! What threads hand over by hand, with the threads in many orders: the shipped files, compiled with the types of
//! `shuttle`, which decides who goes on whenever one of them is used. A thread that nobody wakes any more is found as a
//! deadlock. Not here: reorderings within a processor, which `shuttle` does not know.

#[allow(dead_code, reason = "only some of it is handed over by")]
#[path = "../src/output/desk.rs"]
mod desk;
#[path = "../src/input/signal.rs"]
mod signal;
#[path = "../src/waker.rs"]
mod waker;

/// In place of `src/sync.rs`.
mod sync {
    pub(crate) use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
    pub(crate) use shuttle::thread::{Thread, current};
}

/// In place of `src/output/window.rs`: all that the desk wants to know of a step is its size.
mod window {
    #[derive(Debug)]
    pub(crate) struct Queued {
        pub(crate) step: u64,
        pub(crate) bytes: u64,
    }

    impl Queued {
        pub(crate) fn bytes(&self) -> u64 {
            self.bytes
        }
    }
}

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use lockgate_core::EndpointError;
use shuttle::sync::{Arc, Mutex};
use shuttle::thread::{park, spawn};

use desk::{BUDGET, Desk, Next};
use signal::{Raised, Signal};
use waker::Waker;
use window::Queued;

/// So many orders of each.
const ORDERS: usize = 3000;

/// Half of them with few changes from one thread to another, which is where most faults are.
fn check(scene: fn()) {
    shuttle::check_random(scene, ORDERS / 2);
    shuttle::check_pct(scene, ORDERS / 2, 3);
}

/// A queue as the client library has it: it tells of what comes only if it was empty.
struct Library {
    queue: Mutex<VecDeque<u32>>,
    signal: Signal,
}

impl Library {
    fn enqueue(&self, message: u32) {
        let mut queue = self.queue.lock().expect("nobody panics");
        queue.push_back(message);
        // Under the lock of the queue.
        if queue.len() == 1 {
            self.signal.raise();
        }
    }

    /// As `PartitionQueue::take`.
    fn take(&self, most: usize) -> Vec<u32> {
        self.signal.lower();
        let mut queue = self.queue.lock().expect("nobody panics");
        let most_now = most.min(queue.len());
        let taken: Vec<u32> = queue.drain(..most_now).collect();
        drop(queue);
        if taken.len() == most {
            self.signal.keep_raised();
        }
        taken
    }
}

/// Whoever empties a queue finds everything that comes, and sleeps only when it will be woken.
#[test]
fn what_comes_into_a_queue_is_found() {
    check(|| {
        const MESSAGES: u32 = 4;
        const PLACE: usize = 7;
        let (raised, waker) = (Raised::default(), Waker::default());
        let signal = Signal::new(PLACE, raised.clone(), waker.clone());
        let library = Library { queue: Mutex::default(), signal };
        let library = Arc::new(library);
        let fetch = |from: u32| {
            let library = library.clone();
            spawn(move || (from..MESSAGES).step_by(2).for_each(|n| library.enqueue(n)))
        };
        let fetching = [fetch(0), fetch(1)];
        let reader = spawn({
            let library = library.clone();
            move || {
                waker.wakes_this_thread();
                // As `Reading::read`: only what was raised is looked at.
                let (mut found, mut is_hot) = (Vec::new(), false);
                while found.len() < MESSAGES as usize {
                    is_hot |= raised.take().contains(&PLACE);
                    if !is_hot {
                        park();
                    } else if library.signal.is_raised() {
                        found.extend(library.take(2));
                    } else {
                        is_hot = false;
                    }
                }
                found
            }
        });
        fetching.into_iter().for_each(|thread| thread.join().unwrap());
        let mut found = reader.join().unwrap();
        found.sort_unstable();
        assert_eq!(found, [0, 1, 2, 3]);
    });
}

/// An order that is left before the thread has begun, or while it falls asleep, is found.
#[test]
fn an_order_wakes_the_reader() {
    check(|| {
        let waker = Waker::default();
        let (orders, received) = shuttle::sync::mpsc::channel();
        let reader = spawn({
            let waker = waker.clone();
            move || {
                waker.wakes_this_thread();
                let mut last = 0;
                while last < 2 {
                    match received.try_recv() {
                        Ok(order) => last = order,
                        Err(_) => park(),
                    }
                }
            }
        });
        for order in 1..=2 {
            orders.send(order).unwrap();
            waker.wake();
        }
        reader.join().unwrap();
    });
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

/// The thread of an output: takes steps, and commits what there is when it is asked to.
fn write(desk: &Desk, mut fails_after: usize) -> Vec<u64> {
    let (mut open, mut written) = ((0, 0), Vec::new());
    loop {
        match desk.next(later()) {
            Next::Take(_) if fails_after == 0 => {
                desk.fail(EndpointError::Data("poison".into()));
                break;
            }
            Next::Take(step) => {
                fails_after -= 1;
                open = (open.0 + 1, open.1 + step.bytes);
                written.push(step.step);
            }
            Next::Flush => {
                desk.finish(open.0, open.1);
                open = (0, 0);
            }
            Next::Due => {}
            Next::Stop => break,
        }
    }
    desk.end();
    written
}

fn step(step: u64) -> Queued {
    // Two of them are too many.
    Queued { step, bytes: BUDGET / 2 + 1 }
}

/// Whoever waits for room or for the last commit is let go on, and all steps come in their order.
#[test]
fn steps_go_over_the_desk_in_order() {
    check(|| {
        let desk = Arc::new(Desk::default());
        let writer = spawn({
            let desk = desk.clone();
            move || write(&desk, usize::MAX)
        });
        for number in 1..=3 {
            desk.push(step(number)).unwrap();
        }
        desk.flush().unwrap();
        desk.stop();
        assert!(desk.ends_within(Duration::from_secs(3600)));
        assert_eq!(writer.join().unwrap(), [1, 2, 3]);
    });
}

/// A failure comes to whoever waits, whatever it waits for, and nobody waits for a thread that has ended.
#[test]
fn nobody_waits_for_an_output_that_has_failed() {
    check(|| {
        let desk = Arc::new(Desk::default());
        let writer = spawn({
            let desk = desk.clone();
            move || write(&desk, 1)
        });
        let pushed = (1..=3).try_for_each(|number| desk.push(step(number)));
        let failure = pushed.and_then(|()| desk.flush()).unwrap_err();
        assert_eq!(failure.to_string(), "poison");
        desk.stop();
        assert!(desk.ends_within(Duration::from_secs(3600)));
        assert_eq!(writer.join().unwrap(), [1]);
    });
}
