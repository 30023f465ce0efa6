//! What is seen of a running pipeline, as JSON. Times are RFC 3339 in UTC, durations are seconds.
//!
//! The names are an interface: keys are added, never renamed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::{Duration, SystemTime};

use lockgate_controller::{
    CheckpointStage, CheckpointSummary, Histogram, InputStatus, OutputStatus, PauseReason, Phase,
    Status,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::board::{Endpoint, Facts};

/// A point in time, written as in RFC 3339.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Time(#[schemars(extend("format" = "date-time"))] pub(crate) String);

impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        Self(humantime::format_rfc3339_millis(time).to_string())
    }
}

/// A running pipeline at one moment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Report {
    /// The version of lockgate.
    pub(crate) version: String,
    /// The pipeline's name.
    pub(crate) pipeline: String,
    /// The pipeline file.
    pub(crate) file: String,
    /// What is promised about each record.
    pub(crate) delivery: String,
    /// When the process started to work.
    pub(crate) started_at: Time,
    /// The process.
    pub(crate) pid: u32,
    /// What the pipeline is doing.
    pub(crate) phase: PhaseName,
    /// What people should know, in plain words, the most important first; empty if all is well.
    pub(crate) conditions: Vec<Condition>,
    /// Seconds since the pipeline was opened.
    pub(crate) running_seconds: f64,
    /// Steps.
    pub(crate) steps: Steps,
    /// Checkpoints.
    pub(crate) checkpoints: Checkpoints,
    /// What is journaled since the last checkpoint.
    pub(crate) journal: Journal,
    /// How long the phases of a step take.
    pub(crate) durations: Durations,
    /// Changes of the settings while the pipeline runs.
    pub(crate) reloads: Reloads,
    /// The inputs, in their order.
    pub(crate) inputs: Vec<Input>,
    /// The outputs, in their order.
    pub(crate) outputs: Vec<Output>,
}

/// What the pipeline is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PhaseName {
    /// Opening inputs and outputs.
    Opening,
    /// Giving the steps since the last checkpoint again.
    Replaying,
    /// Reading.
    Running,
    /// Finishing what is under way.
    Stopping,
    /// Nothing more comes.
    Ended,
}

impl fmt::Display for PhaseName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PhaseName::Opening => "opening",
            PhaseName::Replaying => "replaying",
            PhaseName::Running => "running",
            PhaseName::Stopping => "stopping",
            PhaseName::Ended => "ended",
        })
    }
}

/// Something that people should know.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Condition {
    /// How bad it is.
    pub(crate) severity: Severity,
    /// `pipeline`, `input NAME` or `output NAME`.
    pub(crate) about: String,
    /// What it is, and what to do.
    pub(crate) text: String,
}

/// How bad a condition is.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Severity {
    /// Something does not work.
    Error,
    /// Something waits, or was left out as the settings say.
    Warning,
    /// Somebody wanted it so.
    Info,
}

/// Steps of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Steps {
    /// The number of the last one.
    pub(crate) last: u64,
    /// Since the pipeline was opened, replayed ones included.
    pub(crate) count: u64,
    /// Those that exist and are not written yet.
    pub(crate) in_flight: u64,
    /// Those that were replayed.
    pub(crate) replayed: u64,
    /// Those that had to be replayed when the pipeline was opened.
    pub(crate) to_replay: u64,
}

/// Checkpoints of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Checkpoints {
    /// The last step that one covers.
    pub(crate) step: u64,
    /// Since the pipeline was opened.
    pub(crate) count: u64,
    /// How far the one under way is, `idle` if there is none.
    pub(crate) stage: String,
    /// Seconds since the last one was stored.
    pub(crate) age_seconds: Option<f64>,
    /// The last ones, the latest first.
    pub(crate) recent: Vec<Checkpoint>,
}

/// A checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Checkpoint {
    /// The last step that it covers.
    pub(crate) step: u64,
    /// When it was stored.
    pub(crate) stored_at: Time,
    /// How long it took; unknown for that of an earlier run.
    pub(crate) took_seconds: Option<f64>,
    /// The size of the circuit's state and all positions; unknown for that of an earlier run.
    pub(crate) bytes: Option<u64>,
}

