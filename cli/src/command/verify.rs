//! `lockgate verify`: whether recordings, or a state directory, are what was written.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use lockgate_controller::{Inspection, State};
use lockgate_core::{Batch, Partition};
use lockgate_file_adapter::recording::{Fault, Part, Recording, RecordingError};
use lockgate_file_adapter::tape::{Tape, is_bud};

use super::print;
use crate::exit::{Code, Failed};
use crate::progress::counted;
use crate::subject::Subject;

/// How many partitions of a step are named.
const NAMED_PARTITIONS: usize = 5;

pub(crate) fn verify(what: &Path) -> Result<(), Failed> {
    match Subject::of(what)? {
        Subject::State(directory) => verify_state(&directory),
        recordings => {
            let is_whole_run = matches!(recordings, Subject::Recordings(_));
            verify_recordings(&recordings.pieces(None)?, is_whole_run)
        }
    }
}

fn verify_state(directory: &Path) -> Result<(), Failed> {
    let inspection = State::inspect(directory)?;
    let checkpoint = match &inspection.checkpoint {
        Some(checkpoint) => format!("a checkpoint of step {}", checkpoint.step),
        None => "no checkpoint yet".into(),
    };
    let (records, steps) = journaled(&inspection);
    let directory = directory.display();
    print(&format!("{directory}: {checkpoint}, a journal of {records} in {steps}, intact\n"))
}

/// How many records and steps are in the journal, in words.
pub(super) fn journaled(inspection: &Inspection) -> (String, String) {
    let parts = inspection.journal.iter().flat_map(|step| &step.parts);
    let records = counted(parts.map(|part| part.digest.records).sum(), "record");
    (records, counted(inspection.journal.len() as u64, "step"))
}

/// Goes on after a fault, so that all of them are known; the first decides the exit code. Of a whole run it is said
/// which steps are missing: those that one input lacks are others'.
fn verify_recordings(
    inputs: &BTreeMap<String, Vec<PathBuf>>,
    is_whole_run: bool,
) -> Result<(), Failed> {
    let mut failures: Vec<Failed> = Vec::new();
    let mut steps: Vec<u64> = Vec::new();
    for (input, paths) in inputs {
        let mut opened = true;
        for path in paths {
            match verify_recording(input, path, paths.len() > 1) {
                Ok(line) => print(&line)?,
                Err(failed) => {
                    opened = false;
                    failures.push(failed);
                }
            }
        }
        if !opened {
            continue;
        }
        match Tape::open(paths) {
            Ok(tape) => {
                if paths.len() > 1 {
                    print(&tape_line(input, &tape))?;
                }
                steps.extend(tape.parts().iter().filter_map(|part| part.step));
            }
            Err(error) => failures.push(error.into()),
        }
    }
    let Some(first) = failures.first() else {
        steps.sort_unstable();
        let missing: Vec<String> = gaps(&steps).into_iter().map(|gap| span(Some(gap))).collect();
        return match &missing[..] {
            missing if is_whole_run && !missing.is_empty() => {
                print(&format!("not recorded of any input: {}\n", missing.join(", ")))
            }
            _ => Ok(()),
        };
    };
    let messages: Vec<&str> = failures.iter().map(|failed| failed.message.as_str()).collect();
    Err(Failed::new(first.code, messages.join("\n")))
}

/// The line about a recording that is intact. One of several may have been begun only when the run was killed.
fn verify_recording(input: &str, path: &Path, is_one_of_several: bool) -> Result<String, Failed> {
    let shown = path.display();
    let recording = match Recording::open(path) {
        Err(RecordingError::NotARecording { .. }) if is_one_of_several && is_bud(path) => {
            return Ok(format!("{shown}: input {input}, cut short before the first record\n"));
        }
        opened => opened?,
    };
    match quietly(|| recording.verify())? {
        Ok(None) => {}
        Ok(Some(fault)) => {
            let place = place(&recording, &fault);
            return Err(Failed::new(Code::Data, format!("{shown}: {fault}{place}")));
        }
        Err(error) => {
            let mut failed = Failed::from(error);
            if failed.code == Code::Data {
                failed.message += &unreadable_from(&recording);
            }
            return Err(failed);
        }
    }
    let parts = recording.parts();
    let state = if recording.complete() { "complete" } else { "cut short there" };
    Ok(format!(
        "{shown}: input {input}, {} in {}, {}, {state}\n",
        counted(recording.records(), "record"),
        counted(parts.len() as u64, "part"),
        span(steps_of(parts)),
    ))
}

