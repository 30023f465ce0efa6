//! Performs what the sequencing machine decides. It has no policy of its own.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use lockgate_core::{FaultTolerance, InputReader, InputWatch};
use serde_json::Value as JsonValue;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};

use crate::consumer::{Bounds, Consumer, PolicyCounts, Reporter, Trouble};
use crate::error::Error;
use crate::handle::{self, Desk, Handle};
use crate::host::{Host, HostFault};
use crate::journal::{Journal, Source};
use crate::pipeline::{Delivery, NamedOutput, Pipeline, Settings};
use crate::script::Script;
use crate::sequence::{
    Action, Checkpoint, Event, Notice, Outcome, Sequence, SequenceInput, SequenceSettings,
};
use crate::state::{Owner, State, StoredCheckpoint};
use crate::status::{
    CheckpointStatus, CheckpointSummary, InputStatus, OutputStatus, Phase, Status,
};
use crate::tap::Taps;
use crate::timing::Stopwatch;
use crate::tuning::{InputTuning, largest_queue_bytes};
use crate::worker::Worker;

/// How often the status is published and readers are looked at.
const HOUSEKEEPING: Duration = Duration::from_millis(100);

/// An opened pipeline, ready to run.
pub struct Controller {
    names: Vec<String>,
    sequence: Sequence,
    readers: Vec<Box<dyn InputReader>>,
    worker: Worker,
    journal: Option<Journal>,
    events: UnboundedReceiver<Event>,
    sender: UnboundedSender<Event>,
    desk: Arc<Desk>,
    taps: Arc<Taps>,
    watches: Arc<[Option<Arc<dyn InputWatch>>]>,
    bounds: Vec<Arc<Bounds>>,
    max_batch_records: usize,
    /// How many records of a partition may be pending, by input.
    pending: Vec<Option<NonZeroU32>>,
    stopwatch: Stopwatch,
    policies: Vec<Arc<PolicyCounts>>,
    reporters: Vec<Arc<Reporter>>,
    /// The positions in the checkpoint that is being stored.
    storing: Vec<Option<JsonValue>>,
    status: Status,
    published: watch::Sender<Status>,
    begun: Instant,
    clock: AwakeClock,
    host: Arc<dyn Host>,
}

/// How long a run that failed waits for readers and outputs to let go of what they hold.
const LETTING_GO: Duration = Duration::from_secs(1);

/// Time as this process has lived it: while it was stopped or the machine slept, the readers could not
/// answer either, and nobody is late for that.
struct AwakeClock {
    looked: Instant,
    awake: Duration,
}

impl AwakeClock {
    fn start() -> Self {
        Self { looked: Instant::now(), awake: Duration::ZERO }
    }

    fn now(&mut self) -> Duration {
        let looked = Instant::now();
        // The driver looks several times a second.
        self.awake += (looked - self.looked).min(10 * HOUSEKEEPING);
        self.looked = looked;
        self.awake
    }
}

impl Controller {
    /// Opens the state directory, rolls the outputs back to the last checkpoint and opens the inputs
    /// there. Nothing is read or written before [`run`](Self::run).
    ///
    /// # Errors
    /// When one of these cannot be opened or is not what the checkpoint describes.
    pub fn open(pipeline: Pipeline) -> Result<Self, Error> {
        Self::open_with(pipeline, None)
    }

    /// Opens inputs and outputs for the steps of `script` and no others. There is no state directory: the outputs
    /// begin anew, and nothing is stored.
    ///
    /// # Errors
    /// When one of these cannot be opened.
    pub fn open_script(mut pipeline: Pipeline, script: Script) -> Result<Self, Error> {
        pipeline.settings.delivery = Delivery::ExactlyOnce;
        Self::open_with(pipeline, Some(script))
    }

