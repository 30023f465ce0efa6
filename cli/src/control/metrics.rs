//! A running pipeline to Prometheus.
//!
//! Nothing is registered and nothing is kept: each scrape is built from what the run says of itself at that moment, so
//! the series of what is gone (a revoked partition) end by themselves. What there is stands in [`table`]; what it
//! means to those who look at it, in `docs/metrics.md`.

mod families;
mod partitions;
mod process;
mod table;

#[cfg(test)]
mod dashboard;
#[cfg(test)]
mod lint;
#[cfg(test)]
mod page;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use lockgate_controller::{CheckpointStage, InputStatus, OutputStatus, PauseReason, Phase, Status};
use lockgate_core::PartitionStatus;

use super::board::{Board, Endpoint, Facts};
use super::report::{LastReload, PhaseName, pause_reason};
use families::Families;
use partitions::Partitions;
use process::Process;
use table::Metric;

/// What the text is, for the header `Content-Type`.
pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// All metrics at this moment, in the text format of Prometheus, version 0.0.4.
pub(crate) fn metrics(board: &Board) -> String {
    let run = board.run();
    let status = run.as_ref().map(|run| run.status().borrow().clone());
    let partitions = |run: &lockgate_controller::Handle| {
        (0..board.facts.inputs.len()).map(|input| run.partitions(input)).collect()
    };
    render(&Snapshot {
        facts: &board.facts,
        status: status.as_ref(),
        partitions: run.as_ref().map(partitions).unwrap_or_default(),
        last_reload: board.last_reload(),
        process: Process::now(),
        now: SystemTime::now(),
    })
}

/// Everything that is rendered.
struct Snapshot<'a> {
    facts: &'a Facts,
    /// `None` while the pipeline is being opened.
    status: Option<&'a Status>,
    /// By input.
    partitions: Vec<Vec<PartitionStatus>>,
    last_reload: Option<LastReload>,
    process: Process,
    now: SystemTime,
}

const PHASES: [PhaseName; 5] = [
    PhaseName::Opening,
    PhaseName::Replaying,
    PhaseName::Running,
    PhaseName::Stopping,
    PhaseName::Ended,
];

const PAUSE_REASONS: [PauseReason; 4] =
    [PauseReason::User, PauseReason::StartOrder, PauseReason::Reload, PauseReason::Backpressure];

/// Kinds of errors of a reader. Each has a series from the start, so that the first error is a change.
const ERROR_KINDS: [&str; 7] =
    ["bug", "configuration", "data", "storage", "storage_full", "superseded", "unavailable"];

fn render(snapshot: &Snapshot<'_>) -> String {
    let mut families = Families::new();
    put_pipeline(&mut families, snapshot);
    put_process(&mut families, &snapshot.process);
    if let Some(status) = snapshot.status {
        put_steps(&mut families, status);
        put_checkpoints(&mut families, status, snapshot.now);
        let inputs = snapshot.facts.inputs.iter().zip(&status.inputs);
        for (place, (about, input)) in inputs.enumerate() {
            put_input(&mut families, about, input);
            let partitions = snapshot.partitions.get(place).map(Vec::as_slice).unwrap_or_default();
            put_partitions(&mut families, about, partitions);
        }
        for (about, output) in snapshot.facts.outputs.iter().zip(&status.outputs) {
            put_output(&mut families, about, output);
        }
    }
    families.text()
}

fn put_pipeline(families: &mut Families, snapshot: &Snapshot<'_>) {
    let Snapshot { facts, status, last_reload, .. } = snapshot;
    families.put(Metric::BuildInfo, &[env!("CARGO_PKG_VERSION")], true);
    families.put(Metric::PipelineInfo, &[&facts.pipeline, facts.delivery], true);
    families.put(Metric::StartTime, &[], facts.started_at);
    let phase = match status.map(|status| status.phase) {
        None => PhaseName::Opening,
        Some(Phase::Replaying) => PhaseName::Replaying,
        Some(Phase::Running) => PhaseName::Running,
        Some(Phase::Stopping) => PhaseName::Stopping,
        Some(Phase::Ended) => PhaseName::Ended,
    };
    for one in PHASES {
        families.put(Metric::Phase, &[&one.to_string()], one == phase);
    }
    for input in &facts.inputs {
        families.put(Metric::InputInfo, &[&input.name, input.kind], true);
    }
    for output in &facts.outputs {
        families.put(Metric::OutputInfo, &[&output.name, output.kind], true);
    }
    let failed = last_reload.as_ref().is_some_and(|last| last.error.is_some());
    families.put(Metric::ReloadSuccessful, &[], !failed);
    let at = last_reload.as_ref().and_then(|last| humantime::parse_rfc3339(&last.at.0).ok());
    families.put_known(Metric::ReloadTime, &[], at);
}

