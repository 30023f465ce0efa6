//! `lockgate inspect`: what a state directory holds.

use std::fmt::Write;
use std::path::Path;

use lockgate_controller::{Inspection, State};
use serde_json::{Value as JsonValue, json};

use super::print;
use crate::exit::Failed;

pub(crate) fn inspect(state_dir: &Path, as_json: bool) -> Result<(), Failed> {
    let inspection = State::inspect(state_dir)?;
    print(&if as_json { format!("{:#}\n", to_json(&inspection)) } else { to_text(&inspection) })
}

fn to_text(inspection: &Inspection) -> String {
    let mut text = format!("pipeline    {}\n", inspection.pipeline);
    // Writing to a string does not fail.
    let _ = match &inspection.checkpoint {
        None => writeln!(text, "checkpoint  none yet"),
        Some(checkpoint) => {
            let circuit = checkpoint.circuit.len();
            writeln!(
                text,
                "checkpoint  step {}, stored {}, circuit state {circuit} bytes",
                checkpoint.step,
                utc(checkpoint.stored_at_ms)
            )
            .and_then(|()| {
                checkpoint.inputs.iter().try_for_each(|(name, seek)| {
                    let beginning = JsonValue::from("the beginning");
                    writeln!(text, "  input   {name}: {}", seek.as_ref().unwrap_or(&beginning))
                })
            })
            .and_then(|()| {
                (checkpoint.outputs.iter())
                    .try_for_each(|(name, position)| writeln!(text, "  output  {name}: {position}"))
            })
        }
    };
    let _ = match (inspection.journal.first(), inspection.journal.last()) {
        (Some((first, _)), Some((last, _))) => {
            writeln!(text, "journal     steps {first} to {last}")
        }
        _ => writeln!(text, "journal     empty"),
    };
    for (step, parts) in &inspection.journal {
        for (input, part) in parts {
            let (records, hash) = (part.digest.records, part.digest.hash);
            let seek = &part.seek;
            let _ = writeln!(
                text,
                "  step {step}  {input}: {records} records, hash {hash:016x}, then at {seek}"
            );
        }
    }
    text
}

fn to_json(inspection: &Inspection) -> JsonValue {
    let checkpoint = inspection.checkpoint.as_ref().map(|checkpoint| {
        json!({
            "step": checkpoint.step,
            "stored_at": utc(checkpoint.stored_at_ms),
            "circuit_bytes": checkpoint.circuit.len(),
            "inputs": checkpoint.inputs,
            "outputs": checkpoint.outputs,
        })
    });
    let part = |(input, part): &(String, lockgate_controller::JournalPart)| {
        json!({
            "input": input,
            "records": part.digest.records,
            "hash": format!("{:016x}", part.digest.hash),
            "seek": part.seek,
        })
    };
    let journal: Vec<_> = (inspection.journal.iter())
        .map(|(step, parts)| json!({ "step": step, "parts": parts.iter().map(part).collect::<Vec<_>>() }))
        .collect();
    json!({ "pipeline": inspection.pipeline, "checkpoint": checkpoint, "journal": journal })
}

/// Milliseconds since the Unix epoch as date and time in UTC.
fn utc(ms: u64) -> String {
    let (days, second) = (ms / 86_400_000, ms / 1000 % 86_400);
    // Civil date from days: eras of 400 years that begin in March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
