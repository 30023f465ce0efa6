//! What was recorded of inputs, compared.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::Batch;
use lockgate_file_adapter::recording::{Part, RecordingError};
use lockgate_file_adapter::tape::{Tape, TapeParts};

use super::Compared;
use super::records::{self, Side};
use super::sides::{Cell, Sides};
use crate::exit::{Code, Failed};
use crate::progress::counted;

type Tapes = BTreeMap<String, Tape>;

/// Compares what belongs together: inputs of the same name, or the only ones that there are. `by_records` does not
/// trust the recorded hashes.
pub(super) fn compare(a: &Tapes, b: &Tapes, by_records: bool) -> Result<Compared, Failed> {
    let pairs = pairs(a, b)?;
    let mut first: Option<Found> = None;
    for (name, a, b) in &pairs {
        let found = match (a, b) {
            (Some(a), Some(b)) => Pair { name, a, b, by_records }.first()?,
            (a, _) => {
                let (has, lacks) = if a.is_some() { ("A", "B") } else { ("B", "A") };
                let what = format!("{name}: only {has} has this input, {lacks} has none of it");
                Some(Found { step: None, sides: Sides::new(what) })
            }
        };
        // Of several inputs, the one with the earliest step.
        if let Some(found) = found
            && first.as_ref().is_none_or(|first| found.step < first.step)
        {
            first = Some(found);
        }
    }
    if let Some(found) = first {
        return Ok(Compared::Different(found.sides));
    }
    let records = counted(a.values().map(Tape::records).sum(), "record");
    // How records without steps were cut was not compared.
    Ok(Compared::Equal(match a.values().chain(b.values()).all(has_steps) {
        true => format!("{records}, {}", counted(steps(a), "step")),
        false => records,
    }))
}

fn steps(tapes: &Tapes) -> u64 {
    let parts = tapes.values().flat_map(|tape| tape.parts());
    parts.map(|part| part.step).collect::<BTreeSet<_>>().len() as u64
}

fn has_steps(tape: &Tape) -> bool {
    tape.parts().first().is_none_or(|part| part.step.is_some())
}

/// Inputs by name, each with what either side has of it.
type Pairs<'a> = Vec<(&'a str, Option<&'a Tape>, Option<&'a Tape>)>;

fn pairs<'a>(a: &'a Tapes, b: &'a Tapes) -> Result<Pairs<'a>, Failed> {
    if let (1, 1) = (a.len(), b.len())
        && let (Some((name, a)), Some(b)) = (a.iter().next(), b.values().next())
    {
        return Ok(vec![(name, Some(a), Some(b))]);
    }
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    if !names.iter().any(|name| a.contains_key(*name) && b.contains_key(*name)) {
        let names = |tapes: &Tapes| tapes.keys().cloned().collect::<Vec<_>>().join(", ");
        let message =
            format!("A has recordings of {}, B of {}: none of the same input", names(a), names(b));
        return Err(Failed::new(Code::Usage, message));
    }
    Ok(names.into_iter().map(|name| (name.as_str(), a.get(name), b.get(name))).collect())
}

/// A difference, and the step that it is in.
struct Found {
    step: Option<u64>,
    sides: Sides,
}

/// What both sides have of one input.
struct Pair<'a> {
    name: &'a str,
    a: &'a Tape,
    b: &'a Tape,
    by_records: bool,
}

impl Pair<'_> {
    fn first(&self) -> Result<Option<Found>, RecordingError> {
        match has_steps(self.a) && has_steps(self.b) {
            true => self.by_step(),
            false => self.as_sequence(),
        }
    }

    fn by_step(&self) -> Result<Option<Found>, RecordingError> {
        let (parts_a, parts_b) = (self.a.parts(), self.b.parts());
        let mut number = 0;
        // As long as nothing differs both have the same steps, and so the same numbers of parts.
        let mut readers = self.by_records.then(|| (self.a.read(0), self.b.read(0)));
        loop {
            let (x, y) = match (parts_a.get(number), parts_b.get(number)) {
                (None, None) => return Ok(None),
                (Some(x), Some(y)) => match x.step.cmp(&y.step) {
                    Ordering::Equal => (x, y),
                    Ordering::Less => return self.only(self.a, self.b, number, "A", "B").map(Some),
                    Ordering::Greater => {
                        return self.only(self.b, self.a, number, "B", "A").map(Some);
                    }
                },
                (Some(_), None) => return self.only(self.a, self.b, number, "A", "B").map(Some),
                (None, Some(_)) => return self.only(self.b, self.a, number, "B", "A").map(Some),
            };
            if self.by_records || x.digest != y.digest {
                let (a, b) =
                    readers.get_or_insert_with(|| (self.a.read(number), self.b.read(number)));
                let (a, b) = (Side::of(batches(a)?), Side::of(batches(b)?));
                let place = format!("{}, {}", self.name, in_words(x));
                if let Some(parting) = records::compare(a, b)? {
                    return Ok(Some(Found { step: x.step, sides: parting.to_sides(&place) }));
                }
                if x.digest != y.digest {
                    return Ok(Some(Found { step: x.step, sides: only_hashes(&place, x, y) }));
                }
            }
            number += 1;
        }
    }

    /// Without steps it is by chance how records are cut into parts: what is not the same by its hash is compared record
    /// by record from there on.
    fn as_sequence(&self) -> Result<Option<Found>, RecordingError> {
        let same = self.a.parts().iter().zip(self.b.parts());
        let same = match self.by_records {
            true => 0,
            false => same.take_while(|(a, b)| a.digest == b.digest).count(),
        };
        let (a, b) = (Side::all(self.a.read(same)), Side::all(self.b.read(same)));
        Ok(records::compare(a, b)?.map(|parting| {
            let number = parting.part() as u64 + 1;
            let place = format!("{}, block {number}", self.name);
            Found { step: Some(number), sides: parting.to_sides(&place) }
        }))
    }

    /// A step that only one has.
    fn only(
        &self,
        tape: &Tape,
        other: &Tape,
        number: usize,
        has: &str,
        lacks: &str,
    ) -> Result<Found, RecordingError> {
        let part = &tape.parts()[number];
        let rest = match other.parts().get(number) {
            Some(next) => format!("goes on with {}", in_words(next)),
            None if !other.complete() => "was cut short before it".into(),
            None => "ends before it".into(),
        };
        let place = in_words(part);
        let records = counted(part.digest.records, "record");
        let what = format!("{}: only {has} has {place} ({records}); {lacks} {rest}", self.name);
        let mut sides = Sides::new(what);
        let batches = batches(&mut tape.read(number))?;
        let record = batches.iter().flat_map(Batch::iter).next();
        match has {
            "A" => records::rows(&mut sides, record, None),
            _ => records::rows(&mut sides, None, record),
        }
        Ok(Found { step: part.step, sides })
    }
}

fn batches(parts: &mut TapeParts) -> Result<Vec<Batch>, RecordingError> {
    parts.next().transpose().map(|part| part.map_or_else(Vec::new, |(_, batches)| batches))
}

fn in_words(part: &Part) -> String {
    format!("step {}", part.step.unwrap_or_default())
}

/// The records are the same, but not what was recorded of them.
fn only_hashes(place: &str, a: &Part, b: &Part) -> Sides {
    let mut sides = Sides::new(format!(
        "{place}: the records are the same, and were recorded with different hashes; `lockgate verify` says which of \
         them is right"
    ));
    let hash = |part: &Part| Cell::text(format!("{:016x}", part.digest.hash));
    sides.row("hash", hash(a), hash(b));
    sides
}