fn put_steps(families: &mut Families, status: &Status) {
    families.put(Metric::Running, &[], status.elapsed);
    families.put(Metric::Blocked, &[], status.blocked.is_some());
    families.put(Metric::Reloads, &[], status.reloads);
    families.put(Metric::ReloadPending, &[], status.reloading);
    families.put(Metric::Steps, &[], status.steps);
    families.put(Metric::LastStep, &[], status.step);
    families.put(Metric::StepsInFlight, &[], status.steps_in_flight);
    families.put(Metric::ReplayedSteps, &[], status.replayed_steps);
    families.put(Metric::StepsToReplay, &[], status.steps_to_replay);
    let durations = &status.durations;
    families.spread(Metric::StepDuration, &["queue"], &durations.queue);
    families.spread(Metric::StepDuration, &["journal"], &durations.journal);
    families.spread(Metric::StepDuration, &["circuit"], &durations.circuit);
    families.spread(Metric::StepDuration, &["output"], &durations.output);
}

fn put_checkpoints(families: &mut Families, status: &Status, now: SystemTime) {
    let is_idle = matches!(status.checkpoint.stage, CheckpointStage::Idle);
    families.put(Metric::Checkpoints, &[], status.checkpoints);
    families.put(Metric::CheckpointUnderWay, &[], !is_idle);
    families.put(Metric::CheckpointStep, &[], status.checkpointed_step);
    if let Some(last) = status.checkpoint.recent.back() {
        let age = now.duration_since(last.stored_at).unwrap_or_default();
        families.put(Metric::CheckpointTime, &[], last.stored_at);
        families.put(Metric::CheckpointAge, &[], age);
        families.put_known(Metric::CheckpointDuration, &[], last.took);
        families.put_known(Metric::CheckpointBytes, &[], last.bytes);
    }
    families.put(Metric::JournalSteps, &[], status.journal.steps);
    families.put(Metric::JournalBytes, &[], status.journal.bytes);
}

fn put_input(families: &mut Families, about: &Endpoint, status: &InputStatus) {
    let name = about.name.as_str();
    families.put(Metric::InputRecords, &[name], status.records);
    families.put(Metric::InputBytes, &[name], status.bytes);
    families.put(Metric::InputBufferedRecords, &[name], status.held.records);
    families.put(Metric::InputBufferedBytes, &[name], status.held.bytes);
    families.put(Metric::InputLimitRecords, &[name], status.limits.max_queued_records);
    families.put(Metric::InputLimitBytes, &[name], status.limits.max_queued_bytes);
    for reason in PAUSE_REASONS {
        let is_paused = status.paused.contains(&reason);
        families.put(Metric::InputPaused, &[name, pause_reason(reason)], is_paused);
    }
    families.put(Metric::InputAtBarrier, &[name], status.at_barrier);
    families.put(Metric::InputStalled, &[name], status.stalled);
    families.put(Metric::InputStalledTime, &[name], status.stalled_for);
    families.put(Metric::InputEnded, &[name], status.ended);
    let mut errors: BTreeMap<&str, u64> = ERROR_KINDS.iter().map(|kind| (*kind, 0)).collect();
    errors.extend(&status.errors);
    for (kind, count) in errors {
        families.put(Metric::InputErrors, &[name, kind], count);
    }
    for (policy, count) in &status.policies {
        families.put(Metric::InputPolicies, &[name, policy], *count);
    }
    families.spread(Metric::InputLatency, &[name], &status.latency);
}

fn put_partitions(families: &mut Families, about: &Endpoint, partitions: &[PartitionStatus]) {
    let name = about.name.as_str();
    let all = Partitions::new(partitions);
    families.put(Metric::InputPartitions, &[name], all.number);
    families.put_known(Metric::InputLag, &[name], all.lag);
    families.put_known(Metric::InputLagMax, &[name], all.lag_max);
    families.put(Metric::InputLagging, &[name], all.lagging);
    families.put(Metric::InputUnknownEnd, &[name], all.unknown);
    // Two paths that are not UTF-8 may look the same; a series that comes twice would cost the whole scrape.
    let mut seen = BTreeSet::new();
    for one in all.shown {
        let partition = one.partition.to_string();
        if seen.contains(&partition) {
            continue;
        }
        families.put_known(Metric::PartitionLag, &[name, &partition], one.lag());
        families.put(Metric::PartitionPosition, &[name, &partition], one.position);
        seen.insert(partition);
    }
}

fn put_output(families: &mut Families, about: &Endpoint, status: &OutputStatus) {
    let name = about.name.as_str();
    families.put(Metric::OutputRecords, &[name], status.records);
    families.put(Metric::OutputBytes, &[name], status.bytes);
    families.put(Metric::OutputTrouble, &[name], status.trouble.is_some());
    families.put(Metric::OutputRetries, &[name], status.retries);
    for (policy, count) in &status.policies {
        families.put(Metric::OutputPolicies, &[name, policy], *count);
    }
}

fn put_process(families: &mut Families, process: &Process) {
    families.put_known(Metric::ProcessCpu, &[], process.cpu);
    families.put_known(Metric::ProcessResident, &[], process.resident_bytes);
    families.put_known(Metric::ProcessVirtual, &[], process.virtual_bytes);
    families.put_known(Metric::ProcessOpenFds, &[], process.open_fds);
    families.put_known(Metric::ProcessMaxFds, &[], process.max_fds);
    families.put_known(Metric::ProcessThreads, &[], process.threads);
    families.put_known(Metric::ProcessStart, &[], process.started);
}
