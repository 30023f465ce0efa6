//! Where a recording is not what was delivered.

use std::fmt;

use lockgate_core::Partition;

use super::row::Row;

/// The first place at which a recording differs from what was delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The number of the part, from 0.
    pub part: usize,
    /// Its step, where steps are known.
    pub step: Option<u64>,
    /// The record, as the recording has it: its partition and offset. `None` where it is the whole part.
    pub record: Option<(Partition, u64)>,
    /// What is wrong.
    pub kind: FaultKind,
}

/// What is wrong with a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The record was changed, is in the wrong place, or the one before it is missing.
    Record,
    /// The record claims to be of another step than its part.
    Step,
    /// The record is none that an input can deliver; says why.
    Nonsense(&'static str),
    /// The part's last records are missing.
    Missing,
    /// There are records after those of the last part.
    Surplus,
    /// Each record is as it was recorded, but the part has another hash: it was recorded with a digest that was
    /// not its own, or the index was changed.
    Digest,
}

impl Fault {
    pub(super) fn new(
        part: usize,
        step: Option<u64>,
        row: Option<&Row<'_>>,
        kind: FaultKind,
    ) -> Self {
        let record = row.map(|row| {
            let source = String::from_utf8_lossy(row.source).into_owned();
            (Partition { source, number: row.number }, row.offset)
        });
        Self { part, step, record, kind }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {}", self.part)?;
        if let Some(step) = self.step {
            write!(f, " (step {step})")?;
        }
        if let Some((partition, offset)) = &self.record {
            write!(f, ", {partition} offset {offset}")?;
        }
        match self.kind {
            FaultKind::Record => {
                f.write_str(": this record was changed or moved, or the one before it is missing")
            }
            FaultKind::Step => f.write_str(": this record claims to be of another step"),
            FaultKind::Nonsense(why) => write!(f, ": no input delivers this record: {why}"),
            FaultKind::Missing => f.write_str(": the last records are missing"),
            FaultKind::Surplus => f.write_str(": there are more records than were recorded"),
            FaultKind::Digest => {
                f.write_str(": the records have another hash than the one recorded for them")
            }
        }
    }
}