/// The journal.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Journal {
    /// Its steps.
    pub(crate) steps: u64,
    /// Their size.
    pub(crate) bytes: u64,
}

/// How long the phases of a step take.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Durations {
    /// From asking the inputs to the last answer.
    pub(crate) queue: Spread,
    /// From the last answer to being durable in the journal.
    pub(crate) journal: Spread,
    /// From the last answer to the circuit's being done.
    pub(crate) circuit: Spread,
    /// Writing by all outputs.
    pub(crate) output: Spread,
}

/// How durations are spread, since the pipeline was opened. Quantiles are the upper ends of the buckets of the
/// histogram in the metrics; absent where there was nothing.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Spread {
    /// How many there were.
    pub(crate) count: u64,
    /// All together.
    pub(crate) sum_seconds: f64,
    /// Half of them were not longer.
    pub(crate) p50_seconds: Option<f64>,
    /// All but one in a hundred were not longer.
    pub(crate) p99_seconds: Option<f64>,
}

impl From<&Histogram> for Spread {
    fn from(histogram: &Histogram) -> Self {
        let quantile = |share| histogram.quantile(share).map(|found| found.as_secs_f64());
        Self {
            count: histogram.count(),
            sum_seconds: histogram.sum().as_secs_f64(),
            p50_seconds: quantile(0.5),
            p99_seconds: quantile(0.99),
        }
    }
}

/// Changes of the settings while the pipeline runs.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Reloads {
    /// How often changed settings took effect.
    pub(crate) count: u64,
    /// Whether changed settings wait until what was read under the old ones has been handed over.
    pub(crate) pending: bool,
    /// The last one.
    pub(crate) last: Option<LastReload>,
}

/// How a reload went.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct LastReload {
    /// When.
    pub(crate) at: Time,
    /// What changed.
    pub(crate) changes: Vec<Change>,
    /// Why nothing did.
    pub(crate) error: Option<String>,
}

/// A setting that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Change {
    /// Its key path.
    pub(crate) path: String,
    /// Its value before.
    pub(crate) was: Option<String>,
    /// Its value now.
    pub(crate) is: Option<String>,
}

/// An input.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Input {
    /// Its name.
    pub(crate) name: String,
    /// Its kind, as in the pipeline file.
    pub(crate) kind: String,
    /// Records in steps, since the pipeline was opened.
    pub(crate) records: u64,
    /// Their bytes.
    pub(crate) bytes: u64,
    /// Records that were read and are in no step.
    pub(crate) buffered_records: u64,
    /// Their bytes.
    pub(crate) buffered_bytes: u64,
    /// How many bytes may be buffered.
    pub(crate) max_queued_bytes: u64,
    /// Whether it has ended.
    pub(crate) ended: bool,
    /// Whether it stands where no checkpoint can be taken.
    pub(crate) at_barrier: bool,
    /// Whether it has been silent for longer than `stall_timeout`.
    pub(crate) stalled: bool,
    /// For how long it has been stalled, all times together.
    pub(crate) stalled_seconds: f64,
    /// Why it is paused: `user`, `start_order`, `reload`, `backpressure`; empty if it reads.
    pub(crate) paused: Vec<String>,
    /// How often each stated policy was applied.
    pub(crate) policies: BTreeMap<String, u64>,
    /// How many errors of each kind there were.
    pub(crate) errors: BTreeMap<String, u64>,
    /// The last of them.
    pub(crate) last_error: Option<String>,
    /// From a record's arrival to its having been written by all outputs.
    pub(crate) latency: Spread,
}

/// An output.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Output {
    /// Its name.
    pub(crate) name: String,
    /// Its kind, as in the pipeline file.
    pub(crate) kind: String,
    /// Records taken since the pipeline was opened.
    pub(crate) records: u64,
    /// Their bytes, as they came in.
    pub(crate) bytes: u64,
    /// What does not work at the moment and is tried again.
    pub(crate) trouble: Option<String>,
    /// How often something did not work and was tried again.
    pub(crate) retries: u64,
    /// How often each stated policy was applied.
    pub(crate) policies: BTreeMap<String, u64>,
}

