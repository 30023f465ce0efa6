//! One state of everything: the machine, what is around it, and what was promised to whom.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::mem::discriminant;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use lockgate_controller::{Event, InputTuning, Sequence, SequenceInput, Ticket};
use lockgate_core::ProtocolError;

use super::breach::Breach;
use super::disk::Disk;
use super::reader::{LIMITS, Reader};
use super::threads::{Keeper, Keeping, Work, Worker};
use super::{CommandModel, SECOND};

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum End {
    Complete,
    Stopped,
    Late,
    Failed,
}

/// What people have asked for and were not answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) suspend: bool,
    pub(super) reload: bool,
    /// A stop, which is not answered but cannot be called off.
    pub(super) stop: bool,
}

/// The tickets of those who ask.
pub(super) const CHECKPOINT: Ticket = Ticket(1);
pub(super) const SUSPEND: Ticket = Ticket(2);
pub(super) const RELOAD: Ticket = Ticket(3);

/// A state. States in which nothing differs that decides the future are one.
#[derive(Clone)]
pub struct CommandState {
    pub(super) machine: Sequence,
    pub(super) now: Duration,
    pub(super) readers: [Reader; 2],
    pub(super) worker: Worker,
    pub(super) keeper: Keeper,
    pub(super) disk: Disk,
    pub(super) disturbances_left: u8,
    /// Somebody wants a checkpoint that covers this step.
    pub(super) checkpoint_wanted: Option<u64>,
    /// What else people wait for.
    pub(super) asked: Asked,
    pub(super) end: Option<End>,
    pub(super) breach: Option<Breach>,
}

impl CommandState {
    pub(super) fn new(model: &CommandModel) -> Self {
        let disk = Disk::new();
        let mut state = Self {
            machine: machine(model, &disk, SECOND),
            now: SECOND,
            readers: [0, 1].map(|input| Reader::open(model.level, disk.seeks[input])),
            worker: Worker::default(),
            keeper: Keeper::default(),
            disk,
            disturbances_left: model.disturbances,
            checkpoint_wanted: None,
            asked: Asked::default(),
            end: None,
            breach: None,
        };
        state.perform_all(model);
        state
    }

    /// The process dies, and another one goes on with what it left.
    pub(super) fn crash(&mut self, model: &CommandModel) {
        self.disk.recover();
        self.machine = machine(model, &self.disk, self.now);
        self.readers = [0, 1].map(|input| Reader::open(model.level, self.disk.seeks[input]));
        (self.worker, self.keeper) = (Worker::default(), Keeper::default());
        (self.checkpoint_wanted, self.asked, self.end) = (None, Asked::default(), None);
        self.perform_all(model);
    }

    /// What is broken here.
    pub fn breach(&self) -> Option<Breach> {
        self.breach
    }

    /// Tells the machine and performs what it wants.
    pub(super) fn tell(&mut self, model: &CommandModel, event: Event) {
        if self.breach.is_some() || self.end.is_some() {
            return;
        }
        let (machine, now) = (&mut self.machine, self.now);
        let handled = catch_unwind(AssertUnwindSafe(|| machine.handle(now, event)));
        match handled {
            Ok(()) => self.perform_all(model),
            Err(_) => self.broken(Breach::Assertion),
        }
    }

    fn perform_all(&mut self, model: &CommandModel) {
        while let Some(action) = self.machine.next_action() {
            self.perform(model, action);
        }
    }

    /// Something is broken; the first of it counts.
    pub(super) fn broken(&mut self, breach: Breach) {
        self.breach.get_or_insert(breach);
    }

    /// A reader did what it was told, or what it was told or did was wrong.
    pub(super) fn kept<T>(&mut self, done: Result<T, ProtocolError>) -> Option<T> {
        match done {
            Ok(value) => return Some(value),
            Err(ProtocolError::Command { .. }) => self.broken(Breach::Command),
            Err(_) => self.broken(Breach::Reader),
        }
        None
    }
}

fn machine(model: &CommandModel, disk: &Disk, now: Duration) -> Sequence {
    let tuning = InputTuning { limits: LIMITS, ..InputTuning::default() };
    let inputs = disk.seeks.map(|seek| SequenceInput::new("", tuning, Some(seek.into())));
    let machine = Sequence::new(model.settings(), inputs.to_vec(), disk.step, now);
    match model.fault {
        Some(fault) => machine.with_fault(fault),
        None => machine,
    }
}

impl Hash for CommandState {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.breach.hash(hasher);
        if self.breach.is_some() {
            return;
        }
        let from_checkpoint = |step: u64| step.wrapping_sub(self.disk.step);
        self.end.hash(hasher);
        if self.end.is_none() {
            self.machine.hash_shape(self.now, hasher);
            self.readers.hash(hasher);
            self.checkpoint_wanted.map(from_checkpoint).hash(hasher);
            self.asked.hash(hasher);
        }
        let Worker { work, hashed, stepped, full } = &self.worker;
        (work.len(), hashed, stepped.len(), full).hash(hasher);
        for work in work {
            discriminant(work).hash(hasher);
            match work {
                Work::Step(step, content) => (from_checkpoint(*step), content).hash(hasher),
                Work::Write(step) => from_checkpoint(*step).hash(hasher),
                Work::Finish | Work::Prepare | Work::Complete => {}
            }
        }
        for (step, content) in stepped {
            (from_checkpoint(*step), content).hash(hasher);
        }
        let Keeper { work, full } = &self.keeper;
        (work.len(), full).hash(hasher);
        for work in work {
            discriminant(work).hash(hasher);
            match work {
                Keeping::Load { after } => from_checkpoint(*after).hash(hasher),
                Keeping::Journal(step, content) => (from_checkpoint(*step), content).hash(hasher),
                Keeping::Store { step, seeks, written } => {
                    (from_checkpoint(*step), seeks, written).hash(hasher);
                }
            }
        }
        self.disk.shape().hash(hasher);
        self.disturbances_left.hash(hasher);
    }
}

/// By their shapes.
impl PartialEq for CommandState {
    fn eq(&self, other: &Self) -> bool {
        let shape = |state: &Self| {
            let mut shape = Shape(Vec::new());
            state.hash(&mut shape);
            shape.0
        };
        shape(self) == shape(other)
    }
}

/// All that is hashed, so that it can be compared.
struct Shape(Vec<u8>);

impl Hasher for Shape {
    fn write(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn finish(&self) -> u64 {
        0
    }
}

impl fmt::Debug for CommandState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandState")
            .field("now", &self.now)
            .field("machine", &self.machine)
            .field("readers", &self.readers)
            .field("worker", &self.worker)
            .field("keeper", &self.keeper)
            .field("disk", &self.disk)
            .field("checkpoint_wanted", &self.checkpoint_wanted)
            .field("asked", &self.asked)
            .field("disturbances_left", &self.disturbances_left)
            .field("end", &self.end)
            .field("breach", &self.breach)
            .finish_non_exhaustive()
    }
}
