//! Inputs of the simulation. A reader is a task: it fetches what its source has, now and then, and executes commands,
//! now or later. Each kind of source has what is different in `source/`: which partitions are read, and when records
//! are done with.

mod dealt;
mod held;

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use lockgate_core::{
    BufferSize, EndpointError, FaultTolerance, InputConsumer, InputEndpoint, InputReader,
    InputReaderCommand as Command, PartitionFault,
};
use serde_json::Value as JsonValue;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::sleep;

use crate::check::CommandState;
use crate::plan::{InputPlan, Kind, one_of};
use crate::world::{RECORD_BYTES, Shared};
use dealt::Dealt;
use held::Held;

/// An input that can be opened.
pub(crate) struct SimulatedInput {
    world: Shared,
    place: usize,
    plan: InputPlan,
    fault: Option<PartitionFault>,
}

enum Order {
    Command(Command),
    Checkpointed(JsonValue),
    Reload(NonZeroU32),
}

struct SimulatedReader {
    world: Shared,
    place: usize,
    orders: UnboundedSender<Order>,
    is_closed: Arc<AtomicBool>,
    /// As the commands come, before they are executed.
    state: Arc<std::sync::Mutex<CommandState>>,
}

impl SimulatedInput {
    pub(crate) fn new(world: Shared, place: usize, fault: Option<PartitionFault>) -> Self {
        let plan = world.lock().plan.inputs[place].clone();
        Self { world, place, plan, fault }
    }
}

impl InputEndpoint for SimulatedInput {
    fn fault_tolerance(&self) -> FaultTolerance {
        match self.plan.kind {
            Kind::Log | Kind::Topic => FaultTolerance::ExactlyOnce,
            Kind::Group => FaultTolerance::AtLeastOnce,
        }
    }

    fn open(
        self: Box<Self>,
        level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Box<dyn InputReader>, EndpointError> {
        let Self { world, place, plan, fault } = *self;
        let mut next = match &resume {
            Some(seek) => held::places(seek, &plan)?,
            None => vec![0; plan.partitions as usize],
        };
        if plan.kind == Kind::Group {
            next.clone_from(&world.lock().upstreams[place].committed);
        }
        let (orders, coming) = unbounded_channel();
        let is_closed = Arc::<AtomicBool>::default();
        let state = Arc::<std::sync::Mutex<CommandState>>::default();
        let (rng, seed) = {
            let world = world.lock();
            (world.plan.rng("reader", 100 * world.life + place), world.plan.seed)
        };
        let task = Reader {
            held: Held::new(seed, place, next, level, &plan),
            dealt: (plan.kind != Kind::Log).then(|| Dealt::new(&plan, fault)),
            plan,
            world: world.clone(),
            place,
            consumer,
            rng,
            is_running: false,
            idle: 0,
            has_begun: false,
            has_ended: false,
            is_closed: is_closed.clone(),
            state: state.clone(),
        };
        tokio::spawn(task.run(coming));
        Ok(Box::new(SimulatedReader { world, place, orders, is_closed, state }))
    }
}

impl InputReader for SimulatedReader {
    fn request(&self, command: Command) {
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        self.world.lock().commanded(self.place, &mut state, &command);
        let _ = self.orders.send(Order::Command(command));
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    fn checkpointed(&self, seek: &JsonValue) {
        let _ = self.orders.send(Order::Checkpointed(seek.clone()));
    }

    fn reload(&self, max_pending_records: NonZeroU32) {
        let _ = self.orders.send(Order::Reload(max_pending_records));
    }
}

/// The task behind a reader.
struct Reader {
    plan: InputPlan,
    world: Shared,
    place: usize,
    consumer: Arc<dyn InputConsumer>,
    rng: Rng,
    held: Held,
    /// For sources whose partitions are dealt with one by one.
    dealt: Option<Dealt>,
    is_running: bool,
    /// How often it found nothing to do.
    idle: u32,
    /// Whether it has ever been told to read.
    has_begun: bool,
    /// Whether all has been announced.
    has_ended: bool,
    is_closed: Arc<AtomicBool>,
    state: Arc<std::sync::Mutex<CommandState>>,
}

impl Reader {
    async fn run(mut self, mut orders: UnboundedReceiver<Order>) {
        loop {
            // Who finds nothing looks less and less often.
            let longest = self.plan.fetch_ms << self.idle.min(5);
            let pause = Duration::from_millis(self.rng.u64(1..=longest));
            let order = tokio::select! {
                biased;
                order = orders.recv() => match order {
                    Some(order) => Some(order),
                    None => return,
                },
                () = sleep(pause) => None,
            };
            if self.is_in_trouble() {
                break;
            }
            match order {
                Some(Order::Command(Command::Disconnect)) => break,
                Some(Order::Command(command)) => {
                    if let Err(error) = self.execute(command).await {
                        self.consumer.error(true, error);
                        break;
                    }
                }
                Some(Order::Checkpointed(seek)) => self.checkpointed(&seek),
                Some(Order::Reload(max_pending)) => {
                    if let Some(dealt) = &mut self.dealt {
                        dealt.request_reload(max_pending);
                    }
                }
                None => {}
            }
            let before = (self.held.size(), self.is_running);
            self.work();
            let is_idle = before == (self.held.size(), self.is_running);
            self.idle = if is_idle { self.idle + 1 } else { 0 };
            if self.has_ended && self.held.is_empty() && self.dealt.is_none() {
                break;
            }
            if self.world.lock().input_troubles[self.place].is_mute {
                // Never again.
                std::future::pending::<()>().await;
            }
        }
        self.is_closed.store(true, Ordering::Relaxed);
    }