    fn open_with(pipeline: Pipeline, script: Option<Script>) -> Result<Self, Error> {
        let Pipeline { name, inputs, mut circuit, mut outputs, recorder, settings, host } =
            pipeline;
        let level = settings.delivery.level();
        let names: Vec<String> = inputs.iter().map(|input| input.name.clone()).collect();
        let (mut state, checkpoint) = match level {
            FaultTolerance::None => (None, None),
            _ if script.is_some() => (None, None),
            _ => {
                let (state, checkpoint) = open_state(&name, &names, &outputs, &settings)?;
                (Some(state), checkpoint)
            }
        };
        if let Some(checkpoint) = &checkpoint {
            let restored = circuit.restore(&checkpoint.circuit);
            restored.map_err(|error| Error::Circuit { step: checkpoint.step, error })?;
        }
        let after = script.as_ref().map_or(0, |script| script.after);
        let step = checkpoint.as_ref().map_or(after, |checkpoint| checkpoint.step);
        let last_step = state.as_ref().map(State::last_journaled).transpose()?.flatten();
        let paused = state.as_ref().map(State::paused_inputs).transpose()?.unwrap_or_default();
        let reporters = report(&mut outputs, last_step.unwrap_or(step).max(step));
        let positions = recover_outputs(&mut outputs, checkpoint.as_ref())?;

        let (sender, events) = unbounded_channel();
        let (mut readers, mut policies, mut sequence_inputs) = (Vec::new(), Vec::new(), Vec::new());
        let (mut bounds, mut watches) = (Vec::new(), Vec::new());
        let max_batch_records = settings.tuning.max_batch_records;
        for (number, input) in inputs.into_iter().enumerate() {
            let counts = Arc::<PolicyCounts>::default();
            let bound = Arc::new(Bounds::new(max_batch_records, input.tuning.limits));
            let consumer = Consumer {
                input: number,
                bounds: bound.clone(),
                policies: counts.clone(),
                events: sender.clone(),
            };
            let stored =
                checkpoint.as_ref().and_then(|checkpoint| checkpoint.inputs.get(&input.name));
            let scripted = script.as_ref().and_then(|script| script.seeks.get(number));
            let stored = stored.or(scripted).cloned().flatten();
            if input.endpoint.fault_tolerance() < level {
                let text = format!(
                    "its source keeps {:?} at most, but the pipeline's delivery needs {level:?}",
                    input.endpoint.fault_tolerance()
                );
                let error = lockgate_core::EndpointError::Configuration(text);
                return Err(Error::Input { input: input.name, error });
            }
            // What the reader logs, also on threads of its own, is about this input.
            let span = tracing::info_span!("input", name = input.name).entered();
            let reader = input.endpoint.open(level, Arc::new(consumer), stored.clone());
            drop(span);
            let reader =
                reader.map_err(|error| Error::Input { input: input.name.clone(), error })?;
            let seek = stored.or_else(|| reader.start());
            let is_paused = paused.contains(&input.name);
            if is_paused {
                tracing::info!(input = input.name, "paused, as it was before");
            }
            sequence_inputs.push(SequenceInput {
                name: input.name,
                tuning: input.tuning,
                seek,
                paused: is_paused,
                start_after: input.start_after,
            });
            watches.push(reader.watch());
            bounds.push(bound);
            readers.push(reader);
            policies.push(counts);
        }

        let mut stored = checkpoint.as_ref().map(|checkpoint| CheckpointSummary {
            step: checkpoint.step,
            stored_at: UNIX_EPOCH + Duration::from_millis(checkpoint.stored_at_ms),
            took: None,
            bytes: None,
        });
        if let Some(state) = &mut state
            && state.is_unsettled()?
        {
            let circuit = circuit.checkpoint();
            let circuit = circuit.map_err(|error| Error::Circuit { step, error })?;
            let seeks = sequence_inputs.iter().map(|input| input.seek.clone()).collect();
            let now = host.wall_clock().duration_since(UNIX_EPOCH).unwrap_or_default();
            let first = Checkpoint { step, circuit, seeks, positions };
            let bytes = state.store(&first, now.as_millis() as u64)?;
            let stored_at = UNIX_EPOCH + now;
            stored = Some(CheckpointSummary { step, stored_at, took: None, bytes: Some(bytes) });
        }
        let journaled = state.as_ref().map(State::journal_size).transpose()?.unwrap_or_default();

        let spawn =
            |error: std::io::Error| Error::Bug(format!("a thread cannot be started: {error}"));
        let input_status = |input: &SequenceInput| InputStatus {
            name: input.name.clone(),
            limits: input.tuning.limits,
            ..InputStatus::default()
        };
        let status = Status {
            steps_to_replay: journaled.steps,
            checkpoint: CheckpointStatus::new(stored),
            inputs: sequence_inputs.iter().map(input_status).collect(),
            outputs: (outputs.iter())
                .map(|output| OutputStatus { name: output.name.clone(), ..OutputStatus::default() })
                .collect(),
            ..Status::default()
        };
        let taps = Arc::<Taps>::default();
        let worker = Worker::start(
            &host,
            circuit,
            outputs,
            recorder,
            level == FaultTolerance::ExactlyOnce,
            taps.clone(),
            sender.clone(),
        )
        .map_err(spawn)?;
        let state = match (state, host.fault()) {
            (Some(state), Some(HostFault::State(fault))) => Some(state.with_fault(fault)),
            (state, _) => state,
        };
        let source = state.map(Source::State).or(script.map(Source::Script));
        let journal = source.map(|source| Journal::start(&host, source, journaled, sender.clone()));
        let journal = journal.transpose();
        let journal = journal.map_err(spawn)?;
        let settings = SequenceSettings {
            level,
            tuning: settings.tuning,
            max_bytes_in_flight: largest_queue_bytes(
                sequence_inputs.iter().map(|input| &input.tuning),
            ),
        };
        let stopwatch = Stopwatch::new(sequence_inputs.len());
        let pending = sequence_inputs.iter().map(|input| input.tuning.max_pending_records);
        let pending = pending.collect();
        let mut sequence = Sequence::new(settings, sequence_inputs, step, Duration::ZERO);
        if let Some(HostFault::Sequence(fault)) = host.fault() {
            sequence = sequence.with_fault(fault);
        }
        let (published, _) = watch::channel(status.clone());
        let begun = Instant::now();
        Ok(Self {
            names,
            sequence,
            readers,
            worker,
            journal,
            events,
            sender,
            desk: Arc::default(),
            taps,
            watches: watches.into(),
            bounds,
            max_batch_records,
            pending,
            stopwatch,
            policies,
            reporters,
            storing: Vec::new(),
            status,
            published,
            begun,
            clock: AwakeClock::start(),
            host,
        })
    }

