//! Everything that can go wrong, and what people may ask for meanwhile. Each fault that strikes is counted.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use lockgate_controller::Handle;
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::disk;
use crate::plan::{InputPlan, Kind, OutputPlan, Plan, one_of};
use crate::world::{Shared, World};

/// A fault and when it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Strike {
    /// In milliseconds after the process started; for some faults the number of a call.
    pub(crate) at: u32,
    pub(crate) fault: Fault,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Fault {
    /// The process is killed.
    Kill,
    /// The process is killed inside the call of the disk with this number.
    KillInside,
    /// The machine loses its power.
    PowerLoss,
    /// The machine loses its power inside the call of the disk with this number.
    PowerLossInside,
    /// The disk of the state directory has no space.
    DiskFull {
        for_ms: u32,
    },
    /// The sync with this number fails.
    SyncFails,
    /// The call of the disk with this number fails.
    WriteFails,
    /// After this life a bit of the database, or of its log, is another.
    Rot {
        log: bool,
        place: u32,
        bit: u8,
    },
    /// Whatever the state directory's thread does takes longer.
    SlowDisk {
        by_ms: u32,
        for_ms: u32,
    },
    /// Whatever the outputs do takes longer.
    SlowOutputs {
        by_ms: u32,
        for_ms: u32,
    },
    /// An output's disk has no space.
    OutputFull {
        output: usize,
        for_ms: u32,
    },
    /// An output fails; what it was doing may have happened.
    OutputFails {
        output: usize,
        done: bool,
    },
    /// A reader answers late.
    Late {
        input: usize,
        by_ms: u32,
        for_ms: u32,
    },
    /// A reader does not answer any more.
    Mute {
        input: usize,
    },
    /// A reader dies without a word.
    Dies {
        input: usize,
    },
    /// A reader reports an error.
    Fails {
        input: usize,
        fatal: bool,
    },
    /// A source gives nothing for a time.
    Disconnected {
        input: usize,
        for_ms: u32,
    },
    /// Others of the group get these partitions (a set of bits) for a time; `lost`: without a word before.
    Rebalance {
        input: usize,
        partitions: u8,
        lost: bool,
        for_ms: u32,
    },
    /// Commits of offsets fail for a time.
    CommitsFail {
        input: usize,
        for_ms: u32,
    },
    /// The process stands still (SIGSTOP, a sleeping machine).
    Frozen {
        for_ms: u32,
    },
    /// SIGTERM.
    Stop,
    Suspend,
    Checkpoint,
    Pause {
        input: usize,
        for_ms: u32,
    },
    Reload {
        max_batch: u32,
        max_queued: u32,
        max_pending: u32,
    },
}

impl Fault {
    /// Whether it strikes at a call of the disk instead of a time.
    pub(crate) fn counts_calls(self) -> bool {
        use Fault::{KillInside, PowerLossInside, SyncFails, WriteFails};
        matches!(self, KillInside | PowerLossInside | SyncFails | WriteFails)
    }

    /// The input it strikes.
    pub(crate) fn input(self) -> Option<usize> {
        match self {
            Fault::Late { input, .. }
            | Fault::Mute { input }
            | Fault::Dies { input }
            | Fault::Fails { input, .. }
            | Fault::Disconnected { input, .. }
            | Fault::Rebalance { input, .. }
            | Fault::CommitsFail { input, .. }
            | Fault::Pause { input, .. } => Some(input),
            _ => None,
        }
    }

    /// The output it strikes.
    pub(crate) fn output(self) -> Option<usize> {
        match self {
            Fault::OutputFull { output, .. } | Fault::OutputFails { output, .. } => Some(output),
            _ => None,
        }
    }

