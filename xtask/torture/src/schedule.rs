//! What goes wrong, in which order and when: all of it follows from the seed.

use std::time::Duration;

use crate::log::Stage;
use crate::pair::{Input, Output, Pair};

/// Something that is done to a running program, or to what it stands on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Disturbance {
    /// `kill -9`.
    Kill { at: Moment },
    /// `kill -9` this long after this stage of a checkpoint was begun, of the one of this number since the start.
    KillInCheckpoint { number: u32, stage: Stage, after: Duration },
    /// SIGSTOP, and SIGCONT after a while.
    Freeze { at: Moment, length: Duration },
    /// The same, longer than sessions and transactions may last.
    FreezeLong { at: Moment },
    /// The disk below the state directory is full for a while.
    FullState { at: Moment, length: Duration },
    /// The disk below the output is full for a while.
    FullOutput { at: Moment, length: Duration },
    /// The state directory cannot be written: a start must refuse.
    ReadOnlyState,
    /// The clock jumps.
    Clock { at: Moment, seconds: i64 },
    /// The broker is killed and comes back after a while.
    Broker { at: Moment, away: Duration },
}

/// In thousandths of what an undisturbed run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment(pub(crate) u32);

impl Moment {
    pub(crate) fn of(self, whole: Duration) -> Duration {
        whole * self.0 / 1000
    }
}

/// The kinds, as columns of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Kill,
    Freeze,
    FreezeLong,
    FullState,
    FullOutput,
    ReadOnlyState,
    Clock,
    Broker,
}

impl Kind {
    /// All but kills.
    pub(crate) const OTHERS: [Kind; 7] = [
        Kind::Freeze,
        Kind::FreezeLong,
        Kind::FullState,
        Kind::FullOutput,
        Kind::ReadOnlyState,
        Kind::Clock,
        Kind::Broker,
    ];

    /// The head of its column.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Kill => "kills",
            Kind::Freeze => "freeze",
            Kind::FreezeLong => "freeze-long",
            Kind::FullState => "full-state",
            Kind::FullOutput => "full-output",
            Kind::ReadOnlyState => "read-only",
            Kind::Clock => "clock",
            Kind::Broker => "broker",
        }
    }

    /// What it is, in words.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Kind::Kill => {
                "kill -9 at a random moment, every other time aimed at the middle of a checkpoint"
            }
            Kind::Freeze => "SIGSTOP, and SIGCONT after up to 1.5 s",
            Kind::FreezeLong => "SIGSTOP for longer than sessions and transactions may last",
            Kind::FullState => "the disk of the state directory is full for a while",
            Kind::FullOutput => "the disk of the output is full for a while",
            Kind::ReadOnlyState => {
                "the state directory is read-only: the start refuses with exit code 74"
            }
            Kind::Clock => "the clock jumps forward or back by up to three days; files only",
            Kind::Broker => "kill -9 of the broker, which comes back on the same data",
        }
    }

    /// Whether it makes sense for the pair.
    fn concerns(self, pair: Pair) -> bool {
        match self {
            Kind::FreezeLong | Kind::Broker => pair.needs_broker(),
            Kind::FullOutput => pair.output != Output::Topic,
            // The Kafka client waits with `cnd_timedwait` until a time of day, to which libfaketime does not lie.
            Kind::Clock => !pair.needs_broker(),
            _ => true,
        }
    }

    /// So many times, where there are so many kills: what takes seconds is done less often.
    fn times(self, kills: u32) -> u32 {
        match self {
            Kind::Kill => kills,
            Kind::Freeze | Kind::Clock => kills.div_ceil(25),
            _ => kills.div_ceil(40),
        }
    }
}

impl Disturbance {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Disturbance::Kill { .. } | Disturbance::KillInCheckpoint { .. } => Kind::Kill,
            Disturbance::Freeze { .. } => Kind::Freeze,
            Disturbance::FreezeLong { .. } => Kind::FreezeLong,
            Disturbance::FullState { .. } => Kind::FullState,
            Disturbance::FullOutput { .. } => Kind::FullOutput,
            Disturbance::ReadOnlyState => Kind::ReadOnlyState,
            Disturbance::Clock { .. } => Kind::Clock,
            Disturbance::Broker { .. } => Kind::Broker,
        }
    }

    /// Whether it needs a small file system of its own.
    pub(crate) fn needs_small_disk(&self) -> bool {
        matches!(self.kind(), Kind::FullState | Kind::FullOutput)
    }
}

/// What is done to each of the pairs, in order. Of the other kinds only those that are `possible`.
pub(crate) fn plan(
    seed: u64,
    kills: u32,
    pairs: &[Pair],
    possible: &[Kind],
) -> Vec<Vec<Disturbance>> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut plans: Vec<Vec<Disturbance>> = vec![Vec::new(); pairs.len()];
    // Every other one of each pair, from the first or the second on.
    let mut aimed: Vec<bool> = (0..pairs.len()).map(|index| index % 2 == 0).collect();
    deal(&mut random, kills, &|_| true, pairs, |random, index| {
        plans[index].push(if aimed[index] { aimed_kill(random) } else { kill(random) });
        aimed[index] = !aimed[index];
    });
    for kind in Kind::OTHERS.into_iter().filter(|kind| possible.contains(kind)) {
        deal(
            &mut random,
            kind.times(kills),
            &|pair| kind.concerns(pair),
            pairs,
            |random, index| plans[index].extend(other(random, kind)),
        );
    }
    plans.iter_mut().for_each(|plan| random.shuffle(plan));
    plans
}