    /// A handle to steer the run and look at it.
    pub fn handle(&self) -> Handle {
        Handle::new(handle::Parts {
            events: self.sender.clone(),
            desk: self.desk.clone(),
            status: self.published.subscribe(),
            watches: self.watches.clone(),
            taps: self.taps.clone(),
            has_state: self.journal.is_some(),
        })
    }

    /// Runs until all input has ended, somebody stops it, or something fails.
    ///
    /// # Errors
    /// When the run did not end well. Whatever the error, the next start goes on from the last
    /// checkpoint without losing or doubling anything.
    pub async fn run(mut self) -> Result<Status, Error> {
        let outcome = self.drive().await;
        self.publish(Phase::Ended);
        self.desk.close();
        self.taps.close();
        let Controller { readers, worker, journal, status, names, host, .. } = self;
        match outcome {
            Outcome::Completed | Outcome::Stopped => drop((readers, worker)),
            // What did not answer may not let go either.
            Outcome::StoppedLate | Outcome::Failed(_) => {
                let (let_go, waiting) = oneshot::channel();
                let letting_go = async move {
                    drop((readers, worker));
                    let _ = let_go.send(());
                };
                if host.spawn("lockgate-end", Box::pin(letting_go)).is_ok() {
                    let _ = timeout(LETTING_GO, waiting).await;
                }
            }
        }
        // Releases the state directory.
        drop(journal);
        match outcome {
            Outcome::Completed | Outcome::Stopped => Ok(status),
            Outcome::StoppedLate => {
                Err(Error::StoppedLate { checkpoint: status.checkpointed_step })
            }
            Outcome::Failed(failure) => Err(Error::named(failure, &names)),
        }
    }