    /// What it is counted as.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Fault::Kill => "kill",
            Fault::KillInside => "kill inside a disk call",
            Fault::PowerLoss => "power loss",
            Fault::PowerLossInside => "power loss inside a disk call",
            Fault::DiskFull { .. } => "full disk of the state",
            Fault::SyncFails => "failing sync",
            Fault::WriteFails => "failing write",
            Fault::Rot { log: false, .. } => "bit rot in the database",
            Fault::Rot { log: true, .. } => "bit rot in the log",
            Fault::SlowDisk { .. } => "slow disk of the state",
            Fault::SlowOutputs { .. } => "slow outputs",
            Fault::OutputFull { .. } => "full disk of an output",
            Fault::OutputFails { done: false, .. } => "failing output",
            Fault::OutputFails { done: true, .. } => "failing output that has done it",
            Fault::Late { .. } => "late answers",
            Fault::Mute { .. } => "no answers",
            Fault::Dies { .. } => "death of a reader",
            Fault::Fails { fatal: true, .. } => "fatal error of a reader",
            Fault::Fails { fatal: false, .. } => "error of a reader",
            Fault::Disconnected { .. } => "disconnected source",
            Fault::Rebalance { lost: false, .. } => "rebalance",
            Fault::Rebalance { lost: true, .. } => "lost partitions",
            Fault::CommitsFail { .. } => "failing commits",
            Fault::Frozen { .. } => "frozen process",
            Fault::Stop => "stop",
            Fault::Suspend => "suspend",
            Fault::Checkpoint => "checkpoint wanted",
            Fault::Pause { .. } => "pause",
            Fault::Reload { .. } => "reload",
        }
    }

    /// Names of all that can be counted.
    pub(crate) fn names() -> Vec<&'static str> {
        let mut rng = Rng::with_seed(0);
        let group = InputPlan {
            kind: Kind::Group,
            partitions: 1,
            records: 1,
            barrier_every: 1,
            max_queued: 1,
            max_pending: 1,
            fetch_ms: 1,
            waits: false,
        };
        let any = |_| Self::any(&mut rng, std::slice::from_ref(&group), &[OutputPlan::File]).name();
        let names: std::collections::BTreeSet<_> = (0..20_000).map(any).collect();
        names.into_iter().collect()
    }

    pub(crate) fn any(rng: &mut Rng, inputs: &[InputPlan], outputs: &[OutputPlan]) -> Self {
        let input = rng.usize(..inputs.len());
        let output = rng.usize(..outputs.len());
        let for_ms = one_of(rng, &[1, 10, 50, 200, 1_500]);
        let by_ms = one_of(rng, &[1, 5, 20, 100]);
        let is_group = inputs[input].kind == Kind::Group;
        match rng.u8(..40) {
            0..4 => Fault::Kill,
            4..7 => Fault::KillInside,
            7..10 => Fault::PowerLoss,
            10..14 => Fault::PowerLossInside,
            14 => Fault::DiskFull { for_ms },
            15 => Fault::SyncFails,
            16 => Fault::WriteFails,
            17 => Fault::Rot { log: rng.bool(), place: rng.u32(..1000), bit: rng.u8(..8) },
            18 => Fault::SlowDisk { by_ms, for_ms },
            19 => Fault::SlowOutputs { by_ms, for_ms },
            20 => Fault::OutputFull { output, for_ms },
            21 => Fault::OutputFails { output, done: rng.bool() },
            22 => Fault::Late { input, by_ms, for_ms },
            23 => Fault::Mute { input },
            24 => Fault::Dies { input },
            25 => Fault::Fails { input, fatal: rng.bool() },
            26 => Fault::Disconnected { input, for_ms },
            27..30 if is_group => {
                let partitions = rng.u8(1..16);
                Fault::Rebalance { input, partitions, lost: rng.u8(..4) == 0, for_ms }
            }
            30 if is_group => Fault::CommitsFail { input, for_ms },
            27 | 31 => Fault::Frozen { for_ms: 10 * for_ms },
            28 | 32 => Fault::Stop,
            29 | 33 => Fault::Suspend,
            30 | 34 => Fault::Checkpoint,
            35..37 => Fault::Pause { input, for_ms },
            _ => Fault::Reload {
                max_batch: one_of(rng, &[1, 4, 50]),
                max_queued: one_of(rng, &[1, 5, 50]),
                max_pending: one_of(rng, &[1, 3, 20]),
            },
        }
    }
}

