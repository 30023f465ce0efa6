//! What a controller runs: endpoints, circuit and settings, checked and composed by the caller.

use std::path::PathBuf;
use std::sync::Arc;

use lockgate_core::{Circuit, FaultTolerance, InputEndpoint, Output, PassThrough};

use crate::host::{Host, Threads};
use crate::recorder::Recorder;
use crate::state::Setting;
use crate::tuning::{InputTuning, Tuning};

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
    /// Where state directory, circuit and outputs have their work done: on [`Threads`], as a rule.
    pub host: Arc<dyn Host>,
}

impl Pipeline {
    /// A pipeline without endpoints that passes every record through.
    pub fn new(name: impl Into<String>, settings: Settings) -> Self {
        let circuit = Box::new(PassThrough);
        let name = name.into();
        let (inputs, outputs) = (Vec::new(), Vec::new());
        Self { name, inputs, circuit, outputs, recorder: None, settings, host: Arc::new(Threads) }
    }

    /// Adds an input.
    #[must_use]
    pub fn input(
        mut self,
        name: impl Into<String>,
        endpoint: impl InputEndpoint + 'static,
    ) -> Self {
        self.inputs.push(Input::new(name, Box::new(endpoint)));
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
    /// How it is read.
    pub tuning: InputTuning,
    /// The places in the pipeline of the inputs that must have ended before this one is read.
    pub start_after: Vec<usize>,
}

impl Input {
    /// An input that is read from the start, as usual.
    pub fn new(name: impl Into<String>, endpoint: Box<dyn InputEndpoint>) -> Self {
        let tuning = InputTuning::default();
        Self { name: name.into(), endpoint, tuning, start_after: Vec::new() }
    }
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
    /// What may change while it runs.
    pub tuning: Tuning,
}

impl Settings {
    /// The usual settings, with state in `state_dir`.
    pub fn new(state_dir: impl Into<PathBuf>) -> Self {
        Self {
            delivery: Delivery::default(),
            state_dir: state_dir.into(),
            fingerprint: Vec::new(),
            accept_changes: false,
            tuning: Tuning::default(),
        }
    }
}