fn tape_line(input: &str, tape: &Tape) -> String {
    let recordings = tape.recordings();
    let again = recordings.iter().map(Recording::records).sum::<u64>() - tape.records();
    let again = match again {
        0 => String::new(),
        again => format!("; {} came again in a later one", counted(again, "record")),
    };
    format!(
        "{input}: {} in {}, {}{again}\n",
        counted(tape.records(), "record"),
        counted(recordings.len() as u64, "recording"),
        span(steps_of(tape.parts())),
    )
}

/// First and last step.
pub(super) fn steps_of(parts: &[Part]) -> Option<(u64, u64)> {
    Some((parts.first()?.step?, parts.last()?.step?))
}

/// First and last step in words.
pub(super) fn span(steps: Option<(u64, u64)>) -> String {
    match steps {
        None => "no steps".into(),
        Some((first, last)) if first == last => format!("step {first}"),
        Some((first, last)) => format!("steps {first} to {last}"),
    }
}

/// What lies between steps, which are sorted.
fn gaps(steps: &[u64]) -> Vec<(u64, u64)> {
    let gaps = steps.windows(2).filter(|pair| pair[0] + 1 < pair[1]);
    gaps.map(|pair| (pair[0] + 1, pair[1] - 1)).collect()
}

/// Of a fault that is one of a whole part: between which positions it lies.
fn place(recording: &Recording, fault: &Fault) -> String {
    if fault.record.is_some() {
        return String::new();
    }
    let part = recording.read(fault.part..fault.part + 1).next();
    let Some(Ok((_, batches))) = part else { return String::new() };
    let ranges = ranges(&batches);
    let named = ranges.iter().take(NAMED_PARTITIONS);
    let named = named.map(|(partition, (first, last))| match first == last {
        true => format!("{partition} offset {first}"),
        false => format!("{partition} offsets {first} to {last}"),
    });
    let mut named: Vec<String> = named.collect();
    if ranges.len() > NAMED_PARTITIONS {
        let more = (ranges.len() - NAMED_PARTITIONS) as u64;
        named.push(format!("{} more", counted(more, "partition")));
    }
    let named = named.join(", ");
    match out_of_order(&batches) {
        _ if named.is_empty() => String::new(),
        None => format!(" (they are {named})"),
        Some((partition, offset)) => {
            format!(" (they are {named}; the first out of order is {partition} offset {offset})")
        }
    }
}

/// The lowest and the highest offset of each partition.
fn ranges(batches: &[Batch]) -> BTreeMap<&Partition, (u64, u64)> {
    let mut ranges: BTreeMap<&Partition, (u64, u64)> = BTreeMap::new();
    for record in batches.iter().flat_map(Batch::iter) {
        let (first, last) =
            ranges.entry(record.partition).or_insert((record.offset, record.offset));
        (*first, *last) = ((*first).min(record.offset), (*last).max(record.offset));
    }
    ranges
}

/// The first record before which one of a higher offset stands. Inputs deliver each partition in its order.
fn out_of_order(batches: &[Batch]) -> Option<(&Partition, u64)> {
    let mut next: BTreeMap<&Partition, u64> = BTreeMap::new();
    let mut records = batches.iter().flat_map(Batch::iter);
    let found = records.find(|record| {
        let next = next.entry(record.partition).or_default();
        let is_behind = record.offset < *next;
        *next = record.end_offset;
        is_behind
    });
    found.map(|record| (record.partition, record.offset))
}

/// Row groups mean nothing to a person: the first step that cannot be read.
fn unreadable_from(recording: &Recording) -> String {
    let parts = recording.parts();
    let readable = quietly(|| recording.read(0..parts.len()).take_while(Result::is_ok).count());
    match readable {
        Ok(readable) if readable < parts.len() => match parts[readable].step {
            Some(step) => format!("; the first step in it is {step}"),
            None => format!("; the first part in it is {readable}"),
        },
        _ => String::new(),
    }
}

/// Damaged bytes may make the decoder panic, which is caught where it is called and told as damage; this keeps the
/// panic itself from being printed, and tells of one that was not caught.
fn quietly<T>(look: impl FnOnce() -> T) -> Result<T, Failed> {
    let hook = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let seen = panic::catch_unwind(AssertUnwindSafe(look));
    panic::set_hook(hook);
    seen.map_err(|_| Failed::new(Code::Bug, "looking at a damaged recording failed; this is a bug"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_in_words() {
        let spans = [None, Some((3, 3)), Some((3, 9))].map(span);
        assert_eq!(spans, ["no steps", "step 3", "steps 3 to 9"]);
        assert_eq!(gaps(&[1, 1, 2, 3, 5, 9]), [(4, 4), (6, 8)]);
        assert_eq!(gaps(&[]), []);
    }
}