/// What does not work at an input at the moment.
#[derive(Debug, Default)]
pub(crate) struct InputTrouble {
    pub(crate) late_ms: u32,
    pub(crate) is_mute: bool,
    pub(crate) dies: bool,
    /// Whether it is fatal.
    pub(crate) fails: Option<bool>,
    pub(crate) is_disconnected: bool,
    pub(crate) commits_fail: bool,
}

/// What does not work at an output at the moment.
#[derive(Debug, Default)]
pub(crate) struct OutputTrouble {
    pub(crate) is_full: bool,
    /// Whether what it was doing has happened.
    pub(crate) fails: Option<bool>,
}

/// How often what has happened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Coverage(BTreeMap<&'static str, u64>);

impl Coverage {
    pub(crate) fn count(&mut self, what: &'static str) {
        self.add(what, 1);
    }

    pub(crate) fn add(&mut self, what: &'static str, times: u64) {
        if times > 0 {
            *self.0.entry(what).or_default() += times;
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|(what, times)| self.add(what, *times));
    }

    pub(crate) fn of(&self, what: &str) -> u64 {
        self.0.get(what).copied().unwrap_or_default()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.0.iter().map(|(what, times)| (*what, *times))
    }
}

/// How a life ends from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Kill,
    PowerLoss,
}

/// What the disk will do in a life with these strikes, and what kind of end it is if it stops inside a call.
pub(crate) fn fate(strikes: &[Strike]) -> (disk::Fate, End) {
    let mut fate = disk::Fate::default();
    let mut end = End::Kill;
    for Strike { at, fault } in strikes {
        let at = Some(u64::from(*at));
        match fault {
            Fault::KillInside | Fault::PowerLossInside if fate.stops_at.is_none() => {
                fate.stops_at = at;
                end = if *fault == Fault::KillInside { End::Kill } else { End::PowerLoss };
            }
            // Syncs are a third of the calls.
            Fault::SyncFails => fate.fails_sync = at.map(|at| at / 3 + 1),
            Fault::WriteFails => fate.fails_call = at,
            _ => {}
        }
    }
    (fate, end)
}

