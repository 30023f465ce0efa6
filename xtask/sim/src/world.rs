//! What is outside the process and outlives it: what sources hold, what outputs have, and what was promised to
//! people. It also notices what must never happen (`check.rs`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fastrand::Rng;

use crate::fault::{Coverage, InputTrouble, OutputTrouble};
use crate::plan::{InputPlan, OutputPlan, Plan};

/// Every record has a value of so many bytes.
pub(crate) const RECORD_BYTES: u64 = 16;

/// The world, seen by everything that runs in it.
#[derive(Clone)]
pub(crate) struct Shared(Arc<Mutex<World>>);

impl Shared {
    pub(crate) fn new(plan: Plan, traces: bool) -> Self {
        Self(Arc::new(Mutex::new(World::new(plan, traces))))
    }

    /// Nobody keeps it while something else runs: there is one thread.
    pub(crate) fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) struct World {
    pub(crate) plan: Plan,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) destinations: Vec<Destination>,
    pub(crate) input_troubles: Vec<InputTrouble>,
    pub(crate) output_troubles: Vec<OutputTrouble>,
    pub(crate) slow_disk_ms: u32,
    pub(crate) slow_outputs_ms: u32,
    /// Inputs for which a pause was promised.
    pub(crate) paused: Vec<bool>,
    /// Inputs that somebody wanted to pause, and that were not said to go on since.
    pub(crate) may_be_paused: Vec<bool>,
    /// How often somebody wanted an input to go on.
    pub(crate) resumes: Vec<u64>,
    /// A checkpoint that covers this step was promised.
    pub(crate) checkpointed: u64,
    /// Whether bits have changed on the disk of the state directory.
    pub(crate) is_rotten: bool,
    /// What each step was when an output saw it first.
    pub(crate) steps: BTreeMap<u64, u64>,
    /// How much each input has ever been allowed to hold, at most: steps are replayed as they were cut.
    pub(crate) max_queued: Vec<u64>,
    /// Records that were handed over and not written, by now.
    pub(crate) in_flight: i64,
    pub(crate) coverage: Coverage,
    pub(crate) breaches: Vec<String>,
    pub(crate) trace: Option<Vec<String>>,
    pub(crate) life: usize,
    begun: Option<tokio::time::Instant>,
    /// When the life was over.
    ended: Option<Duration>,
}

impl World {
    fn new(plan: Plan, traces: bool) -> Self {
        let inputs = plan.inputs.len();
        Self {
            upstreams: plan.inputs.iter().map(Upstream::new).collect(),
            destinations: plan.outputs.iter().map(|output| Destination::new(*output)).collect(),
            input_troubles: Vec::new(),
            output_troubles: Vec::new(),
            slow_disk_ms: 0,
            slow_outputs_ms: 0,
            paused: vec![false; inputs],
            may_be_paused: vec![false; inputs],
            resumes: vec![0; inputs],
            checkpointed: 0,
            is_rotten: false,
            steps: BTreeMap::new(),
            max_queued: plan.inputs.iter().map(|input| input.max_queued).collect(),
            in_flight: 0,
            coverage: Coverage::default(),
            breaches: Vec::new(),
            trace: traces.then(Vec::new),
            life: 0,
            begun: None,
            ended: None,
            plan,
        }
    }

    /// A process starts; nothing is wrong.
    pub(crate) fn begin(&mut self, life: usize) {
        self.life = life;
        (self.begun, self.ended) = (Some(tokio::time::Instant::now()), None);
        self.input_troubles = self.plan.inputs.iter().map(|_| InputTrouble::default()).collect();
        self.output_troubles = self.plan.outputs.iter().map(|_| OutputTrouble::default()).collect();
        (self.slow_disk_ms, self.slow_outputs_ms, self.in_flight) = (0, 0, 0);
        self.upstreams.iter_mut().for_each(Upstream::begin);
    }

    /// Virtual time ends here.
    pub(crate) fn end(&mut self) {
        self.ended = self.begun.map(|begun| begun.elapsed());
    }

    pub(crate) fn happened(&mut self, what: &'static str) {
        self.coverage.count(what);
        self.note(|| format!("+ {what}"));
    }

    pub(crate) fn breach(&mut self, text: String) {
        self.note(|| format!("BREACH: {text}"));
        self.breaches.push(text);
    }

    pub(crate) fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            let elapsed = || self.begun.map(|begun| begun.elapsed()).unwrap_or_default();
            let at = self.ended.unwrap_or_else(elapsed).as_millis();
            trace.push(format!("life {} {at:>6} ms  {}", self.life, text()));
        }
    }

    pub(crate) fn promised_checkpoint(&mut self, step: u64) {
        self.checkpointed = self.checkpointed.max(step);
    }

    /// A pause that was asked for when somebody had wanted the input to go on so often.
    pub(crate) fn promised_pause(&mut self, input: usize, resumes: u64) {
        if self.resumes[input] == resumes {
            self.paused[input] = true;
        }
    }

    pub(crate) fn resuming(&mut self, input: usize) {
        self.paused[input] = false;
        self.resumes[input] += 1;
    }

    /// Whether every record that there is has come out.
    pub(crate) fn is_complete(&self) -> bool {
        self.destinations.iter().all(|destination| {
            self.upstreams.iter().enumerate().all(|(input, upstream)| {
                (0..upstream.partitions).all(|partition| {
                    (0..upstream.records).all(|n| {
                        upstream.was_elsewhere(partition, n) || destination.has(input, partition, n)
                    })
                })
            })
        })
    }
}