    async fn drive(&mut self) -> Outcome {
        let mut housekeeping = Duration::ZERO;
        loop {
            while let Some(action) = self.sequence.next_action() {
                if let Some(outcome) = self.perform(action) {
                    return outcome;
                }
            }
            let now = self.clock.now();
            if now >= housekeeping {
                housekeeping = now + HOUSEKEEPING;
                self.look_after_readers();
                self.publish_now();
                continue;
            }
            let deadline =
                self.sequence.next_deadline().map_or(housekeeping, |at| at.min(housekeeping));
            let event = match timeout(deadline.saturating_sub(now), self.events.recv()).await {
                Ok(Some(event)) => event,
                Ok(None) | Err(_) => Event::Tick,
            };
            self.take_in(event);
        }
    }

    fn take_in(&mut self, event: Event) {
        let now = self.clock.now();
        let is_replaying = self.sequence.is_replaying();
        self.stopwatch.happened(now, &event, is_replaying, &mut self.status);
        if let Event::ReloadRequested { reload, .. } = &event {
            // The machine says so to each reader.
            self.max_batch_records = reload.tuning.max_batch_records;
        }
        self.sequence.handle(now, event);
        if is_replaying && !self.sequence.is_replaying() {
            self.publish_now();
        }
    }

    fn perform(&mut self, action: Action) -> Option<Outcome> {
        tracing::trace!(?action);
        self.stopwatch.doing(self.clock.now(), &action, &mut self.status);
        match action {
            Action::Send { input, command } => self.readers[input].request(command),
            Action::LoadJournal { after } => self.with_journal(|journal| journal.load(after)),
            Action::Journal(step) => self.with_journal(|journal| journal.append(step)),
            Action::Step(step) => {
                self.status.steps += 1;
                self.status.replayed_steps += u64::from(self.sequence.is_replaying());
                for part in &step.parts {
                    let input = &mut self.status.inputs[part.input];
                    for batch in &part.batches {
                        input.records += batch.len() as u64;
                        input.bytes += batch.bytes();
                    }
                }
                self.worker.step(step);
            }
            Action::Write { step } => self.worker.write(step),
            Action::Finish => self.worker.finish(),
            Action::Prepare => self.worker.prepare(),
            Action::Store(checkpoint) => match &self.journal {
                Some(journal) => {
                    self.storing.clone_from(&checkpoint.seeks);
                    journal.store(checkpoint);
                }
                // Without a promise there is nothing to store.
                None => {
                    let _ = self.sender.send(Event::Stored);
                }
            },
            Action::Complete => self.worker.complete(),
            Action::LimitBatch { input, records } => {
                let records = usize::try_from(records).unwrap_or(usize::MAX);
                self.bounds[input].set_batch(records.min(self.max_batch_records));
            }
            Action::Reload { inputs } => self.reload(&inputs),
            Action::KeepPauses { inputs, ticket } => match &self.journal {
                Some(journal) => journal.keep_paused(inputs, ticket),
                None => {
                    let _ = self.sender.send(Event::PausesKept { ticket });
                }
            },
            Action::Answer { ticket, answer } => {
                // Whoever is answered sees it, too.
                self.publish_now();
                self.desk.answer(ticket, answer);
            }
            Action::Notify(notice) => {
                let is_rare = !matches!(notice, Notice::Checkpointed { .. });
                self.tell(notice);
                if is_rare {
                    self.publish_now();
                }
            }
            Action::Done(outcome) => return Some(outcome),
        }
        None
    }

