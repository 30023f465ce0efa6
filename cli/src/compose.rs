//! From a checked pipeline file to what the controller runs: the only place that names all crates.

mod kafka;

use std::path::Path;
use std::time::SystemTime;

use lockgate_controller as controller;
use lockgate_core::{EndpointError, Framing, InputEndpoint, Output as OutputPort, QueueLimits};
use lockgate_file_adapter as file;
use lockgate_file_adapter::tape::TapeInput;
use lockgate_kafka_adapter::{GroupCommits, KafkaInput, KafkaOutput};

use crate::control::{Endpoint, Facts};
use crate::exit::{Code, Failed};
use crate::pipeline as checked;

/// The pipeline ready to be opened. Nothing is touched yet.
///
/// # Errors
/// If a path of an input is no pattern, an input would read what an output writes, or a client of Kafka does not know
/// a property.
pub(crate) fn compose(
    pipeline: &checked::Pipeline,
    accept_changes: bool,
) -> Result<controller::Pipeline, Failed> {
    refuse_loops(pipeline)?;
    let mut composed =
        controller::Pipeline::new(&pipeline.name, settings(pipeline, accept_changes));
    let commits = compose_inputs(pipeline, &mut composed)?;
    compose_outputs(pipeline, &commits, &mut composed)?;
    Ok(composed)
}

/// The pipeline without its outputs. Nothing is touched yet.
///
/// # Errors
/// As [`compose`], as far as inputs are concerned.
pub(crate) fn compose_reading(
    pipeline: &checked::Pipeline,
) -> Result<controller::Pipeline, Failed> {
    let mut composed = controller::Pipeline::new(&pipeline.name, settings(pipeline, false));
    compose_inputs(pipeline, &mut composed)?;
    Ok(composed)
}

/// Adds the inputs; gives back the consumer groups whose offsets an output commits, by the input's place.
///
/// # Errors
/// If a client of Kafka does not know a property.
fn compose_inputs(
    pipeline: &checked::Pipeline,
    composed: &mut controller::Pipeline,
) -> Result<Vec<(usize, GroupCommits)>, Failed> {
    let mut commits = Vec::new();
    for (place, input) in pipeline.inputs.iter().enumerate() {
        let endpoint: Box<dyn InputEndpoint> = match &input.kind {
            checked::InputKind::File(settings) => {
                Box::new(file::FileInput::new(file_input(settings)))
            }
            checked::InputKind::Kafka(settings) => {
                let mut endpoint = KafkaInput::new(kafka::input(settings));
                if pipeline.is_exactly_once_by_groups() {
                    let (committed, by_output) = endpoint.committed_by_output();
                    commits.push((place, by_output));
                    endpoint = committed;
                }
                endpoint.check().map_err(|error| unusable("input", &input.name, &error))?;
                Box::new(endpoint)
            }
            checked::InputKind::Recording(settings) => {
                let endpoint = TapeInput::at(settings.path.clone(), settings.input.clone());
                Box::new(endpoint)
            }
        };
        composed.inputs.push(controller::Input {
            tuning: input_tuning(input),
            start_after: input.start_after.clone(),
            ..controller::Input::new(&input.name, endpoint)
        });
    }
    Ok(commits)
}

/// Adds the outputs, with the `commits` of [`compose_inputs`].
///
/// # Errors
/// If a client of Kafka does not know a property.
fn compose_outputs(
    pipeline: &checked::Pipeline,
    commits: &[(usize, GroupCommits)],
    composed: &mut controller::Pipeline,
) -> Result<(), Failed> {
    for one in &pipeline.outputs {
        composed.outputs.push(output(&pipeline.name, one, commits)?);
    }
    Ok(())
}

/// The pipeline with tapes in place of its inputs, in their order. Nothing is touched yet.
///
/// # Errors
/// If a client of Kafka does not know a property of an output.
pub(crate) fn compose_replay(
    pipeline: &checked::Pipeline,
    tapes: Vec<TapeInput>,
) -> Result<controller::Pipeline, Failed> {
    let mut composed = controller::Pipeline::new(&pipeline.name, settings(pipeline, false));
    for (input, tape) in pipeline.inputs.iter().zip(tapes) {
        composed = composed.input(&input.name, tape);
    }
    compose_outputs(pipeline, &[], &mut composed)?;
    Ok(composed)
}