/// What an input reads. What a record holds follows from its place.
pub(crate) struct Upstream {
    pub(crate) partitions: u32,
    pub(crate) records: u32,
    /// Of each partition, where a member of the group would go on.
    pub(crate) committed: Vec<u32>,
    /// Of each partition, whether it is ours.
    pub(crate) is_ours: Vec<bool>,
    /// What the reader has not been told yet.
    pub(crate) rebalances: Vec<Rebalance>,
    /// Of each partition, the records that others have had.
    elsewhere: Vec<Vec<bool>>,
}

/// What a group wants of its member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rebalance {
    /// Give these up when what was begun is done.
    Revoke(Vec<u32>),
    /// These are somebody else's already.
    Lost(Vec<u32>),
    Assign(Vec<u32>),
}

impl Upstream {
    fn new(plan: &InputPlan) -> Self {
        let of_each = |n: u32| vec![n; plan.partitions as usize];
        Self {
            partitions: plan.partitions,
            records: plan.records,
            committed: of_each(0),
            is_ours: vec![true; plan.partitions as usize],
            rebalances: Vec::new(),
            elsewhere: vec![vec![false; plan.records as usize]; plan.partitions as usize],
        }
    }

    /// A new member gets everything.
    fn begin(&mut self) {
        self.is_ours.fill(true);
        self.rebalances.clear();
    }

    /// With gaps, as compaction and markers leave them.
    pub(crate) fn offset(n: u32) -> u64 {
        u64::from(n) + u64::from(n / 3)
    }

    /// Which record has this offset.
    pub(crate) fn number(offset: u64) -> Option<u32> {
        let n = Self::number_at_least(offset);
        (Self::offset(n) == offset).then_some(n)
    }

    /// The first record at or behind this offset.
    pub(crate) fn number_at_least(offset: u64) -> u32 {
        u32::try_from(offset - offset / 4).unwrap_or(u32::MAX)
    }

    pub(crate) fn was_elsewhere(&self, partition: u32, n: u32) -> bool {
        self.elsewhere[partition as usize][n as usize]
    }

    pub(crate) fn take_away(&mut self, partitions: u8, lost: bool) {
        let taken: Vec<u32> = (0..self.partitions)
            .filter(|p| partitions & (1 << p) != 0 && self.is_ours[*p as usize])
            .collect();
        if lost {
            taken.iter().for_each(|partition| self.given_up(*partition));
            self.rebalances.push(Rebalance::Lost(taken));
        } else {
            self.rebalances.push(Rebalance::Revoke(taken));
        }
    }

    /// A partition is not ours any more: somebody else reads on where it was committed.
    pub(crate) fn given_up(&mut self, partition: u32) {
        let p = partition as usize;
        if !std::mem::replace(&mut self.is_ours[p], false) {
            return;
        }
        let first = self.committed[p];
        let behind = (first + 1 + self.records / 4).min(self.records);
        (first..behind).for_each(|n| self.elsewhere[p][n as usize] = true);
        self.committed[p] = behind.max(first);
    }

    pub(crate) fn give_back(&mut self, partitions: u8) {
        let given = (0..self.partitions).filter(|p| partitions & (1 << p) != 0).collect();
        self.rebalances.push(Rebalance::Assign(given));
    }

    /// A commit of a partition that is not ours is refused.
    pub(crate) fn commit(&mut self, partition: u32, n: u32) -> bool {
        let p = partition as usize;
        if self.is_ours[p] {
            self.committed[p] = n;
        }
        self.is_ours[p]
    }
}

/// What a record is, wherever it is.
pub(crate) fn value(seed: u64, input: usize, partition: u32, n: u32) -> [u8; 8] {
    let mut rng =
        Rng::with_seed(seed ^ ((input as u64) << 48) ^ (u64::from(partition) << 32) ^ u64::from(n));
    rng.u64(..).to_le_bytes()
}

/// A record in an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) input: usize,
    pub(crate) partition: u32,
    pub(crate) n: u32,
    pub(crate) value: [u8; 8],
    /// The circuit's count of the partition's records.
    pub(crate) tally: u64,
}

/// What an output has.
pub(crate) struct Destination {
    pub(crate) plan: OutputPlan,
    pub(crate) rows: Vec<Row>,
    /// How many of them survive a loss of power.
    pub(crate) synced: usize,
    /// The last step in it, where it travels with the rows.
    pub(crate) last_step: u64,
}

impl Destination {
    fn new(plan: OutputPlan) -> Self {
        Self { plan, rows: Vec::new(), synced: 0, last_step: 0 }
    }

    pub(crate) fn has(&self, input: usize, partition: u32, n: u32) -> bool {
        let is_it = |row: &Row| (row.input, row.partition, row.n) == (input, partition, n);
        self.rows.iter().any(is_it)
    }

    /// The machine has lost its power.
    pub(crate) fn lose_power(&mut self, rng: &mut Rng) {
        // Transactions are on another machine.
        if self.plan == OutputPlan::File {
            self.rows.truncate(rng.usize(self.synced..=self.rows.len()));
            self.synced = self.rows.len();
        }
    }
}
