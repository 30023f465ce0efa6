//! The thread that owns the circuit and the outputs, and works on steps in order.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use lockgate_core::{
    Batch, Circuit, EndpointError, InputPosition, Output, Part, PartDigest, Step, StepOutput, count,
};
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tracing::Instrument;

use crate::alarm::Alarm;
use crate::host::Host;
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
    work: Option<UnboundedSender<Work>>,
    thread: Option<JoinHandle<()>>,
    /// Calls off waiting for space when dropped.
    patience: Option<Sender<()>>,
    written: Vec<Arc<Written>>,
}

impl Worker {
    pub(crate) fn start(
        host: &Arc<dyn Host>,
        circuit: Box<dyn Circuit>,
        outputs: Vec<NamedOutput>,
        recorder: Option<Box<dyn Recorder>>,
        hashes: bool,
        taps: Arc<Taps>,
        events: UnboundedSender<Event>,
    ) -> Result<Self, std::io::Error> {
        let (work, waiting) = unbounded_channel();
        let (patience, called_off) = channel(1);
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
            space: SpaceWait { events, called_off, host: host.clone() },
        };
        let thread = host.spawn("lockgate-worker", Box::pin(station.run(waiting)))?;
        Ok(Self { work: Some(work), thread, patience: Some(patience), written })
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
    async fn run(mut self, mut waiting: UnboundedReceiver<Work>) {
        let alarm = Alarm::set("the circuit or an output", self.space.events.clone());
        while let Some(work) = waiting.recv().await {
            let done = match work {
                Work::Step(step) => {
                    let _step = tracing::debug_span!("step", number = step.number).entered();
                    self.step(step)
                }
                Work::Write { step } => {
                    let span = tracing::debug_span!("step", number = step);
                    self.write(step).instrument(span).await
                }
                Work::Finish => {
                    let finished = self.each_output(|output| output.finish()).await;
                    finished.map(|_| Event::Finished)
                }
                Work::Prepare => self.prepare().await,
                Work::Complete => {
                    let completed = self.each_output(|output| output.checkpointed()).await;
                    completed.map(|_| Event::Completed)
                }
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

    async fn write(&mut self, step: u64) -> Result<Event, Failure> {
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
        let outputs = self.outputs.iter_mut().zip(&self.written).zip(&batches);
        for (place, ((output, written), batches)) in outputs.enumerate() {
            output.output.positions(step, &positions);
            let write = || output.output.write(step, batches);
            let done = self.space.until_space(is_full, write).await;
            done.map_err(|error| Failure::Output { output: output.name.clone(), error })?;
            let bytes = batches.iter().map(Batch::bytes).sum();
            written.records.fetch_add(count(batches), Ordering::Relaxed);
            written.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.taps.output(place, step, batches);
        }
        Ok(Event::Written { step })
    }

    async fn prepare(&mut self) -> Result<Event, Failure> {
        if let Some(recorder) = &mut self.recorder {
            recorder.flush().map_err(recording_failed)?;
        }
        let circuit = self.circuit.checkpoint();
        let step = self.last_step;
        let circuit = circuit.map_err(|error| Failure::Circuit { step, error })?;
        let positions = self.each_output(|output| output.prepare()).await?;
        Ok(Event::Prepared { circuit, positions })
    }

    /// Does `work` with every output in turn, again where a disk is full; gives what each of them gave.
    async fn each_output<T>(
        &mut self,
        mut work: impl FnMut(&mut dyn Output) -> Result<T, EndpointError>,
    ) -> Result<Vec<T>, Failure> {
        let mut given = Vec::with_capacity(self.outputs.len());
        for NamedOutput { name, output } in &mut self.outputs {
            let done = self.space.until_space(is_full, || work(output.as_mut())).await;
            given.push(done.map_err(|error| Failure::Output { output: name.clone(), error })?);
        }
        Ok(given)
    }
}

fn recording_failed(error: EndpointError) -> Failure {
    Failure::Output { output: "of the recording".into(), error }
}

fn is_full(error: &EndpointError) -> bool {
    matches!(error, EndpointError::StorageFull { .. })
}