fn settings(pipeline: &checked::Pipeline, accept_changes: bool) -> controller::Settings {
    controller::Settings {
        delivery: match pipeline.delivery {
            // The steps of a group cannot be replayed; the output's transactions make up for it.
            _ if pipeline.is_exactly_once_by_groups() => controller::Delivery::AtLeastOnce,
            checked::Delivery::ExactlyOnce => controller::Delivery::ExactlyOnce,
            checked::Delivery::AtLeastOnce => controller::Delivery::AtLeastOnce,
            checked::Delivery::None => controller::Delivery::None,
        },
        state_dir: pipeline.state_dir.clone(),
        fingerprint: pipeline.settings().iter().filter_map(compared).collect(),
        accept_changes,
        tuning: tuning(pipeline),
    }
}

/// What of the pipeline may change while it runs.
fn tuning(pipeline: &checked::Pipeline) -> controller::Tuning {
    controller::Tuning {
        checkpoint_interval: pipeline.checkpoint_interval,
        min_batch_records: pipeline.min_batch_records,
        max_buffering_delay: pipeline.max_buffering_delay,
        max_batch_records: pipeline.max_batch_records,
        stall_timeout: pipeline.stall_timeout,
        on_stall: match pipeline.on_stall {
            checked::OnStall::Wait => controller::OnStall::Wait,
            checked::OnStall::Stop => controller::OnStall::Stop,
        },
        shutdown_timeout: pipeline.shutdown_timeout,
    }
}

/// What the state directory is told of a setting, if anything.
fn compared(setting: &checked::Setting) -> Option<controller::Setting> {
    let class = match setting.rule.class {
        checked::Class::Live => controller::ChangeClass::Live,
        checked::Class::KeepsPosition => controller::ChangeClass::KeepsPosition,
        checked::Class::KeepsPositionAfterStop => controller::ChangeClass::KeepsPositionAfterStop,
        checked::Class::ResetsPosition => controller::ChangeClass::ResetsPosition,
    };
    let value = setting.stored()?.to_owned();
    Some(controller::Setting { path: setting.path.to_string(), value, class })
}

fn unusable(kind: &str, name: &str, error: &EndpointError) -> Failed {
    Failed::new(Code::Configuration, format!("{kind} {name}: {error}"))
}

/// An input that reads what an output writes would never end.
fn refuse_loops(pipeline: &checked::Pipeline) -> Result<(), Failed> {
    for input in &pipeline.inputs {
        let checked::InputKind::File(settings) = &input.kind else { continue };
        let config = file_input(settings);
        for output in &pipeline.outputs {
            let checked::OutputKind::File(written) = &output.kind else { continue };
            // Any segment stands for all of them.
            let path = written.path.to_string_lossy().replace(checked::SEGMENT, "000001");
            let reads = config.would_read(Path::new(&path));
            let reads = reads.map_err(|error| unusable("input", &input.name, &error))?;
            if reads {
                let (input, output) = (&input.name, &output.name);
                let message = format!(
                    "output {output} writes {path}, which input {input} would read again: write to another \
                     directory, or name the input's files so that this one is not among them"
                );
                return Err(Failed::new(Code::Configuration, message));
            }
        }
    }
    Ok(())
}

/// Everything that may change while the pipeline runs.
pub(crate) fn reload(pipeline: &checked::Pipeline) -> controller::Reload {
    let inputs = pipeline.inputs.iter().map(input_tuning).collect();
    controller::Reload { tuning: tuning(pipeline), inputs }
}

