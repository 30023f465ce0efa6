//! All metrics in one table: what can be rendered, what `docs/metrics.md` lists, what the dashboard may ask for.
//!
//! Names follow the conventions of Prometheus: base units last, `_total` for what only grows. They are an interface:
//! metrics are added, never renamed.

/// What the samples of a metric are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What only grows, until the pipeline is opened again.
    Counter,
    /// What goes up and down.
    Gauge,
    /// How durations are spread.
    Histogram,
}

/// What a number counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    /// Seconds, or seconds since 1970.
    Seconds,
    /// Bytes.
    Bytes,
    /// Records.
    Records,
    /// Steps, or the number of one.
    Steps,
    /// Offsets of a topic's partition, bytes of a file.
    Offsets,
    /// Partitions, or files.
    Partitions,
    /// How often something happened, or how many there are.
    Times,
    /// 1 if so, otherwise 0.
    Flag,
    /// Always 1; what is said is in the labels.
    One,
}

/// What is said about a metric.
#[derive(Debug)]
pub(super) struct Description {
    /// What it is about.
    #[cfg_attr(not(test), allow(dead_code, reason = "the page of the metrics has it"))]
    pub(super) group: &'static str,
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) labels: &'static [&'static str],
    #[cfg_attr(not(test), allow(dead_code, reason = "the page of the metrics has it"))]
    pub(super) unit: Unit,
    pub(super) help: &'static str,
}

macro_rules! table {
    ($($group:literal { $(
        $metric:ident = $kind:ident $name:literal [$($label:literal),*] $unit:ident $help:literal;
    )* })*) => {
        /// A metric of the table.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Metric { $($($metric),*),* }

        impl Metric {
            /// All of them, in the order of the table.
            pub(super) const ALL: &[Metric] = &[$($(Metric::$metric),*),*];

            pub(super) fn description(self) -> &'static Description {
                match self { $($(Metric::$metric => &Description {
                    group: $group,
                    name: $name,
                    kind: Kind::$kind,
                    labels: &[$($label),*],
                    unit: Unit::$unit,
                    help: $help,
                }),*),* }
            }
        }
    };
}