    /// Whether it ends here, having said so or not.
    fn is_in_trouble(&mut self) -> bool {
        let mut world = self.world.lock();
        let trouble = &mut world.input_troubles[self.place];
        let (dies, fails) = (trouble.dies, trouble.fails.take());
        drop(world);
        if let Some(fatal) = fails {
            let (what, source) = ("reading".into(), "the disk says no".into());
            self.consumer.error(fatal, EndpointError::Storage { what, source });
        }
        dies || fails == Some(true)
    }

    async fn execute(&mut self, command: Command) -> Result<(), EndpointError> {
        match command {
            Command::Extend => (self.is_running, self.has_begun) = (true, true),
            Command::Pause => self.is_running = false,
            Command::Queue { checkpoint_requested } => {
                self.dawdle().await;
                self.hand_over(checkpoint_requested);
            }
            Command::Replay { data, .. } => {
                self.dawdle().await;
                let batches = self.held.replay(&data, &mut self.rng)?;
                let size = lockgate_core::size(&batches);
                self.world.lock().happened("a replayed step");
                self.world.lock().handed_over(size.records);
                self.answered();
                self.consumer.buffered(size);
                self.consumer.replayed(batches);
            }
            Command::Disconnect => {}
        }
        Ok(())
    }

    /// Before an answer.
    async fn dawdle(&mut self) {
        let late = self.world.lock().input_troubles[self.place].late_ms;
        if late > 0 {
            self.world.lock().happened("a late answer");
        }
        let ms = late + one_of(&mut self.rng, &[0, 0, 0, 1, 4]);
        if ms > 0 {
            sleep(Duration::from_millis(ms.into())).await;
        }
    }

    fn answered(&self) {
        self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner).answered();
    }

    fn hand_over(&mut self, checkpoint_requested: bool) {
        let max = self.consumer.max_batch_size();
        let step = self.held.take(max, checkpoint_requested, &mut self.rng);
        if step.resume.is_barrier() {
            self.world.lock().coverage.count("a barrier");
        }
        if let Some(dealt) = &mut self.dealt {
            dealt.handed_over(&step.taken, self.plan.kind == Kind::Group);
        }
        self.world.lock().handed_over(lockgate_core::count(&step.batches));
        self.answered();
        self.consumer.extended(step.batches, step.resume);
    }

    fn checkpointed(&mut self, seek: &JsonValue) {
        if let (Some(dealt), Ok(places)) = (&mut self.dealt, held::places(seek, &self.plan)) {
            dealt.durable(&places);
        }
    }

    /// What it does when nobody wants anything.
    fn work(&mut self) {
        let limits = self.consumer.limits();
        let is_connected = !self.world.lock().input_troubles[self.place].is_disconnected;
        let reads = self.is_running && is_connected;
        let room = |held: &Held| {
            limits.allow(held.size().plus(BufferSize { records: 1, bytes: RECORD_BYTES }))
        };
        match &mut self.dealt {
            None => {
                let mut fetch = self.rng.u32(1..12);
                while reads && fetch > 0 && room(&self.held) && self.held.fetch(0) {
                    fetch -= 1;
                }
                self.held.announce(self.consumer.as_ref());
            }
            Some(dealt) => {
                dealt.turn(
                    &mut self.held,
                    dealt::Outside {
                        world: &self.world,
                        is_group: self.plan.kind == Kind::Group,
                        place: self.place,
                        consumer: self.consumer.as_ref(),
                        has_begun: self.has_begun,
                        reads,
                    },
                    &mut self.rng,
                    room,
                );
            }
        }
        if self.is_running
            && self.plan.kind != Kind::Group
            && !self.has_ended
            && self.held.has_all()
        {
            self.has_ended = true;
            self.consumer.eoi();
        }
        if self.has_ended && self.held.is_empty() {
            self.is_closed.store(true, Ordering::Relaxed);
        }
    }
}