    fn reload(&mut self, inputs: &[InputTuning]) {
        for (number, tuning) in inputs.iter().enumerate() {
            self.bounds[number].set_limits(tuning.limits);
            self.status.inputs[number].limits = tuning.limits;
            let before = std::mem::replace(&mut self.pending[number], tuning.max_pending_records);
            if let Some(max_pending_records) = tuning.max_pending_records
                && before != tuning.max_pending_records
            {
                self.readers[number].reload(max_pending_records);
            }
        }
        self.status.reloads += 1;
        tracing::info!("changed settings are in force");
    }

    fn with_journal(&self, work: impl FnOnce(&Journal)) {
        if let Some(journal) = &self.journal {
            work(journal);
        }
    }

    fn look_after_readers(&mut self) {
        for input in 0..self.readers.len() {
            if self.readers[input].is_closed() {
                self.take_waiting_events();
                self.take_in(Event::InputClosed { input });
            }
        }
    }

    /// What a reader reported before it closed must be known before its end is judged.
    fn take_waiting_events(&mut self) {
        while let Ok(event) = self.events.try_recv() {
            self.take_in(event);
        }
    }

    fn tell(&mut self, notice: Notice) {
        let name = |input: usize| self.names[input].as_str();
        match notice {
            Notice::Replayed { steps } => tracing::info!(steps, "replayed the journal"),
            Notice::Stalled { input, silent } => {
                tracing::warn!(
                    input = name(input),
                    silent_s = silent.as_secs(),
                    "the reader is stalled"
                );
            }
            Notice::Answered { input } => {
                tracing::info!(input = name(input), "the stalled reader has answered");
            }
            Notice::InputError { input, kind, text } => {
                tracing::warn!(input = name(input), kind, "{text}");
                let input = &mut self.status.inputs[input];
                *input.errors.entry(kind).or_default() += 1;
                input.last_error = Some(text);
            }
            Notice::Checkpointed { step, took } => {
                self.status.checkpoints += 1;
                if let Some(journal) = &self.journal {
                    self.status.checkpoint.stored(CheckpointSummary {
                        step,
                        stored_at: self.host.wall_clock(),
                        took: Some(took),
                        bytes: Some(journal.kept().checkpoint_bytes()),
                    });
                }
                for (reader, seek) in self.readers.iter().zip(self.storing.drain(..)) {
                    if let Some(seek) = seek {
                        reader.checkpointed(&seek);
                    }
                }
                tracing::debug!(step, "checkpoint");
            }
            Notice::Blocked { reason } => {
                tracing::warn!("inputs are paused until there is space: {reason}");
                self.status.blocked = Some(reason);
            }
            Notice::Unblocked => {
                tracing::info!("there is space again");
                self.status.blocked = None;
            }
        }
    }

    fn publish_now(&mut self) {
        let stopping = self.sequence.is_stopping();
        self.publish(if stopping { Phase::Stopping } else { Phase::Running });
    }

