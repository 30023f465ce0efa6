//! Records the journaled steps of a state directory, which nobody has to give again later.

use std::path::Path;

use lockgate_controller::{
    Controller, JournalPart, JournaledStep, NamedPart, NamedStep, Script, State,
};

use crate::compose::compose_reading;
use crate::exit::{Code, Failed};
use crate::log::Log;
use crate::operate::{Open, Operation, operate};
use crate::pipeline::{self, LogSettings, Pipeline};
use crate::recorder::DirectoryRecorder;
use crate::terminal::Terminal;

pub(super) fn record(state_dir: &Path, pipeline: &Path, out: &Path) -> Result<(), Failed> {
    let pipeline = pipeline::load(pipeline)?;
    let inspection = State::inspect(state_dir)?;
    if inspection.pipeline != pipeline.name {
        let (theirs, ours) = (&inspection.pipeline, &pipeline.name);
        let message = format!(
            "{} belongs to the pipeline {theirs}, and the pipeline file describes {ours}",
            state_dir.display()
        );
        return Err(Failed::new(Code::Configuration, message));
    }
    let after = inspection.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.step);
    let seek = |input: &str| {
        let checkpoint = inspection.checkpoint.as_ref()?;
        checkpoint.inputs.get(input).cloned().flatten()
    };
    let seeks: Vec<_> = pipeline.inputs.iter().map(|input| seek(&input.name)).collect();
    let mut steps = Vec::new();
    for NamedStep { step, parts } in inspection.journal {
        let mut parts: Vec<JournalPart> =
            parts.into_iter().map(|part| numbered(&pipeline, part)).collect::<Result<_, _>>()?;
        parts.sort_by_key(|part| part.input);
        steps.push(JournaledStep { step, parts });
    }
    if steps.is_empty() {
        let message = format!(
            "{} has no journaled steps: its last checkpoint, step {after}, covers all there were",
            state_dir.display()
        );
        return Err(Failed::new(Code::Data, message));
    }
    let open = || {
        let mut composed = compose_reading(&pipeline)?;
        composed.recorder = Some(Box::new(DirectoryRecorder::new(out, &pipeline)?));
        let steps = Box::new(steps.clone().into_iter());
        let script = Script { seeks: seeks.clone(), stops: true, after, steps };
        Ok(Box::new(move || Controller::open_script(composed, script)) as Open)
    };
    let terminal = Terminal::start();
    Log::start(&terminal, &LogSettings::default())?;
    operate(Operation {
        pipeline: &pipeline.name,
        terminal: &terminal,
        compose: &open,
        control: None,
    })
}

fn numbered(pipeline: &Pipeline, part: NamedPart) -> Result<JournalPart, Failed> {
    let NamedPart { input, seek, replay, digest } = part;
    match pipeline.inputs.iter().position(|known| known.name == input) {
        Some(input) => Ok(JournalPart { input, seek, replay, digest }),
        None => {
            let message =
                format!("the journal has steps of the input {input}, which the pipeline has not");
            Err(Failed::new(Code::Configuration, message))
        }
    }
}