/// Gives `times` pieces to the pairs that may have them, as evenly as it goes, those that get one more by chance.
fn deal(
    random: &mut fastrand::Rng,
    times: u32,
    may_have: &dyn Fn(Pair) -> bool,
    pairs: &[Pair],
    mut give: impl FnMut(&mut fastrand::Rng, usize),
) {
    let mut able: Vec<usize> = (0..pairs.len()).filter(|index| may_have(pairs[*index])).collect();
    random.shuffle(&mut able);
    for index in able.iter().cycle().take(times as usize) {
        give(random, *index);
    }
}

fn moment(random: &mut fastrand::Rng) -> Moment {
    Moment(random.u32(10..1000))
}

fn kill(random: &mut fastrand::Rng) -> Disturbance {
    Disturbance::Kill { at: moment(random) }
}

fn aimed_kill(random: &mut fastrand::Rng) -> Disturbance {
    // About as long as the stages take.
    let (stage, longest) = match random.u32(..4) {
        0 | 1 => (Stage::Prepare, 12_000),
        2 => (Stage::Store, 4_000),
        _ => (Stage::Complete, 200),
    };
    let after = Duration::from_micros(random.u64(0..longest));
    Disturbance::KillInCheckpoint { number: random.u32(1..=4), stage, after }
}

fn other(random: &mut fastrand::Rng, kind: Kind) -> Option<Disturbance> {
    let at = moment(random);
    let mut length = |most| Duration::from_millis(random.u64(100..most));
    Some(match kind {
        Kind::Kill => return None,
        Kind::Freeze => Disturbance::Freeze { at, length: length(1500) },
        Kind::FreezeLong => Disturbance::FreezeLong { at },
        Kind::FullState => Disturbance::FullState { at, length: length(1200) },
        Kind::FullOutput => Disturbance::FullOutput { at, length: length(1200) },
        Kind::ReadOnlyState => Disturbance::ReadOnlyState,
        Kind::Clock => {
            let seconds = random.i64(60..3 * 24 * 60 * 60);
            Disturbance::Clock { at, seconds: if random.bool() { seconds } else { -seconds } }
        }
        Kind::Broker => Disturbance::Broker { at, away: length(2000) },
    })
}

/// After so many disturbances a round is run to its end. What ends by itself may have any number.
pub(crate) fn round_length(input: Input) -> usize {
    match input {
        // Later there is nothing left to read.
        Input::Group => 3,
        Input::Followed => 8,
        _ => usize::MAX,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn counted(plans: &[Vec<Disturbance>]) -> BTreeMap<Kind, u32> {
        let mut counts = BTreeMap::new();
        for disturbance in plans.iter().flatten() {
            *counts.entry(disturbance.kind()).or_default() += 1;
        }
        counts
    }

    #[test]
    fn a_seed_decides_everything() {
        let pairs = Pair::all();
        let of = |seed| plan(seed, 100, &pairs, &Kind::OTHERS);
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }

    #[test]
    fn kills_are_dealt_evenly_and_half_of_them_are_aimed() {
        let pairs = Pair::all();
        let plans = plan(1, 1000, &pairs, &Kind::OTHERS);
        assert_eq!(counted(&plans)[&Kind::Kill], 1000);
        for plan in &plans {
            let kills = plan.iter().filter(|one| one.kind() == Kind::Kill).count();
            assert!((38..=39).contains(&kills), "{kills}");
            let is_aimed = |one: &&Disturbance| matches!(one, Disturbance::KillInCheckpoint { .. });
            let aimed = plan.iter().filter(is_aimed).count();
            assert!((19..=20).contains(&aimed), "{aimed}");
        }
    }

    #[test]
    fn everything_goes_wrong_even_where_there_are_few_kills() {
        let plans = plan(1, 30, &Pair::all(), &Kind::OTHERS);
        let counts = counted(&plans);
        for kind in Kind::OTHERS {
            assert!(counts[&kind] >= 1, "{kind:?}");
        }
    }

    #[test]
    fn nothing_happens_where_it_makes_no_sense_or_cannot() {
        let pairs = Pair::all();
        let plans = plan(3, 1000, &pairs, &[Kind::Broker, Kind::FullOutput]);
        for (pair, plan) in pairs.iter().zip(&plans) {
            for disturbance in plan {
                let kind = disturbance.kind();
                assert!(kind.concerns(*pair), "{kind:?} of {}", pair.name());
                assert!([Kind::Kill, Kind::Broker, Kind::FullOutput].contains(&kind), "{kind:?}");
            }
        }
    }

    #[test]
    fn a_moment_is_a_part_of_a_run() {
        assert_eq!(Moment(250).of(Duration::from_secs(2)), Duration::from_millis(500));
    }
}