/// Where an input stands in one part of its source.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Partition {
    /// `TOPIC[N]`, or the path of a file.
    pub(crate) partition: String,
    /// The first offset that no step has; of a file the byte.
    pub(crate) position: u64,
    /// Where it ends as far as is known.
    pub(crate) end: Option<u64>,
    /// What is between the two.
    pub(crate) lag: Option<u64>,
}

/// What people see of a run; `None` while the pipeline is being opened.
pub(super) fn report(
    facts: &Facts,
    status: Option<&Status>,
    last_reload: Option<LastReload>,
    failure: Option<&str>,
) -> Report {
    let opening = Status::default();
    let is_open = status.is_some();
    let status = status.unwrap_or(&opening);
    let phase = match status.phase {
        _ if failure.is_some() => PhaseName::Ended,
        _ if !is_open => PhaseName::Opening,
        Phase::Replaying => PhaseName::Replaying,
        Phase::Running => PhaseName::Running,
        Phase::Stopping => PhaseName::Stopping,
        Phase::Ended => PhaseName::Ended,
    };
    let inputs = facts.inputs.iter().enumerate();
    let outputs = facts.outputs.iter().enumerate();
    Report {
        version: env!("CARGO_PKG_VERSION").into(),
        pipeline: facts.pipeline.clone(),
        file: facts.file.display().to_string(),
        delivery: facts.delivery.into(),
        started_at: facts.started_at.into(),
        pid: std::process::id(),
        phase,
        conditions: conditions(status, last_reload.as_ref(), failure),
        running_seconds: status.elapsed.as_secs_f64(),
        steps: Steps {
            last: status.step,
            count: status.steps,
            in_flight: status.steps_in_flight as u64,
            replayed: status.replayed_steps,
            to_replay: status.steps_to_replay,
        },
        checkpoints: Checkpoints {
            step: status.checkpointed_step,
            count: status.checkpoints,
            stage: stage(status.checkpoint.stage).into(),
            age_seconds: status.checkpoint.recent.back().map(age),
            recent: status.checkpoint.recent.iter().rev().map(checkpoint).collect(),
        },
        journal: Journal { steps: status.journal.steps, bytes: status.journal.bytes },
        durations: Durations {
            queue: (&status.durations.queue).into(),
            journal: (&status.durations.journal).into(),
            circuit: (&status.durations.circuit).into(),
            output: (&status.durations.output).into(),
        },
        reloads: Reloads { count: status.reloads, pending: status.reloading, last: last_reload },
        inputs: inputs.map(|(place, about)| input(about, status.inputs.get(place))).collect(),
        outputs: outputs.map(|(place, about)| output(about, status.outputs.get(place))).collect(),
    }
}

fn input(about: &Endpoint, status: Option<&InputStatus>) -> Input {
    let opening = InputStatus::default();
    let status = status.unwrap_or(&opening);
    Input {
        name: about.name.clone(),
        kind: about.kind.into(),
        records: status.records,
        bytes: status.bytes,
        buffered_records: status.held.records,
        buffered_bytes: status.held.bytes,
        max_queued_bytes: status.limits.max_queued_bytes,
        ended: status.ended,
        at_barrier: status.at_barrier,
        stalled: status.stalled,
        stalled_seconds: status.stalled_for.as_secs_f64(),
        paused: status.paused.iter().map(|reason| pause_reason(*reason).into()).collect(),
        policies: counts(&status.policies),
        errors: counts(&status.errors),
        last_error: status.last_error.clone(),
        latency: (&status.latency).into(),
    }
}

fn output(about: &Endpoint, status: Option<&OutputStatus>) -> Output {
    let opening = OutputStatus::default();
    let status = status.unwrap_or(&opening);
    Output {
        name: about.name.clone(),
        kind: about.kind.into(),
        records: status.records,
        bytes: status.bytes,
        trouble: status.trouble.clone(),
        retries: status.retries,
        policies: counts(&status.policies),
    }
}

