//! Where the work of state directory and outputs is done in a simulation: beside everything else in one thread, each
//! time a little later than it could be.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fastrand::Rng;
use lockgate_controller::{Host, HostFault, Task};
use tokio::time::{Sleep, sleep};

use crate::world::Shared;

pub(crate) struct SimulatedHost {
    pub(crate) world: Shared,
    pub(crate) fault: Option<HostFault>,
}

impl Host for SimulatedHost {
    fn spawn(&self, name: &'static str, task: Task) -> io::Result<Option<JoinHandle<()>>> {
        let world = self.world.clone();
        let rng = {
            let world = world.lock();
            world.plan.rng(name, world.life)
        };
        let is_journal = name == "lockgate-journal";
        tokio::spawn(Paced { task, world, rng, is_journal, pause: None });
        Ok(None)
    }

    fn sleep(&self, time: Duration) -> Task {
        Box::pin(sleep(time))
    }

    fn wall_clock(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_000_000_000 + self.world.lock().life as u64)
    }

    fn fault(&self) -> Option<HostFault> {
        self.fault
    }
}

/// A task that goes on a little later than it could.
struct Paced {
    task: Task,
    world: Shared,
    rng: Rng,
    is_journal: bool,
    pause: Option<Pin<Box<Sleep>>>,
}

impl Paced {
    fn pause_ms(&mut self) -> u32 {
        let world = self.world.lock();
        let slow = if self.is_journal { world.slow_disk_ms } else { world.slow_outputs_ms };
        if self.rng.u8(..4) == 0 { slow + self.rng.u32(1..8) } else { slow }
    }
}

impl Future for Paced {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.pause.is_none() {
            let ms = self.pause_ms();
            if ms > 0 {
                self.pause = Some(Box::pin(sleep(Duration::from_millis(ms.into()))));
            }
        }
        if let Some(pause) = &mut self.pause {
            if pause.as_mut().poll(context).is_pending() {
                return Poll::Pending;
            }
            self.pause = None;
        }
        self.task.as_mut().poll(context)
    }
}