    fn publish(&mut self, phase: Phase) {
        let status = &mut self.status;
        let replaying = self.sequence.is_replaying() && phase != Phase::Ended;
        status.phase = if replaying { Phase::Replaying } else { phase };
        status.step = self.sequence.last_step();
        status.checkpointed_step = self.sequence.checkpointed_step();
        let elapsed = self.begun.elapsed();
        let since_last = elapsed.saturating_sub(status.elapsed);
        status.elapsed = elapsed;
        status.steps_in_flight = self.sequence.steps_in_flight();
        status.checkpoint.stage = self.sequence.checkpoint_stage();
        status.reloading = self.sequence.is_reloading();
        status.journal =
            self.journal.as_ref().map(|journal| journal.kept().journal()).unwrap_or_default();
        for (number, input) in status.inputs.iter_mut().enumerate() {
            input.held = self.sequence.held(number);
            input.ended = self.sequence.has_ended(number);
            input.at_barrier = self.sequence.at_barrier(number);
            if input.stalled {
                input.stalled_for += since_last;
            }
            input.stalled = self.sequence.is_stalled(number);
            input.paused = self.sequence.pause_reasons(number);
            input.policies = self.policies[number].now();
        }
        let outputs = status.outputs.iter_mut().zip(self.worker.written()).zip(&self.reporters);
        for ((output, written), reporter) in outputs {
            output.records = written.records.load(Ordering::Relaxed);
            output.bytes = written.bytes.load(Ordering::Relaxed);
            output.policies = reporter.policies.now();
            output.retries = reporter.retries.load(Ordering::Relaxed);
            let trouble = reporter.trouble.lock().unwrap_or_else(PoisonError::into_inner);
            output.trouble.clone_from(&trouble);
        }
        self.published.send_replace(status.clone());
    }
}

/// Opens the state directory and reads its last checkpoint, which has a position for every endpoint unless
/// changes were accepted.
fn open_state(
    pipeline: &str,
    inputs: &[String],
    outputs: &[NamedOutput],
    settings: &Settings,
) -> Result<(State, Option<StoredCheckpoint>), Error> {
    let outputs: Vec<_> = outputs.iter().map(|output| output.name.clone()).collect();
    let owner = Owner {
        pipeline,
        inputs,
        outputs: &outputs,
        settings: &settings.fingerprint,
        keeps_journal: settings.delivery.level() == FaultTolerance::ExactlyOnce,
    };
    let state = State::open(&settings.state_dir, owner, settings.accept_changes)?;
    for change in state.accepted_changes() {
        tracing::warn!("accepted change: {change}");
    }
    for change in state.noticed_changes() {
        tracing::info!("changed since the last run: {change}");
    }
    let checkpoint = state.checkpoint()?;
    if let Some(checkpoint) = &checkpoint {
        let new_inputs = inputs.iter().filter(|name| !checkpoint.inputs.contains_key(*name));
        let new_outputs = outputs.iter().filter(|name| !checkpoint.outputs.contains_key(*name));
        if !settings.accept_changes
            && let Some(endpoint) = new_inputs.clone().chain(new_outputs.clone()).next()
        {
            return Err(state.lacks_position(endpoint).into());
        }
        for name in new_inputs {
            tracing::warn!(
                "input {name} is new to this state directory and starts where its settings say"
            );
        }
        for name in checkpoint.inputs.keys().filter(|name| !inputs.contains(name)) {
            tracing::warn!("input {name} is not in the pipeline any more; its position is dropped");
        }
        for name in new_outputs {
            tracing::warn!(
                "output {name} is new to this state directory; it gets what comes from now on"
            );
        }
    }
    Ok((state, checkpoint))
}

/// Tells the outputs what they may want to know before they are opened.
fn report(outputs: &mut [NamedOutput], last_step: u64) -> Vec<Arc<Reporter>> {
    let begin = |output: &mut NamedOutput| {
        let reporter = Arc::new(Reporter {
            name: output.name.clone(),
            policies: Arc::default(),
            trouble: Arc::<Trouble>::default(),
            retries: AtomicU64::default(),
        });
        output.output.attach(last_step, reporter.clone());
        reporter
    };
    outputs.iter_mut().map(begin).collect()
}

fn recover_outputs(
    outputs: &mut [NamedOutput],
    checkpoint: Option<&StoredCheckpoint>,
) -> Result<Vec<JsonValue>, Error> {
    let recover = |output: &mut NamedOutput| {
        let position = checkpoint.and_then(|checkpoint| checkpoint.outputs.get(&output.name));
        let recovered = output.output.recover(position);
        recovered.map_err(|error| Error::Output { output: output.name.clone(), error })
    };
    outputs.iter_mut().map(recover).collect()
}
