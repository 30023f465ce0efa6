//! `lockgate replay`.
//!
//! The recorded steps take the place of a journal, so that they are run and compared as after a crash.

use std::collections::BTreeMap;
use std::path::Path;

use lockgate_controller::{Controller, JournalPart, JournaledStep, Script};
use lockgate_core::{Batch, PartDigest, Partition};
use lockgate_file_adapter::recording::RecordingError;
use lockgate_file_adapter::tape::{Speed, Tape, TapeInput, pieces};
use serde_json::{Value as JsonValue, json};

use crate::args::Replay;
use crate::compose::compose_replay;
use crate::envelope;
use crate::exit::{Code, Failed};
use crate::log::Log;
use crate::operate::{Open, Operation, operate};
use crate::pipeline::{self, OutputKind, Pipeline, SEGMENT};
use crate::subject::Subject;
use crate::terminal::Terminal;

pub(crate) fn replay(args: &Replay) -> Result<(), Failed> {
    if !envelope::is_named(&args.recording) {
        return replay_recording(args);
    }
    let folder = tempfile::tempdir();
    let folder = folder.map_err(|error| Failed::storage("making a temporary directory", &error))?;
    let recording = folder.path().join("recording.parquet");
    envelope::to_recording(&args.recording, &recording)?;
    replay_recording(&Replay { recording, ..args.clone() })
}

fn replay_recording(args: &Replay) -> Result<(), Failed> {
    let pipeline = match (&args.pipeline, &args.to_kafka) {
        (Some(path), _) => pipeline::load(path)?,
        (None, brokers) => to_kafka(args, brokers.as_deref().unwrap_or_default())?,
    };
    let tapes = tapes(args, &pipeline)?;
    refuse_leftovers(&pipeline)?;
    let only = args.only.as_deref().map(partition);
    let steps = Steps::of(&tapes, args, only.as_ref())?;
    let open = || {
        for (input, tape) in pipeline.inputs.iter().zip(&tapes) {
            if tape.as_ref().is_some_and(|tape| !tape.complete()) {
                tracing::warn!(
                    input = input.name,
                    "the recording was cut short; it is replayed as far as it goes"
                );
            }
        }
        let endpoint = |tape: &Option<Tape>| {
            let mut endpoint = TapeInput::scripted(tape.clone().unwrap_or_default());
            if let Some(only) = only.clone() {
                endpoint = endpoint.only(only);
            }
            if let Some(factor) = args.speed {
                endpoint = endpoint.paced(Speed(factor));
            }
            endpoint
        };
        let composed = compose_replay(&pipeline, tapes.iter().map(endpoint).collect())?;
        let script = steps.script();
        Ok(Box::new(move || Controller::open_script(composed, script)) as Open)
    };
    let terminal = Terminal::start();
    Log::start(&terminal, &pipeline.log)?;
    operate(Operation {
        pipeline: &pipeline.name,
        terminal: &terminal,
        compose: &open,
        control: None,
    })
}

/// A pipeline from the recording into topics.
fn to_kafka(args: &Replay, brokers: &str) -> Result<Pipeline, Failed> {
    let mut names: Vec<String> = Vec::new();
    if args.recording.is_dir() {
        names.extend(pieces(&args.recording)?.into_keys());
    }
    if names.is_empty() {
        names.push(args.input.clone().unwrap_or_else(|| "recording".into()));
    }
    // Tapes take the places of the inputs, so it does not matter what they are.
    let input = |name: String| (name, json!({"recording": {"path": "recording"}}));
    let inputs: serde_json::Map<_, _> = names.into_iter().map(input).collect();
    let topic = args.topic.as_ref().map_or(json!({"from": "source"}), |topic| json!(topic));
    let output = json!({
        "brokers": brokers, "topic": topic, "partition": "kept", "exactly_once": false,
    });
    let pipeline = json!({
        "name": "replay",
        "delivery": "at_least_once",
        "inputs": inputs,
        "outputs": {"topics": {"kafka": output}},
    });
    Ok(pipeline::parse(&pipeline.to_string(), Path::new("--to-kafka"), &|_| None)?)
}

