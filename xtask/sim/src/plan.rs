//! What one seed simulates: a pipeline, and for each life of its process the faults that strike.
//!
//! A plan is data, so that it can be shown, made smaller and run again. Everything that a run decides by chance
//! comes from the plan's seed as well.

use std::num::NonZeroU32;
use std::time::Duration;

use fastrand::Rng;
use lockgate_controller::{Delivery, InputTuning, OnStall, Tuning};
use lockgate_core::QueueLimits;
use serde::{Deserialize, Serialize};

use crate::fault::{Fault, Strike};

/// What is simulated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// Whether steps are journaled; otherwise each record comes out at least once.
    pub(crate) exactly_once: bool,
    pub(crate) inputs: Vec<InputPlan>,
    pub(crate) outputs: Vec<OutputPlan>,
    pub(crate) checkpoint_ms: u64,
    pub(crate) min_batch: u64,
    pub(crate) delay_ms: u64,
    pub(crate) max_batch: usize,
    pub(crate) stall_ms: u64,
    pub(crate) stops_on_stall: bool,
    pub(crate) shutdown_ms: u64,
    /// What strikes in each life. After these comes one in which nothing does.
    pub(crate) lives: Vec<Vec<Strike>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct InputPlan {
    pub(crate) kind: Kind,
    pub(crate) partitions: u32,
    /// In each partition.
    pub(crate) records: u32,
    /// At least once, only every so many records there is a place to go on from.
    pub(crate) barrier_every: u32,
    pub(crate) max_queued: u64,
    pub(crate) max_pending: u32,
    /// Between two fetches, at most.
    pub(crate) fetch_ms: u64,
    /// Whether it waits for the input before it.
    pub(crate) waits: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// One sequence of records that ends, as a file.
    Log,
    /// Partitions that are read side by side to their ends.
    Topic,
    /// Partitions that others may have for a time, with offsets that are committed.
    Group,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum OutputPlan {
    /// What is written is there, and lasts when it is synced.
    File,
    /// So many steps become visible together, with the number of the last.
    Transactions { steps: u32 },
}

/// Lives take about so long; faults strike within it.
const LIFE_MS: u32 = 250;

/// Calls that change the disk in such a life.
const LIFE_CALLS: u32 = 120;

impl Plan {
    /// What `seed` simulates.
    pub(crate) fn of(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let exactly_once = rng.u8(..10) < 8;
        let mut inputs: Vec<InputPlan> = (0..one_of(&mut rng, &[1, 1, 1, 2, 2, 3]))
            .map(|_| input(&mut rng, exactly_once))
            .collect();
        for place in 1..inputs.len() {
            // A group has no end that could be waited for.
            let can_wait = inputs[place - 1..=place].iter().all(|input| input.kind != Kind::Group);
            inputs[place].waits = can_wait && rng.u8(..8) == 0;
        }
        let output = |rng: &mut Rng| match exactly_once && rng.bool() {
            true => OutputPlan::Transactions { steps: rng.u32(1..6) },
            false => OutputPlan::File,
        };
        let outputs: Vec<_> =
            (0..one_of(&mut rng, &[1, 1, 1, 2])).map(|_| output(&mut rng)).collect();
        let lives = (0..one_of(&mut rng, &[0, 1, 1, 1, 2, 2, 3]))
            .map(|_| {
                let strikes = one_of(&mut rng, &[1, 1, 2, 2, 3, 4]);
                (0..strikes).map(|_| strike(&mut rng, &inputs, &outputs)).collect()
            })
            .collect();
        Self {
            seed,
            exactly_once,
            inputs,
            outputs,
            checkpoint_ms: one_of(&mut rng, &[5, 20, 50, 100, 1_000, 1_000_000]),
            min_batch: one_of(&mut rng, &[1, 3, 10, 1_000]),
            delay_ms: one_of(&mut rng, &[1, 1, 5, 20]),
            max_batch: one_of(&mut rng, &[1, 2, 5, 100]),
            stall_ms: one_of(&mut rng, &[250, 500, 2_000]),
            stops_on_stall: rng.bool(),
            shutdown_ms: one_of(&mut rng, &[20, 200, 5_000]),
            lives,
        }
    }

    /// Chance for one purpose; the same whatever else is simulated.
    pub(crate) fn rng(&self, purpose: &str, number: usize) -> Rng {
        let mut seed = self.seed ^ 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1);
        for byte in purpose.bytes() {
            seed = (seed ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        Rng::with_seed(seed)
    }

    pub(crate) fn delivery(&self) -> Delivery {
        if self.exactly_once { Delivery::ExactlyOnce } else { Delivery::AtLeastOnce }
    }

    pub(crate) fn tuning(&self) -> Tuning {
        Tuning {
            checkpoint_interval: Duration::from_millis(self.checkpoint_ms),
            min_batch_records: self.min_batch,
            max_buffering_delay: Duration::from_millis(self.delay_ms),
            max_batch_records: self.max_batch,
            stall_timeout: Duration::from_millis(self.stall_ms),
            on_stall: if self.stops_on_stall { OnStall::Stop } else { OnStall::Wait },
            shutdown_timeout: Duration::from_millis(self.shutdown_ms),
        }
    }

    pub(crate) fn strikes_input(&self, place: usize) -> bool {
        self.lives.iter().flatten().any(|strike| strike.fault.input() == Some(place))
    }

    pub(crate) fn strikes_output(&self, place: usize) -> bool {
        self.lives.iter().flatten().any(|strike| strike.fault.output() == Some(place))
    }

    /// Whether some input has no end of its own.
    pub(crate) fn is_endless(&self) -> bool {
        self.inputs.iter().any(|input| input.kind == Kind::Group)
    }
}

impl InputPlan {
    pub(crate) fn tuning(&self) -> InputTuning {
        let limits = QueueLimits {
            max_queued_records: self.max_queued,
            max_queued_bytes: self.max_queued * crate::world::RECORD_BYTES,
        };
        let max_pending_records = match self.kind {
            Kind::Log => None,
            Kind::Topic | Kind::Group => NonZeroU32::new(self.max_pending),
        };
        InputTuning { limits, max_pending_records, max_records_per_second: None }
    }
}

fn input(rng: &mut Rng, exactly_once: bool) -> InputPlan {
    let kinds: &[Kind] = match exactly_once {
        true => &[Kind::Log, Kind::Topic],
        false => &[Kind::Log, Kind::Topic, Kind::Group, Kind::Group],
    };
    let kind = one_of(rng, kinds);
    InputPlan {
        kind,
        partitions: if kind == Kind::Log { 1 } else { rng.u32(1..5) },
        records: one_of(rng, &[0, 1, 5, 12, 30]),
        barrier_every: one_of(rng, &[1, 1, 3, 7]),
        max_queued: one_of(rng, &[1, 3, 10, 100]),
        max_pending: one_of(rng, &[1, 2, 5, 50]),
        fetch_ms: one_of(rng, &[1, 3, 10, 30]),
        waits: false,
    }
}

fn strike(rng: &mut Rng, inputs: &[InputPlan], outputs: &[OutputPlan]) -> Strike {
    let fault = Fault::any(rng, inputs, outputs);
    let at = match fault.counts_calls() {
        true => rng.u32(1..LIFE_CALLS),
        false => rng.u32(..LIFE_MS),
    };
    Strike { at, fault }
}

pub(crate) fn one_of<T: Copy>(rng: &mut Rng, choices: &[T]) -> T {
    choices[rng.usize(..choices.len())]
}