fn counts(counts: &BTreeMap<&'static str, u64>) -> BTreeMap<String, u64> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

fn checkpoint(summary: &CheckpointSummary) -> Checkpoint {
    Checkpoint {
        step: summary.step,
        stored_at: summary.stored_at.into(),
        took_seconds: summary.took.map(|took| took.as_secs_f64()),
        bytes: summary.bytes,
    }
}

fn age(summary: &CheckpointSummary) -> f64 {
    summary.stored_at.elapsed().unwrap_or(Duration::ZERO).as_secs_f64()
}

/// The name of a reason for pausing.
pub(crate) fn pause_reason(reason: PauseReason) -> &'static str {
    match reason {
        PauseReason::User => "user",
        PauseReason::StartOrder => "start_order",
        PauseReason::Reload => "reload",
        PauseReason::Backpressure => "backpressure",
    }
}

/// The name of a stage.
fn stage(stage: CheckpointStage) -> &'static str {
    match stage {
        CheckpointStage::Idle => "idle",
        CheckpointStage::ClearingBarriers => "clearing_barriers",
        CheckpointStage::Draining => "draining",
        CheckpointStage::Preparing { .. } => "preparing",
        CheckpointStage::Storing { .. } => "storing",
        CheckpointStage::Completing { .. } => "completing",
    }
}

/// What people should know, in plain words.
fn conditions(
    status: &Status,
    last_reload: Option<&LastReload>,
    failure: Option<&str>,
) -> Vec<Condition> {
    let mut conditions = Vec::new();
    let mut say = |severity, about: String, text: String| {
        conditions.push(Condition { severity, about, text });
    };
    if let Some(failure) = failure {
        let text = format!(
            "the run has failed: {failure}; the next start goes on from the last checkpoint"
        );
        say(Severity::Error, "pipeline".into(), text);
    }
    if let Some(reason) = &status.blocked {
        let text = format!("nothing can be stored, and inputs are paused until it can: {reason}");
        say(Severity::Error, "pipeline".into(), text);
    }
    for input in &status.inputs {
        let about = || format!("input {}", input.name);
        if input.stalled {
            let text = "its reader does not answer; lockgate waits for it (on_stall decides)";
            say(Severity::Error, about(), text.into());
        }
        if let Some(error) = &input.last_error {
            say(Severity::Warning, about(), format!("last error: {error}"));
        }
        for reason in &input.paused {
            match reason {
                PauseReason::User if input.at_barrier => {
                    let text = "paused by a user in the middle of what must be read as a whole, so there can be no \
                                checkpoint; `lockgate resume` lets it read again";
                    say(Severity::Warning, about(), text.into());
                }
                PauseReason::User => {
                    let text = "paused by a user; `lockgate resume` lets it read again";
                    say(Severity::Info, about(), text.into());
                }
                PauseReason::StartOrder => {
                    say(Severity::Info, about(), "waits for other inputs to end".into());
                }
                // What they wait for is said once for all.
                PauseReason::Reload | PauseReason::Backpressure => {}
            }
        }
        for (policy, count) in &input.policies {
            say(Severity::Warning, about(), format!("{policy}: {count}"));
        }
    }
    for output in &status.outputs {
        let about = || format!("output {}", output.name);
        if let Some(trouble) = &output.trouble {
            let text = format!("does not work and is tried again: {trouble}");
            say(Severity::Error, about(), text);
        }
        for (policy, count) in &output.policies {
            say(Severity::Warning, about(), format!("{policy}: {count}"));
        }
    }
    if status.reloading {
        let text = "changed settings wait until what was read under the old ones has been written";
        say(Severity::Info, "pipeline".into(), text.into());
    }
    if let Some(LastReload { error: Some(error), .. }) = last_reload {
        let text = format!("the last reload was refused, the settings before it stay: {error}");
        say(Severity::Warning, "pipeline".into(), text);
    }
    conditions.sort_by_key(|condition| condition.severity);
    conditions
}