/// What is recorded of each input, in the pipeline's order.
fn tapes(args: &Replay, pipeline: &Pipeline) -> Result<Vec<Option<Tape>>, Failed> {
    let path = &args.recording;
    let names: Vec<&str> = pipeline.inputs.iter().map(|input| input.name.as_str()).collect();
    let wrong = |message: String| Failed::new(Code::Usage, message);
    if let Some(input) = &args.input
        && !names.contains(&input.as_str())
    {
        let known = names.join(", ");
        return Err(wrong(format!("--input {input}: the pipeline's inputs are {known}")));
    }
    let mut found: BTreeMap<String, Tape> = BTreeMap::new();
    if path.is_dir() {
        found = Subject::of(path)?.tapes(None)?;
        if let Some(input) = &args.input {
            found.retain(|name, _| name == input);
        }
        let shown = path.display();
        if let Some(strange) = found.keys().find(|name| !names.contains(&name.as_str())) {
            let known = names.join(", ");
            let message = format!(
                "{shown} has a recording of the input {strange}, and the pipeline's inputs are {known}: replay it with \
                 its own pipeline, or name one input by --input"
            );
            return Err(wrong(message));
        }
        if found.is_empty() {
            return Err(wrong(format!("{shown} has no recordings of {}", names.join(", "))));
        }
    } else {
        let name = match (&args.input, &names[..]) {
            (Some(input), _) => input.clone(),
            (None, [only]) => (*only).to_owned(),
            (None, _) => {
                let message = format!(
                    "say by --input which of {} was recorded in {}",
                    names.join(", "),
                    path.display()
                );
                return Err(wrong(message));
            }
        };
        found.insert(name, Tape::find(path, None)?);
    }
    Ok(names.iter().map(|name| found.remove(*name)).collect())
}

/// What is in an output is to come from the replay alone.
fn refuse_leftovers(pipeline: &Pipeline) -> Result<(), Failed> {
    for output in &pipeline.outputs {
        let OutputKind::File(file) = &output.kind else { continue };
        let path = file.path.to_string_lossy().replace(SEGMENT, "000001");
        if std::fs::metadata(&path).is_ok_and(|found| found.len() > 0) {
            let message = format!(
                "output {}: {path} has something in it already; remove it, or name another file, so that everything \
                 in it comes from this replay",
                output.name
            );
            return Err(Failed::new(Code::Configuration, message));
        }
    }
    Ok(())
}

/// `TOPIC[N]`, or all of it as a name.
pub(super) fn partition(text: &str) -> Partition {
    let numbered = text.strip_suffix(']').and_then(|text| text.rsplit_once('['));
    let numbered = numbered.and_then(|(source, number)| Some((source, number.parse().ok()?)));
    match numbered {
        Some((source, number)) => Partition { source: source.into(), number: Some(number) },
        None => Partition { source: text.into(), number: None },
    }
}

/// The steps to replay: of each the parts, by input and their number on its tape.
struct Steps {
    after: u64,
    steps: Vec<JournaledStep>,
}

impl Steps {
    fn of(tapes: &[Option<Tape>], args: &Replay, only: Option<&Partition>) -> Result<Self, Failed> {
        let range = args.from_step.unwrap_or(0)..=args.to_step.unwrap_or(u64::MAX);
        let mut steps: BTreeMap<u64, Vec<JournalPart>> = BTreeMap::new();
        for (input, tape) in tapes.iter().enumerate() {
            let Some(tape) = tape else { continue };
            let digests = only.map(|only| digests(tape, only)).transpose()?;
            for (number, part) in tape.parts().iter().enumerate() {
                let step = part.step.unwrap_or(number as u64 + 1);
                if !range.contains(&step) {
                    continue;
                }
                let digest = digests.as_ref().map_or(part.digest, |digests| digests[number]);
                let (seek, replay) = (JsonValue::Null.into(), TapeInput::replay_of(number));
                steps.entry(step).or_default().push(JournalPart { input, seek, replay, digest });
            }
        }
        let Some(first) = steps.keys().next().copied() else {
            if args.from_step.is_none() && args.to_step.is_none() {
                return Ok(Self { after: 0, steps: Vec::new() });
            }
            return Err(Failed::new(Code::Data, "none of the wanted steps was recorded"));
        };
        let mut all = Vec::with_capacity(steps.len());
        let is_whole = tapes.iter().all(Option::is_some);
        for (number, parts) in steps {
            let next = first + all.len() as u64;
            if is_whole && number > next {
                let message =
                    format!("the steps {next} to {} are missing from the recording", number - 1);
                return Err(Failed::new(Code::Data, message));
            }
            // Of steps in between other inputs gave all, and those are not recorded here.
            let empty = |step| JournaledStep { step, parts: Vec::new() };
            all.extend((next..number).map(empty));
            all.push(JournaledStep { step: number, parts });
        }
        Ok(Self { after: first.saturating_sub(1), steps: all })
    }

    fn script(&self) -> Script {
        let steps = Box::new(self.steps.clone().into_iter());
        Script { seeks: Vec::new(), stops: false, after: self.after, steps }
    }
}

/// The digests of the parts with the records of one partition only.
fn digests(tape: &Tape, only: &Partition) -> Result<Vec<PartDigest>, RecordingError> {
    let digest = |part: Result<(usize, Vec<Batch>), RecordingError>| {
        let (_, mut batches) = part?;
        batches.retain(|batch| **batch.partition() == *only);
        Ok(PartDigest::of(&batches))
    };
    tape.read(0).map(digest).collect()
}