/// What the disk did of what it was to do, as it is counted.
pub(crate) fn struck(struck: disk::Struck, end: End) -> [(&'static str, u64); 3] {
    let inside = if end == End::Kill { Fault::KillInside } else { Fault::PowerLossInside };
    [
        (inside.name(), struck.stopped_inside),
        (Fault::SyncFails.name(), struck.failed_syncs),
        (Fault::WriteFails.name(), struck.failed_writes),
    ]
}

/// What has to happen in any long search, besides every fault.
pub(crate) const EFFECTS: [&str; 12] = [
    "a barrier",
    "a commit",
    "a late answer",
    "a refusal after bit rot",
    "a refused commit",
    "a replayed step",
    "a sector that had got through",
    "a step that the output had",
    "a torn sector",
    "a write without space",
    "an output that waits for space",
    "an output that was cut back",
];

/// Lets a fault strike at its time. Gives how the life ends, if it does by that.
pub(crate) async fn strike(world: &Shared, handle: &Handle, strike: Strike) -> Option<End> {
    let Strike { at, fault } = strike;
    if fault.counts_calls() || matches!(fault, Fault::Rot { .. }) {
        return None;
    }
    sleep(Duration::from_millis(at.into())).await;
    world.lock().happened(fault.name());
    let wait = |ms: u32| sleep(Duration::from_millis(ms.into()));
    match fault {
        Fault::Kill => return Some(End::Kill),
        Fault::PowerLoss => return Some(End::PowerLoss),
        Fault::DiskFull { for_ms } => {
            disk::set_full(true);
            wait(for_ms).await;
            disk::set_full(false);
        }
        Fault::SlowDisk { by_ms, for_ms } => {
            world.lock().slow_disk_ms = by_ms;
            wait(for_ms).await;
            world.lock().slow_disk_ms = 0;
        }
        Fault::SlowOutputs { by_ms, for_ms } => {
            world.lock().slow_outputs_ms = by_ms;
            wait(for_ms).await;
            world.lock().slow_outputs_ms = 0;
        }
        Fault::OutputFull { output, for_ms } => {
            world.lock().output_troubles[output].is_full = true;
            wait(for_ms).await;
            world.lock().output_troubles[output].is_full = false;
        }
        Fault::OutputFails { output, done } => {
            world.lock().output_troubles[output].fails = Some(done);
        }
        Fault::Late { input, by_ms, for_ms } => {
            trouble(world, input, |trouble| trouble.late_ms = by_ms);
            wait(for_ms).await;
            trouble(world, input, |trouble| trouble.late_ms = 0);
        }
        Fault::Mute { input } => trouble(world, input, |trouble| trouble.is_mute = true),
        Fault::Dies { input } => trouble(world, input, |trouble| trouble.dies = true),
        Fault::Fails { input, fatal } => {
            trouble(world, input, |trouble| trouble.fails = Some(fatal));
        }
        Fault::Disconnected { input, for_ms } => {
            trouble(world, input, |trouble| trouble.is_disconnected = true);
            wait(for_ms).await;
            trouble(world, input, |trouble| trouble.is_disconnected = false);
        }
        Fault::Rebalance { input, partitions, lost, for_ms } => {
            world.lock().upstreams[input].take_away(partitions, lost);
            wait(for_ms).await;
            world.lock().upstreams[input].give_back(partitions);
        }
        Fault::CommitsFail { input, for_ms } => {
            trouble(world, input, |trouble| trouble.commits_fail = true);
            wait(for_ms).await;
            trouble(world, input, |trouble| trouble.commits_fail = false);
        }
        Fault::Frozen { for_ms } => {
            tokio::time::advance(Duration::from_millis(for_ms.into())).await;
        }
        Fault::Stop => handle.stop(),
        Fault::Suspend => {
            if let Ok(step) = handle.suspend().await {
                world.lock().promised_checkpoint(step);
            }
        }
        Fault::Checkpoint => {
            if let Ok(step) = handle.checkpoint().await {
                world.lock().promised_checkpoint(step);
            }
        }
        Fault::Pause { input, for_ms } => {
            let resumes = world.lock().resumes[input];
            world.lock().may_be_paused[input] = true;
            if handle.pause(&[input]).await.is_ok() {
                world.lock().promised_pause(input, resumes);
            }
            wait(for_ms).await;
            world.lock().resuming(input);
            if handle.resume(&[input]).await.is_ok() {
                world.lock().may_be_paused[input] = false;
            }
        }
        Fault::Reload { max_batch, max_queued, max_pending } => {
            let plan = reloaded(&mut world.lock(), max_batch, max_queued, max_pending);
            let inputs = plan.inputs.iter().map(InputPlan::tuning).collect();
            let _ =
                handle.reload(lockgate_controller::Reload { tuning: plan.tuning(), inputs }).await;
        }
        Fault::KillInside
        | Fault::PowerLossInside
        | Fault::SyncFails
        | Fault::WriteFails
        | Fault::Rot { .. } => {}
    }
    None
}

fn trouble(world: &Shared, input: usize, what: impl FnOnce(&mut InputTrouble)) {
    what(&mut world.lock().input_troubles[input]);
}

fn reloaded(world: &mut World, max_batch: u32, max_queued: u32, max_pending: u32) -> Plan {
    for most in &mut world.max_queued {
        *most = (*most).max(max_queued.into());
    }
    let mut plan = world.plan.clone();
    plan.max_batch = max_batch as usize;
    for input in &mut plan.inputs {
        input.max_queued = max_queued.into();
        input.max_pending = max_pending;
    }
    plan
}