/// What people see of it that does not change.
pub(crate) fn facts(pipeline: &checked::Pipeline, file: &Path) -> Facts {
    let input = |input: &checked::Input| {
        let kind = match &input.kind {
            checked::InputKind::File(_) => "file",
            checked::InputKind::Kafka(_) => "kafka",
            checked::InputKind::Recording(_) => "recording",
        };
        Endpoint { name: input.name.clone(), kind }
    };
    let output = |output: &checked::Output| {
        let kind = match &output.kind {
            checked::OutputKind::File(_) => "file",
            checked::OutputKind::Kafka(_) => "kafka",
            checked::OutputKind::Stdout { .. } => "stdout",
            checked::OutputKind::Null => "null",
        };
        Endpoint { name: output.name.clone(), kind }
    };
    Facts {
        pipeline: pipeline.name.clone(),
        file: file.to_owned(),
        delivery: match pipeline.delivery {
            checked::Delivery::ExactlyOnce => "exactly_once",
            checked::Delivery::AtLeastOnce => "at_least_once",
            checked::Delivery::None => "none",
        },
        inputs: pipeline.inputs.iter().map(input).collect(),
        outputs: pipeline.outputs.iter().map(output).collect(),
        started_at: SystemTime::now(),
    }
}

/// What of an input may change while it is read.
fn input_tuning(input: &checked::Input) -> controller::InputTuning {
    let (max_queued_records, max_queued_bytes, max_pending_records) = match &input.kind {
        checked::InputKind::File(settings) => {
            (settings.max_queued_records, settings.max_queued_bytes, None)
        }
        checked::InputKind::Kafka(settings) => {
            let pending = Some(settings.max_pending_records);
            (settings.max_queued_records, settings.max_queued_bytes, pending)
        }
        checked::InputKind::Recording(settings) => {
            (settings.max_queued_records, settings.max_queued_bytes, None)
        }
    };
    controller::InputTuning {
        limits: QueueLimits { max_queued_records, max_queued_bytes },
        max_pending_records,
        max_records_per_second: input.max_records_per_second,
    }
}

fn file_input(input: &checked::FileInput) -> file::FileInputConfig {
    file::FileInputConfig {
        paths: input.paths.clone(),
        framing: match input.format {
            checked::InputFormat::Lines => Framing::Lines,
            checked::InputFormat::LengthDelimited => Framing::Length32,
        },
        max_record_bytes: input.max_record_bytes,
        overlong: match input.overlong {
            checked::Overlong::Truncate => file::Overlong::Truncate,
            checked::Overlong::Skip => file::Overlong::Skip,
            checked::Overlong::Stop => file::Overlong::Stop,
        },
        follow: input.follow,
        start_at: match input.start_at {
            checked::StartAt::Beginning => file::StartAt::Beginning,
            checked::StartAt::End => file::StartAt::End,
        },
    }
}

/// `commits` are of the consumer groups whose offsets the output commits along with the records.
fn output(
    pipeline: &str,
    output: &checked::Output,
    commits: &[(usize, GroupCommits)],
) -> Result<controller::NamedOutput, Failed> {
    let port: Box<dyn OutputPort> = match &output.kind {
        checked::OutputKind::File(settings) => file::file_output(file_output(settings)),
        checked::OutputKind::Kafka(settings) => {
            let id = format!("lockgate-{pipeline}-{}", output.name);
            let endpoint = KafkaOutput::new(kafka::output(settings, id));
            let joined = |endpoint: KafkaOutput, (place, commits): &(usize, GroupCommits)| {
                endpoint.committing(*place, commits.clone())
            };
            let endpoint = commits.iter().fold(endpoint, joined);
            endpoint.check().map_err(|error| unusable("output", &output.name, &error))?;
            Box::new(endpoint)
        }
        checked::OutputKind::Stdout { format } => {
            Box::new(file::StdoutOutput::new(self::format(*format)))
        }
        checked::OutputKind::Null => Box::new(file::NullOutput),
    };
    Ok(controller::NamedOutput { name: output.name.clone(), output: port })
}

fn file_output(output: &checked::FileOutput) -> file::FileOutputConfig {
    file::FileOutputConfig {
        path: output.path.clone(),
        format: format(output.format),
        segments: output.segments.as_ref().map(|segments| file::SegmentConfig {
            max_bytes: segments.max_bytes,
            max_records: segments.max_records,
            compression: match segments.compression {
                checked::Compression::None => file::Compression::None,
                checked::Compression::Gzip => file::Compression::Gzip,
                checked::Compression::Zstd => file::Compression::Zstd,
            },
        }),
    }
}

fn format(format: checked::OutputFormat) -> file::OutputFormat {
    match format {
        checked::OutputFormat::Lines => file::OutputFormat::Lines,
        checked::OutputFormat::Json => file::OutputFormat::Json,
    }
}
