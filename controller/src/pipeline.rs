//! What a controller runs: endpoints, circuit and settings, checked and composed by the caller.

use std::path::PathBuf;
use std::time::Duration;

use crate::recorder::Recorder;
use crate::state::Setting;
use lockgate_core::{Circuit, FaultTolerance, InputEndpoint, Output, PassThrough, QueueLimits};

/// A composed pipeline.
pub struct Pipeline {
    /// Its name.
    pub name: String,
    /// The inputs; their order is the order of their parts in a step.
    pub inputs: Vec<Input>,
    /// What is done with each step.
    pub circuit: Box<dyn Circuit>,
    /// The outputs.
    pub outputs: Vec<NamedOutput>,
    /// Takes down what the inputs give, if wanted.
    pub recorder: Option<Box<dyn Recorder>>,
    /// How it is run.
    pub settings: Settings,
}

impl Pipeline {
    /// A pipeline without endpoints that passes every record through.
    pub fn new(name: impl Into<String>, settings: Settings) -> Self {
        let circuit = Box::new(PassThrough);
        let name = name.into();
        let (inputs, outputs) = (Vec::new(), Vec::new());
        Self { name, inputs, circuit, outputs, recorder: None, settings }
    }

    /// Adds an input.
    #[must_use]
    pub fn input(
        mut self,
        name: impl Into<String>,
        endpoint: impl InputEndpoint + 'static,
    ) -> Self {
        let (endpoint, limits) = (Box::new(endpoint), Input::LIMITS);
        self.inputs.push(Input { name: name.into(), endpoint, limits });
        self
    }

    /// Adds an output.
    #[must_use]
    pub fn output(mut self, name: impl Into<String>, output: impl Output + 'static) -> Self {
        self.outputs.push(NamedOutput { name: name.into(), output: Box::new(output) });
        self
    }

    /// Puts a circuit between inputs and outputs.
    #[must_use]
    pub fn circuit(mut self, circuit: impl Circuit + 'static) -> Self {
        self.circuit = Box::new(circuit);
        self
    }
}

/// An input of a pipeline.
pub struct Input {
    /// Its name, unique in the pipeline.
    pub name: String,
    /// The source.
    pub endpoint: Box<dyn InputEndpoint>,
    /// How much its reader may hold.
    pub limits: QueueLimits,
}

impl Input {
    /// What a reader may hold if nothing else is said.
    pub const LIMITS: QueueLimits =
        QueueLimits { max_queued_records: 1_000_000, max_queued_bytes: 16 << 20 };
}

/// An output of a pipeline.
pub struct NamedOutput {
    /// Its name, unique in the pipeline.
    pub name: String,
    /// The destination.
    pub output: Box<dyn Output>,
}

/// What the pipeline promises about each record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// Once, with the same steps after any crash.
    #[default]
    ExactlyOnce,
    /// At least once: after a crash what came after the last checkpoint is cut into new steps.
    AtLeastOnce,
    /// No promise: nothing is stored.
    None,
}

impl Delivery {
    /// What the readers must promise for it.
    pub fn level(self) -> FaultTolerance {
        match self {
            Delivery::ExactlyOnce => FaultTolerance::ExactlyOnce,
            Delivery::AtLeastOnce => FaultTolerance::AtLeastOnce,
            Delivery::None => FaultTolerance::None,
        }
    }
}

/// What to do about a reader that does not answer. It is reported either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnStall {
    /// Wait for it.
    #[default]
    Wait,
    /// Stop the pipeline.
    Stop,
}

/// How a pipeline is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What it promises.
    pub delivery: Delivery,
    /// Where checkpoints and the journal are; not used without a promise.
    pub state_dir: PathBuf,
    /// What is compared with the last run's.
    pub fingerprint: Vec<Setting>,
    /// Whether to go on from the stored positions although a change of these resets them.
    pub accept_changes: bool,
    /// Time between checkpoints.
    pub checkpoint_interval: Duration,
    /// A step is cut when this many records are buffered.
    pub min_batch_records: u64,
    /// A step is cut at the latest this long after its first record was buffered.
    pub max_buffering_delay: Duration,
    /// Each input gives at most this many records to one step.
    pub max_batch_records: usize,
    /// A reader that has not answered for this long is stalled.
    pub stall_timeout: Duration,
    /// What to do then.
    pub on_stall: OnStall,
    /// How long an orderly stop may take.
    pub shutdown_timeout: Duration,
}

impl Settings {
    /// The usual settings, with state in `state_dir`.
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            delivery: Delivery::default(),
            state_dir: state_dir.into(),
            fingerprint: Vec::new(),
            accept_changes: false,
            checkpoint_interval: Duration::from_secs(10),
            min_batch_records: 5_000,
            max_buffering_delay: Duration::from_millis(5),
            max_batch_records: 100_000,
            stall_timeout: Duration::from_secs(60),
            on_stall: OnStall::default(),
            shutdown_timeout: Duration::from_secs(30),
        }
    }
}