table! {
"Pipeline" {
    BuildInfo = Gauge "lockgate_build_info" ["version"] One
        "The version of lockgate.";
    PipelineInfo = Gauge "lockgate_pipeline_info" ["pipeline", "delivery"] One
        "The pipeline's name and what it promises about each record.";
    StartTime = Gauge "lockgate_start_time_seconds" [] Seconds
        "When the process started to work, as Unix time.";
    Phase = Gauge "lockgate_phase" ["phase"] Flag
        "What the pipeline is doing; one phase is 1, the others are 0.";
    Running = Gauge "lockgate_running_seconds" [] Seconds
        "Time since the pipeline was opened.";
    Blocked = Gauge "lockgate_blocked" [] Flag
        "Whether nothing can be stored (a full disk), so that inputs are paused until it can.";
    Reloads = Counter "lockgate_config_reloads_total" [] Times
        "How often changed settings took effect since the pipeline was opened.";
    ReloadPending = Gauge "lockgate_config_reload_pending" [] Flag
        "Whether changed settings wait until what was read under the old ones has been handed over.";
    ReloadSuccessful = Gauge "lockgate_config_last_reload_successful" [] Flag
        "Whether the last attempt to put the pipeline file in force succeeded; 1 before the first.";
    ReloadTime = Gauge "lockgate_config_last_reload_timestamp_seconds" [] Seconds
        "When the last attempt to put the pipeline file in force was made, as Unix time.";
}
"Steps" {
    Steps = Counter "lockgate_steps_total" [] Steps
        "Steps since the pipeline was opened, replayed ones included.";
    LastStep = Gauge "lockgate_last_step" [] Steps
        "The number of the last step that exists.";
    StepsInFlight = Gauge "lockgate_steps_in_flight" [] Steps
        "Steps that exist and are not yet written by all outputs.";
    ReplayedSteps = Counter "lockgate_replayed_steps_total" [] Steps
        "Steps that were replayed since the pipeline was opened.";
    StepsToReplay = Gauge "lockgate_steps_to_replay" [] Steps
        "Steps that had to be replayed when the pipeline was opened.";
    StepDuration = Histogram "lockgate_step_duration_seconds" ["phase"] Seconds
        "How long steps take. queue: from asking the inputs to the last answer; journal: from there to being durable; circuit: from there to the circuit's being done; output: writing by all outputs.";
}
"Checkpoints and journal" {
    Checkpoints = Counter "lockgate_checkpoints_total" [] Times
        "Checkpoints since the pipeline was opened.";
    CheckpointUnderWay = Gauge "lockgate_checkpoint_under_way" [] Flag
        "Whether a checkpoint is being taken.";
    CheckpointStep = Gauge "lockgate_last_checkpoint_step" [] Steps
        "The last step that a checkpoint covers.";
    CheckpointTime = Gauge "lockgate_last_checkpoint_timestamp_seconds" [] Seconds
        "When the last checkpoint was stored, as Unix time; absent if there is none.";
    CheckpointAge = Gauge "lockgate_last_checkpoint_age_seconds" [] Seconds
        "Time since the last checkpoint was stored; absent if there is none.";
    CheckpointDuration = Gauge "lockgate_last_checkpoint_duration_seconds" [] Seconds
        "How long the last checkpoint took; absent for that of an earlier run.";
    CheckpointBytes = Gauge "lockgate_last_checkpoint_size_bytes" [] Bytes
        "The size of the circuit's state and of all positions in the last checkpoint; absent for that of an earlier run.";
    JournalSteps = Gauge "lockgate_journal_steps" [] Steps
        "Steps in the journal: what a crash at this moment would replay.";
    JournalBytes = Gauge "lockgate_journal_size_bytes" [] Bytes
        "The size of the steps in the journal.";
}
"Inputs" {
    InputInfo = Gauge "lockgate_input_info" ["input", "kind"] One
        "An input and its kind in the pipeline file.";
    InputRecords = Counter "lockgate_input_records_total" ["input"] Records
        "Records in steps since the pipeline was opened, replayed ones included.";
    InputBytes = Counter "lockgate_input_bytes_total" ["input"] Bytes
        "Bytes of the records in steps since the pipeline was opened, replayed ones included.";
    InputBufferedRecords = Gauge "lockgate_input_buffered_records" ["input"] Records
        "Records that were read and are in no step yet.";
    InputBufferedBytes = Gauge "lockgate_input_buffered_bytes" ["input"] Bytes
        "Bytes that were read and are in no step yet.";
    InputLimitRecords = Gauge "lockgate_input_queue_limit_records" ["input"] Records
        "How many records may be buffered (max_queued_records).";
    InputLimitBytes = Gauge "lockgate_input_queue_limit_bytes" ["input"] Bytes
        "How many bytes may be buffered (max_queued_bytes).";
    InputPaused = Gauge "lockgate_input_paused" ["input", "reason"] Flag
        "Whether the input is paused for this reason; it reads when all are 0.";
    InputAtBarrier = Gauge "lockgate_input_at_barrier" ["input"] Flag
        "Whether the input stands where no checkpoint can be taken.";
    InputStalled = Gauge "lockgate_input_stalled" ["input"] Flag
        "Whether the reader has been silent for longer than stall_timeout.";
    InputStalledTime = Counter "lockgate_input_stalled_seconds_total" ["input"] Seconds
        "For how long the reader has been stalled since the pipeline was opened, all times together.";
    InputEnded = Gauge "lockgate_input_ended" ["input"] Flag
        "Whether the input has reached its end.";
    InputErrors = Counter "lockgate_input_errors_total" ["input", "kind"] Times
        "Errors that the reader reported, by kind.";
    InputPolicies = Counter "lockgate_input_policies_applied_total" ["input", "policy"] Times
        "How often a stated policy was applied to what was read; a series begins with its first time.";
    InputLatency = Histogram "lockgate_input_latency_seconds" ["input"] Seconds
        "From a record's arrival to its step's having been written by all outputs, one for each record that was not replayed.";
}
"Partitions" {
    InputPartitions = Gauge "lockgate_input_partitions" ["input"] Partitions
        "Partitions (or files) that the input reads; 0 where it does not say.";
    InputLag = Gauge "lockgate_input_lag" ["input"] Offsets
        "What is between positions and ends, all partitions together; absent while no end is known.";
    InputLagMax = Gauge "lockgate_input_lag_max" ["input"] Offsets
        "The largest lag of a partition; absent while no end is known.";
    InputLagging = Gauge "lockgate_input_lagging_partitions" ["input"] Partitions
        "Partitions whose lag is not 0.";
    InputUnknownEnd = Gauge "lockgate_input_unknown_end_partitions" ["input"] Partitions
        "Partitions whose end is not known: their lag is in no number.";
    PartitionLag = Gauge "lockgate_partition_lag" ["input", "partition"] Offsets
        "What is between position and end. Of an input with more than 1000 partitions only the 100 with the largest lag.";
    PartitionPosition = Gauge "lockgate_partition_position" ["input", "partition"] Offsets
        "The first offset (of a file the byte) that no step has. Of an input with more than 1000 partitions only the 100 with the largest lag.";
}
"Outputs" {
    OutputInfo = Gauge "lockgate_output_info" ["output", "kind"] One
        "An output and its kind in the pipeline file.";
    OutputRecords = Counter "lockgate_output_records_total" ["output"] Records
        "Records taken since the pipeline was opened.";
    OutputBytes = Counter "lockgate_output_bytes_total" ["output"] Bytes
        "Bytes of the records taken since the pipeline was opened, as they came in.";
    OutputTrouble = Gauge "lockgate_output_trouble" ["output"] Flag
        "Whether something does not work at the moment and is tried again.";
    OutputRetries = Counter "lockgate_output_retries_total" ["output"] Times
        "How often something did not work and was tried again.";
    OutputPolicies = Counter "lockgate_output_policies_applied_total" ["output", "policy"] Times
        "How often a stated policy was applied to what was to be written; a series begins with its first time.";
}
"Process (Linux only)" {
    ProcessCpu = Counter "process_cpu_seconds_total" [] Seconds
        "Processor time of the process, user and system.";
    ProcessResident = Gauge "process_resident_memory_bytes" [] Bytes
        "Memory of the process that is resident.";
    ProcessVirtual = Gauge "process_virtual_memory_bytes" [] Bytes
        "Address space of the process.";
    ProcessOpenFds = Gauge "process_open_fds" [] Times
        "Open file descriptors.";
    ProcessMaxFds = Gauge "process_max_fds" [] Times
        "How many file descriptors may be open.";
    ProcessThreads = Gauge "process_threads" [] Times
        "Threads of the process.";
    ProcessStart = Gauge "process_start_time_seconds" [] Seconds
        "When the process was started, as Unix time.";
}
}
