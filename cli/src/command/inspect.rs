//! `lockgate inspect`: what a state directory holds.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use lockgate_controller::{Inspection, NamedPart, NamedStep, State};
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
        (Some(first), Some(last)) => {
            writeln!(text, "journal     steps {} to {}", first.step, last.step)
        }
        _ => writeln!(text, "journal     empty"),
    };
    for NamedStep { step, parts } in &inspection.journal {
        for NamedPart { input, seek, digest, .. } in parts {
            let (records, hash) = (digest.records, digest.hash);
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
    let part = |part: &NamedPart| {
        json!({
            "input": part.input,
            "records": part.digest.records,
            "hash": format!("{:016x}", part.digest.hash),
            "seek": part.seek.json(),
            "seek_is_whole": part.seek.is_whole(),
        })
    };
    let step = |NamedStep { step, parts }: &NamedStep| json!({ "step": step, "parts": parts.iter().map(part).collect::<Vec<_>>() });
    let journal: Vec<_> = inspection.journal.iter().map(step).collect();
    json!({ "pipeline": inspection.pipeline, "checkpoint": checkpoint, "journal": journal })
}

/// Milliseconds since the Unix epoch as date and time in UTC.
fn utc(ms: u64) -> String {
    humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_millis(ms)).to_string()
}
