//! Deliberate faults of the shipped code, one of each kind of rule, and how soon the simulation finds each of them.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail};
use lockgate_controller::{HostFault, SequenceFault, StateFault};
use lockgate_core::PartitionFault;

use crate::life::simulate;
use crate::plan::Plan;
use crate::search::{Until, search};

/// A deliberate fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deliberate {
    Host(HostFault),
    Partitions(PartitionFault),
}

impl Deliberate {
    /// Those that are looked for.
    pub(crate) const ALL: [Self; 17] = [
        Self::sequence(SequenceFault::WriteBeforeJournal),
        Self::sequence(SequenceFault::DrainingSkipped),
        Self::sequence(SequenceFault::ReplayedPositionLost),
        Self::sequence(SequenceFault::BarrierIgnored),
        Self::sequence(SequenceFault::UserPauseForgotten),
        Self::sequence(SequenceFault::PartDoubled),
        Self::sequence(SequenceFault::ReloadStaysPaused),
        Self::sequence(SequenceFault::RoomIgnored),
        Self::sequence(SequenceFault::StopWithoutCheckpoint),
        Self::state(StateFault::NotSynced),
        Self::state(StateFault::AnsweredEarly),
        Self::state(StateFault::TrimmedApart),
        Self::state(StateFault::TrimmedTooFar),
        Self::Partitions(PartitionFault::FullAboveTheLimit),
        Self::Partitions(PartitionFault::WatermarkPassesIncomplete),
        Self::Partitions(PartitionFault::ResumesDuringReload),
        Self::Partitions(PartitionFault::RevokedNotMarked),
    ];

    const fn sequence(fault: SequenceFault) -> Self {
        Self::Host(HostFault::Sequence(fault))
    }

    const fn state(fault: StateFault) -> Self {
        Self::Host(HostFault::State(fault))
    }

    pub(crate) fn of_host(self) -> Option<HostFault> {
        if let Self::Host(fault) = self { Some(fault) } else { None }
    }

    pub(crate) fn of_partitions(self) -> Option<PartitionFault> {
        if let Self::Partitions(fault) = self { Some(fault) } else { None }
    }
}

/// How long a deliberate fault may go unnoticed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Looks for each of the deliberate faults.
///
/// # Errors
/// If one of them is not found in time.
pub(crate) fn find_all(folder: &Path) -> Result<()> {
    for deliberate in Deliberate::ALL {
        let found = search(0, Until::Time(PATIENCE), Some(deliberate), folder)?;
        let Some(seed) = found.failed else {
            bail!("{deliberate:?} was not found within {} s", PATIENCE.as_secs());
        };
        let report = simulate(&Plan::of(seed), Some(deliberate), false, folder)?;
        let breach = report.breaches.first().map_or("", String::as_str);
        println!("{deliberate:?}: {:.1?}, seed {seed}: {breach}", found.took);
    }
    Ok(())
}
