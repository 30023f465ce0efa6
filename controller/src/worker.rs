//! The thread that owns the circuit and the outputs, and works on steps in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use lockgate_core::{
    Batch, Circuit, EndpointError, InputPosition, Part, PartDigest, Step, StepOutput, count,
};
use serde_json::Value as JsonValue;
use tokio::sync::mpsc::UnboundedSender;

use crate::alarm::Alarm;
use crate::pipeline::NamedOutput;
use crate::recorder::Recorder;
use crate::sequence::{Event, Failure};
use crate::space::SpaceWait;
use crate::tap::Taps;

enum Work {
    Step(Step),
    Write { step: u64 },
    Finish,
    Prepare,
    Complete,
}

/// What an output has taken, readable from any thread.
#[derive(Debug, Default)]
pub(crate) struct Written {
    pub(crate) records: AtomicU64,
    pub(crate) bytes: AtomicU64,
}

/// The thread; it ends when this is dropped.
pub(crate) struct Worker {
    work: Option<Sender<Work>>,
    thread: Option<JoinHandle<()>>,
    /// Calls off waiting for space when dropped.
    patience: Option<Sender<()>>,
    written: Vec<Arc<Written>>,
}

impl Worker {
    pub(crate) fn start(
        circuit: Box<dyn Circuit>,
        outputs: Vec<NamedOutput>,
        recorder: Option<Box<dyn Recorder>>,
        hashes: bool,
        taps: Arc<Taps>,
        events: UnboundedSender<Event>,
    ) -> Result<Self, std::io::Error> {
        let (work, receiver) = channel();
        let (patience, called_off) = channel();
        let written: Vec<_> = outputs.iter().map(|_| Arc::default()).collect();
        let station = Station {
            names: outputs.iter().map(|output| output.name.clone()).collect(),
            circuit,
            outputs,
            written: written.clone(),
            stepped: VecDeque::new(),
            last_step: 0,
            hashes,
            recorder,
            taps,
            space: SpaceWait { events, called_off },
        };
        let thread = std::thread::Builder::new()
            .name("lockgate-worker".into())
            .spawn(move || station.run(&receiver))?;
        Ok(Self { work: Some(work), thread: Some(thread), patience: Some(patience), written })
    }

    /// What each output has taken, in their order.
    pub(crate) fn written(&self) -> &[Arc<Written>] {
        &self.written
    }

    pub(crate) fn step(&self, step: Step) {
        self.send(Work::Step(step));
    }

    pub(crate) fn write(&self, step: u64) {
        self.send(Work::Write { step });
    }

    pub(crate) fn finish(&self) {
        self.send(Work::Finish);
    }

    pub(crate) fn prepare(&self) {
        self.send(Work::Prepare);
    }

    pub(crate) fn complete(&self) {
        self.send(Work::Complete);
    }

    fn send(&self, work: Work) {
        // If the thread is gone it has said why; that event ends the run.
        let _ = self.work.as_ref().map(|sender| sender.send(work));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.patience = None;
        self.work = None;
        if let Some(thread) = self.thread.take() {
            // A panic has set off the alarm.
            let _ = thread.join();
        }
    }
}

/// What the circuit made of a step.
struct Stepped {
    step: u64,
    positions: Vec<InputPosition>,
    /// By output.
    batches: Vec<Vec<Batch>>,
    /// What is to be recorded of it.
    recorded: Option<(Step, Vec<PartDigest>)>,
}

struct Station {
    circuit: Box<dyn Circuit>,
    names: Vec<String>,
    outputs: Vec<NamedOutput>,
    written: Vec<Arc<Written>>,
    /// Steps that are not written yet.
    stepped: VecDeque<Stepped>,
    last_step: u64,
    /// Whether steps are journaled, which takes their hashes.
    hashes: bool,
    recorder: Option<Box<dyn Recorder>>,
    taps: Arc<Taps>,
    space: SpaceWait,
}

impl Station {
    fn run(mut self, work: &Receiver<Work>) {
        let alarm = Alarm::set("the circuit or an output", self.space.events.clone());
        for work in work {
            let done = match work {
                Work::Step(step) => {
                    let _step = tracing::debug_span!("step", number = step.number).entered();
                    self.step(step)
                }
                Work::Write { step } => {
                    let _step = tracing::debug_span!("step", number = step).entered();
                    self.write(step)
                }
                Work::Finish => {
                    self.each_output(|output| output.output.finish()).map(|()| Event::Finished)
                }
                Work::Prepare => self.prepare(),
                Work::Complete => self
                    .each_output(|output| output.output.checkpointed())
                    .map(|()| Event::Completed),
            };
            let failed = done.is_err();
            let event = done.unwrap_or_else(|failure| Event::Broken { failure });
            if self.space.events.send(event).is_err() || failed {
                break;
            }
        }
        alarm.off();
    }

    fn step(&mut self, step: Step) -> Result<Event, Failure> {
        let is_recorded = self.recorder.is_some();
        let mut recorded = None;
        if self.hashes || is_recorded {
            let digests: Vec<_> =
                step.parts.iter().map(|part| PartDigest::of(&part.batches)).collect();
            recorded = is_recorded.then(|| (step.clone(), digests.clone()));
            if self.hashes {
                // First, so that the journal works while the circuit does.
                let _ = self.space.events.send(Event::Hashed { step: step.number, digests });
            }
        }
        self.taps.parts(step.number, &step.parts);
        let mut output = StepOutput::new(&self.names);
        let number = step.number;
        let done = self.circuit.step(&step, &mut output);
        done.map_err(|error| Failure::Circuit { step: number, error })?;
        self.last_step = number;
        let batches = output.into_batches();
        let position = |part: Part| InputPosition { input: part.input, seek: part.seek };
        let positions = step.parts.into_iter().map(position).collect();
        self.stepped.push_back(Stepped { step: number, positions, batches, recorded });
        Ok(Event::Stepped { step: number })
    }

    fn write(&mut self, step: u64) -> Result<Event, Failure> {
        let next = self.stepped.pop_front();
        let Some(Stepped { positions, batches, recorded, .. }) =
            next.filter(|next| next.step == step)
        else {
            return Err(Failure::Bug(format!(
                "step {step} is to be written before it is worked on"
            )));
        };
        if let (Some(recorder), Some((step, digests))) = (&mut self.recorder, recorded) {
            recorder.record(&step, &digests).map_err(recording_failed)?;
        }
        let (written, taps) = (self.written.clone(), self.taps.clone());
        let mut given = batches.iter().zip(&written).enumerate();
        self.each_output_once(|space, output| {
            let Some((place, (batches, written))) = given.next() else { return Ok(()) };
            output.output.positions(step, &positions);
            space.until_space(is_full, || output.output.write(step, batches))?;
            let bytes = batches.iter().map(Batch::bytes).sum();
            written.records.fetch_add(count(batches), Ordering::Relaxed);
            written.bytes.fetch_add(bytes, Ordering::Relaxed);
            taps.output(place, step, batches);
            Ok(())
        })?;
        Ok(Event::Written { step })
    }

    fn prepare(&mut self) -> Result<Event, Failure> {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush().map_err(recording_failed)?;
        }
        let circuit = self.circuit.checkpoint();
        let step = self.last_step;
        let circuit = circuit.map_err(|error| Failure::Circuit { step, error })?;
        let mut positions: Vec<JsonValue> = Vec::with_capacity(self.outputs.len());
        self.each_output(|output| {
            output.output.prepare().map(|position| positions.push(position))
        })?;
        Ok(Event::Prepared { circuit, positions })
    }

    /// Does `work` with every output in turn, again where a disk is full.
    fn each_output(
        &mut self,
        mut work: impl FnMut(&mut NamedOutput) -> Result<(), EndpointError>,
    ) -> Result<(), Failure> {
        self.each_output_once(|space, output| space.until_space(is_full, || work(output)))
    }

    fn each_output_once(
        &mut self,
        mut work: impl FnMut(&SpaceWait, &mut NamedOutput) -> Result<(), EndpointError>,
    ) -> Result<(), Failure> {
        for output in &mut self.outputs {
            work(&self.space, output)
                .map_err(|error| Failure::Output { output: output.name.clone(), error })?;
        }
        Ok(())
    }
}

fn recording_failed(error: EndpointError) -> Failure {
    Failure::Output { output: "of the recording".into(), error }
}

fn is_full(error: &EndpointError) -> bool {
    matches!(error, EndpointError::StorageFull { .. })
}
