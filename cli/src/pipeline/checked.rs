//! The pipeline as it will run.
//!
//! For the rules that span several keys, for defaults that depend on other keys, and for turning
//! what was typed into plain types: this is what the rest of the program sees. Deliberately not
//! for rules about the world: whether a file exists is found out when it is opened.

use std::num::NonZeroU64;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use super::choice::{Compression, Delivery, InputFormat, OnStall, OutputFormat, Overlong, StartAt};
use super::error::{Fault, KeyPath};
use super::node::Node;
use super::raw::{Endpoints, RawFileInput, RawFileOutput, RawInput, RawOutput, RawPipeline};
use super::settings::{Setting, secrets, settings};
use super::units::{ByteSize, Count, Span};

mod control;
mod kafka;
mod order;
mod properties;

pub(crate) use control::{Control, Log};
pub(crate) use kafka::{KafkaInput, KafkaOutput, Mode, OnRefused, StartFrom, Topic, Topics};
pub(crate) use properties::Properties;

/// What stands for the counter in the path of a segmented output.
pub(crate) const SEGMENT: &str = "{segment}";

const LONGEST_NAME: usize = 64;
const LARGEST_RECORD: ByteSize = ByteSize(64 << 20);
const MIN_BATCH_RECORDS: Count = Count(5_000);
const MAX_BATCH_RECORDS: Count = Count(100_000);
const MAX_QUEUED_BYTES: ByteSize = ByteSize(16 << 20);

/// A pipeline whose settings fit together.
#[derive(Debug)]
pub(crate) struct Pipeline {
    /// The name; fit for a file's name.
    pub(crate) name: String,
    /// The inputs, at least one, in the file's order; names are unique.
    pub(crate) inputs: Vec<Input>,
    /// The outputs, at least one, in the file's order; names are unique.
    pub(crate) outputs: Vec<Output>,
    /// What a crash may do to the records.
    pub(crate) delivery: Delivery,
    /// Where the pipeline remembers how far it is.
    pub(crate) state_dir: PathBuf,
    /// The time between two checkpoints; not zero.
    pub(crate) checkpoint_interval: Duration,
    /// A step is cut early when this many records wait; 1 to `max_batch_records`.
    pub(crate) min_batch_records: u64,
    /// The longest time a record waits for a step; may be zero.
    pub(crate) max_buffering_delay: Duration,
    /// The most records of one input in a step.
    pub(crate) max_batch_records: usize,
    /// An endpoint that is silent for this long is stalled; not zero.
    pub(crate) stall_timeout: Duration,
    /// What happens then.
    pub(crate) on_stall: OnStall,
    /// How long a stop waits; may be zero.
    pub(crate) shutdown_timeout: Duration,
    /// Where it can be asked and steered while it runs.
    pub(crate) control: Option<Control>,
    /// What is logged.
    pub(crate) log: Log,
    settings: Vec<Setting>,
}

/// Where records come from.
#[derive(Debug)]
pub(crate) struct Input {
    /// The endpoint's name; fit for a file's name.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: InputKind,
    /// The places of the inputs that have to end before this one is read; without cycles, and all of them do end.
    pub(crate) start_after: Vec<usize>,
    /// The most records that enter steps within a second.
    pub(crate) max_records_per_second: Option<NonZeroU64>,
}

/// The kinds of inputs.
#[derive(Debug)]
pub(crate) enum InputKind {
    /// Reads files.
    File(FileInput),
    /// Reads Kafka topics.
    Kafka(KafkaInput),
    /// Reads what was recorded of an input.
    Recording(RecordingInput),
}

/// The settings of an input that reads a recording.
#[derive(Debug)]
pub(crate) struct RecordingInput {
    /// The recording, or a directory with recordings.
    pub(crate) path: PathBuf,
    /// Of which input, where the directory has several.
    pub(crate) input: Option<String>,
    /// The most records that wait for a step.
    pub(crate) max_queued_records: u64,
    /// The most bytes that wait for a step.
    pub(crate) max_queued_bytes: u64,
}

/// The settings of a file input.
#[derive(Debug)]
pub(crate) struct FileInput {
    /// Paths and globs, at least one. What is special in a glob is escaped in the part that is the
    /// pipeline file's directory.
    pub(crate) paths: Vec<String>,
    /// How the bytes become records.
    pub(crate) format: InputFormat,
    /// The longest record; at most 64 MiB.
    pub(crate) max_record_bytes: usize,
    /// What happens to a longer one.
    pub(crate) overlong: Overlong,
    /// Whether to wait for more at the end.
    pub(crate) follow: bool,
    /// Where the first start begins to read; `End` only with `follow`.
    pub(crate) start_at: StartAt,
    /// The most records that wait for a step.
    pub(crate) max_queued_records: u64,
    /// The most bytes that wait for a step; at least `max_record_bytes`.
    pub(crate) max_queued_bytes: u64,
}

/// Where records go.
#[derive(Debug)]
pub(crate) struct Output {
    /// The endpoint's name; fit for a file's name.
    pub(crate) name: String,
    /// What it is.
    pub(crate) kind: OutputKind,
}

/// The kinds of outputs.
#[derive(Debug)]
pub(crate) enum OutputKind {
    /// Writes one file, or a row of segments.
    File(FileOutput),
    /// Writes to Kafka topics.
    Kafka(KafkaOutput),
    /// Writes to standard output; never with [`Delivery::ExactlyOnce`].
    Stdout {
        /// How records are written.
        format: OutputFormat,
    },
    /// Counts records and forgets them.
    Null,
}

/// The settings of a file output.
#[derive(Debug)]
pub(crate) struct FileOutput {
    /// The file; with segments, [`SEGMENT`] stands once in its last component.
    pub(crate) path: PathBuf,
    /// How records are written.
    pub(crate) format: OutputFormat,
    /// How the output is cut into segments, if it is.
    pub(crate) segments: Option<Segments>,
}

/// When a segment is complete; at least one limit is set.
#[derive(Debug)]
pub(crate) struct Segments {
    /// When it holds this many bytes, before compression.
    pub(crate) max_bytes: Option<u64>,
    /// When it holds this many records.
    pub(crate) max_records: Option<u64>,
    /// How it is compressed.
    pub(crate) compression: Compression,
}

impl Pipeline {
    /// The options of the file, each value with its place, in the order of the places.
    pub(crate) fn settings(&self) -> &[Setting] {
        &self.settings
    }
}

/// Checks `raw`, which was read from `root`; relative paths begin at `directory`.
///
/// # Errors
/// The first rule that is broken.
pub(crate) fn check(raw: RawPipeline, root: &Node, directory: &Path) -> Result<Pipeline, Fault> {
    let checker = Checker { root, directory };
    let top = KeyPath::root();
    checker.name(&top.key("name"), &raw.name)?;
    let settings = settings(&raw, root);
    let checkpoint_interval =
        checker.not_zero(&top.key("checkpoint_interval"), raw.checkpoint_interval)?;
    let stall_timeout = checker.not_zero(&top.key("stall_timeout"), raw.stall_timeout)?;
    let (min_batch, max_batch) =
        checker.batch_records(raw.min_batch_records, raw.max_batch_records)?;
    let state_dir = match &raw.state {
        Some(state) => checker.path(&top.key("state"), state)?,
        None => directory.join(".lockgate").join(&raw.name),
    };
    let control = raw.control.as_ref().map(|raw| checker.control(raw)).transpose()?;
    let log = checker.log(&raw.log)?;
    let inputs = checker.inputs(&raw.inputs)?;
    let outputs = checker.outputs(&raw.outputs, raw.delivery)?;
    checker.distinct_files(&raw)?;
    let mut pipeline = Pipeline {
        name: raw.name,
        inputs,
        outputs,
        delivery: raw.delivery,
        state_dir,
        checkpoint_interval,
        min_batch_records: min_batch.0,
        max_buffering_delay: raw.max_buffering_delay.0,
        max_batch_records: in_memory(max_batch.0),
        stall_timeout,
        on_stall: raw.on_stall,
        shutdown_timeout: raw.shutdown_timeout.0,
        control,
        log,
        settings,
    };
    checker.groups(&pipeline)?;
    checker.distinct_topics(&pipeline)?;
    let secrets = secrets(&pipeline);
    pipeline.settings.extend(secrets);
    pipeline.settings.sort_by_cached_key(|setting| setting.path.to_string());
    Ok(pipeline)
}

/// A limit on what is held in memory; one past the address space limits nothing.
fn in_memory(limit: u64) -> usize {
    usize::try_from(limit).unwrap_or(usize::MAX)
}

/// The rules, with what is needed to say where one is broken.
struct Checker<'c> {
    root: &'c Node,
    directory: &'c Path,
}

impl Checker<'_> {
    /// A fault of the value at `path`, or of what it was left out of.
    fn fault<T>(&self, path: &KeyPath, message: impl Into<String>) -> Result<T, Fault> {
        let position = self.root.nearest(path).position;
        Err(Fault { position, path: path.clone(), message: message.into() })
    }

    /// A fault of the key that `path` ends with.
    fn fault_of_key<T>(&self, path: &KeyPath, message: impl Into<String>) -> Result<T, Fault> {
        let position = self.root.nearest(path).key_position;
        Err(Fault { position, path: path.clone(), message: message.into() })
    }

    fn name(&self, path: &KeyPath, name: &str) -> Result<(), Fault> {
        match name_rule(name) {
            Ok(()) => Ok(()),
            Err(rule) => {
                let found = self.root.nearest(path).found();
                self.fault(path, format!("{rule}, found {found}"))
            }
        }
    }

    fn not_zero(&self, path: &KeyPath, span: Span) -> Result<Duration, Fault> {
        if span.0.is_zero() {
            return self.fault(path, "must be longer than zero");
        }
        Ok(span.0)
    }

    /// A limit that is left out gives way to the one that is set.
    fn batch_records(
        &self,
        min: Option<Count>,
        max: Option<Count>,
    ) -> Result<(Count, Count), Fault> {
        match (min, max) {
            (Some(min), Some(max)) if min > max => {
                let path = KeyPath::root().key("min_batch_records");
                self.fault(&path, "must not be more than max_batch_records")
            }
            (Some(min), max) => Ok((min, max.unwrap_or(MAX_BATCH_RECORDS.max(min)))),
            (None, max) => {
                let max = max.unwrap_or(MAX_BATCH_RECORDS);
                Ok((MIN_BATCH_RECORDS.min(max), max))
            }
        }
    }

    fn path(&self, path: &KeyPath, text: &str) -> Result<PathBuf, Fault> {
        if text.is_empty() {
            return self.fault(path, "a path must not be empty");
        }
        if text.contains('\0') {
            return self.fault(path, "a path must not hold a NUL character");
        }
        Ok(self.directory.join(text))
    }

    /// A path that may be a glob. The directory is not part of what was typed as a glob.
    fn pattern(&self, path: &KeyPath, text: &str) -> Result<String, Fault> {
        let full = self.path(path, text)?;
        let Some(full) = full.to_str() else {
            return self.fault(path, "the pipeline file's directory has a name that is not UTF-8");
        };
        match full.strip_suffix(text) {
            Some(directory) if !Path::new(text).is_absolute() => {
                let special = |c| matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | '\\');
                let escaped = directory
                    .chars()
                    .map(|c| if special(c) { format!("[{c}]") } else { c.to_string() });
                Ok(escaped.collect::<String>() + text)
            }
            _ => Ok(text.to_owned()),
        }
    }

    fn endpoints<T, U>(
        &self,
        group: &str,
        endpoints: &Endpoints<T>,
        check: impl Fn(&KeyPath, &T) -> Result<U, Fault>,
    ) -> Result<Vec<(String, U)>, Fault> {
        let group = KeyPath::root().key(group);
        if endpoints.0.is_empty() {
            return self.fault(&group, "at least one endpoint is needed");
        }
        let check = |(name, raw): &(String, T)| {
            let path = group.key(name);
            if name.contains("${") {
                return self.fault_of_key(&path, "a key cannot hold a variable");
            }
            if let Err(rule) = name_rule(name) {
                return self.fault_of_key(&path, rule);
            }
            let checked = check(&path, raw)?;
            Ok((name.clone(), checked))
        };
        endpoints.0.iter().map(check).collect()
    }

    fn inputs(&self, inputs: &Endpoints<RawInput>) -> Result<Vec<Input>, Fault> {
        let checked = self.endpoints("inputs", inputs, |path, raw| match raw {
            RawInput::File(raw) => Ok(InputKind::File(self.file_input(&path.key("file"), raw)?)),
            RawInput::Kafka(raw) => {
                Ok(InputKind::Kafka(self.kafka_input(&path.key("kafka"), raw)?))
            }
            RawInput::Recording(raw) => Ok(InputKind::Recording(RecordingInput {
                path: self.path(&path.key("recording").key("path"), &raw.path)?,
                input: raw.input.clone(),
                max_queued_records: raw.max_queued_records.0,
                max_queued_bytes: raw.max_queued_bytes.0,
            })),
        })?;
        let input = |((name, kind), (_, raw)): ((String, InputKind), &(String, RawInput))| Input {
            name,
            kind,
            start_after: Vec::new(),
            max_records_per_second: raw.max_records_per_second(),
        };
        let mut checked: Vec<Input> = checked.into_iter().zip(&inputs.0).map(input).collect();
        self.order(inputs, &mut checked)?;
        Ok(checked)
    }

    fn file_input(&self, path: &KeyPath, raw: &RawFileInput) -> Result<FileInput, Fault> {
        let paths_path = path.key("paths");
        if raw.paths.0.is_empty() {
            return self.fault(&paths_path, "at least one path is needed");
        }
        let mut paths = Vec::new();
        for (index, text) in raw.paths.0.iter().enumerate() {
            paths.push(self.pattern(&paths_path.index(index), text)?);
        }
        let largest = raw.max_record_bytes;
        if largest > LARGEST_RECORD {
            return self.fault(&path.key("max_record_bytes"), "must not be more than 64MiB");
        }
        let queued = raw.max_queued_bytes.unwrap_or(MAX_QUEUED_BYTES.max(largest));
        if queued < largest {
            let message = "must not be less than max_record_bytes: a record must fit";
            return self.fault(&path.key("max_queued_bytes"), message);
        }
        if raw.start_at == StartAt::End && !raw.follow {
            let message = "\"end\" needs \"follow: true\"; there would be nothing to read";
            return self.fault(&path.key("start_at"), message);
        }
        Ok(FileInput {
            paths,
            format: raw.format,
            max_record_bytes: in_memory(largest.0),
            overlong: raw.overlong,
            follow: raw.follow,
            start_at: raw.start_at,
            max_queued_records: raw.max_queued_records.0,
            max_queued_bytes: queued.0,
        })
    }

    fn outputs(
        &self,
        outputs: &Endpoints<RawOutput>,
        delivery: Delivery,
    ) -> Result<Vec<Output>, Fault> {
        let checked = self.endpoints("outputs", outputs, |path, raw| match raw {
            RawOutput::File(raw) => Ok(OutputKind::File(self.file_output(&path.key("file"), raw)?)),
            RawOutput::Kafka(raw) => {
                Ok(OutputKind::Kafka(self.kafka_output(&path.key("kafka"), raw, delivery)?))
            }
            RawOutput::Stdout(_) if delivery == Delivery::ExactlyOnce => self.fault_of_key(
                &path.key("stdout"),
                "standard output cannot be rolled back after a crash, so it cannot be \
                 exactly_once; write \"delivery: at_least_once\", or use a file",
            ),
            RawOutput::Stdout(raw) => Ok(OutputKind::Stdout { format: raw.format }),
            RawOutput::Null(_) => Ok(OutputKind::Null),
        })?;
        Ok(checked.into_iter().map(|(name, kind)| Output { name, kind }).collect())
    }

    fn file_output(&self, path: &KeyPath, raw: &RawFileOutput) -> Result<FileOutput, Fault> {
        let path_path = path.key("path");
        let file = self.path(&path_path, &raw.path)?;
        let directory = raw.path.ends_with('/') || raw.path.ends_with("/.");
        let name = match file.file_name() {
            Some(name) if !directory => name.to_string_lossy(),
            _ => return self.fault(&path_path, "must name a file, not a directory"),
        };
        let written = raw.path.matches(SEGMENT).count();
        if written > name.matches(SEGMENT).count() {
            return self
                .fault(&path_path, "{segment} must stand in the file's name, not before it");
        }
        if written > 1 {
            return self.fault(&path_path, "{segment} must stand only once");
        }
        if written == 0 {
            let needs = "needs {segment} in the path, such as \"out/part-{segment}.log\"";
            if raw.segment_bytes.is_some() {
                return self.fault(&path.key("segment_bytes"), needs);
            }
            if raw.segment_records.is_some() {
                return self.fault(&path.key("segment_records"), needs);
            }
            if raw.compression != Compression::None {
                return self.fault(&path.key("compression"), needs);
            }
            return Ok(FileOutput { path: file, format: raw.format, segments: None });
        }
        if raw.segment_bytes.is_none() && raw.segment_records.is_none() {
            let message = "{segment} needs segment_bytes or segment_records, \
                to say when a segment is complete";
            return self.fault(&path_path, message);
        }
        let segments = Segments {
            max_bytes: raw.segment_bytes.map(|size| size.0),
            max_records: raw.segment_records.map(|count| count.0),
            compression: raw.compression,
        };
        Ok(FileOutput { path: file, format: raw.format, segments: Some(segments) })
    }

    /// No file is written by two outputs, and none is both read and written.
    fn distinct_files(&self, raw: &RawPipeline) -> Result<(), Fault> {
        let mut taken: Vec<(PathBuf, KeyPath)> = Vec::new();
        for (name, input) in &raw.inputs.0 {
            let RawInput::File(file) = input else { continue };
            let path = KeyPath::root().key("inputs").key(name).key("file").key("paths");
            for (index, text) in file.paths.0.iter().enumerate() {
                taken.push((self.plain_path(text), path.index(index)));
            }
        }
        for (name, output) in &raw.outputs.0 {
            let RawOutput::File(file) = output else { continue };
            let path = KeyPath::root().key("outputs").key(name).key("file").key("path");
            let file = self.plain_path(&file.path);
            if let Some((_, other)) = taken.iter().find(|(known, _)| *known == file) {
                let line = self.root.nearest(other).position.line;
                return self.fault(&path, format!("the same file as {other} (line {line})"));
            }
            taken.push((file, path));
        }
        Ok(())
    }

    /// `./out/x` and `out/./x` are `out/x`.
    fn plain_path(&self, text: &str) -> PathBuf {
        let path = self.directory.join(text);
        path.components().filter(|component| *component != Component::CurDir).collect()
    }
}

/// The rule for the names of pipelines and endpoints, which also name files.
fn name_rule(name: &str) -> Result<(), &'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.is_empty() {
        Err("a name must not be empty")
    } else if !name.chars().all(allowed) {
        Err("a name has only letters (a to z, A to Z), digits, \"-\", \"_\" and \".\"")
    } else if name.len() > LONGEST_NAME {
        Err("a name has at most 64 characters")
    } else if matches!(name, "." | "..") {
        Err("a name must not be \".\" or \"..\"")
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::parse;

    fn pipeline(text: &str) -> Pipeline {
        let environment = |name: &str| match name {
            "N" => Some("500".into()),
            "YES" => Some("true".into()),
            "OUT" => Some("/data/out".into()),
            _ => None,
        };
        parse(text, Path::new("conf/pipeline.yaml"), &environment).expect("valid")
    }

    fn file_input(pipeline: &Pipeline) -> &FileInput {
        match &pipeline.inputs[0].kind {
            InputKind::File(file) => file,
            other => panic!("not a file: {other:?}"),
        }
    }

    fn file_output(pipeline: &Pipeline) -> &FileOutput {
        match &pipeline.outputs[0].kind {
            OutputKind::File(file) => file,
            other => panic!("not a file: {other:?}"),
        }
    }

    #[test]
    fn the_shortest_pipeline_has_the_stated_defaults() {
        let mut pipeline = pipeline(
            "name: orders\ninputs: {a: {file: {paths: in.log}}}\noutputs: {b: {file: {path: o}}}",
        );
        pipeline.settings.clear();
        insta::assert_debug_snapshot!(pipeline, @r#"
        Pipeline {
            name: "orders",
            inputs: [
                Input {
                    name: "a",
                    kind: File(
                        FileInput {
                            paths: [
                                "conf/in.log",
                            ],
                            format: Lines,
                            max_record_bytes: 1048576,
                            overlong: Truncate,
                            follow: false,
                            start_at: Beginning,
                            max_queued_records: 1000000,
                            max_queued_bytes: 16777216,
                        },
                    ),
                    start_after: [],
                    max_records_per_second: None,
                },
            ],
            outputs: [
                Output {
                    name: "b",
                    kind: File(
                        FileOutput {
                            path: "conf/o",
                            format: Lines,
                            segments: None,
                        },
                    ),
                },
            ],
            delivery: ExactlyOnce,
            state_dir: "conf/.lockgate/orders",
            checkpoint_interval: 10s,
            min_batch_records: 5000,
            max_buffering_delay: 5ms,
            max_batch_records: 100000,
            stall_timeout: 60s,
            on_stall: Wait,
            shutdown_timeout: 30s,
            control: None,
            log: Log {
                level: Info,
                targets: {},
                format: Text,
            },
            settings: [],
        }
        "#);
    }

    #[test]
    fn json_with_everything_set() {
        let mut pipeline = pipeline(
            r#"{
	"name": "a.b-c_D",
	"delivery": "at_least_once",
	"state": "/var/lib/x",
	"checkpoint_interval": "1m30s",
	"min_batch_records": 1,
	"max_buffering_delay": "0s",
	"max_batch_records": 2,
	"stall_timeout": "2h",
	"on_stall": "stop",
	"shutdown_timeout": "0s",
	"control": { "listen": "[::1]:8080", "tls": { "certificate": "tls/c.pem", "key": "/tls/k.pem" } },
	"log": { "level": "warn", "targets": { "lockgate::compose": "trace" }, "format": "json" },
	"inputs": {
		"zebra": { "file": {
			"paths": ["in/\u00e9*.log", "/abs/old.log.gz"],
			"format": "length_delimited",
			"max_record_bytes": "64MiB",
			"overlong": "stop",
			"follow": true,
			"start_at": "end",
			"max_queued_records": 10,
			"max_queued_bytes": 67108864,
			"start_after": "ant",
			"max_records_per_second": 5
		} },
		"ant": { "file": { "paths": "x", "overlong": "skip" } }
	},
	"outputs": {
		"parts": { "file": {
			"path": "out/part-{segment}.gz",
			"format": "json",
			"segment_bytes": "1GB",
			"segment_records": 7,
			"compression": "gzip"
		} },
		"shown": { "stdout": { "format": "json" } },
		"gone": { "null": {} }
	}
}"#,
        );
        pipeline.settings.clear();
        insta::assert_debug_snapshot!(pipeline, @r#"
        Pipeline {
            name: "a.b-c_D",
            inputs: [
                Input {
                    name: "zebra",
                    kind: File(
                        FileInput {
                            paths: [
                                "conf/in/é*.log",
                                "/abs/old.log.gz",
                            ],
                            format: LengthDelimited,
                            max_record_bytes: 67108864,
                            overlong: Stop,
                            follow: true,
                            start_at: End,
                            max_queued_records: 10,
                            max_queued_bytes: 67108864,
                        },
                    ),
                    start_after: [
                        1,
                    ],
                    max_records_per_second: Some(
                        5,
                    ),
                },
                Input {
                    name: "ant",
                    kind: File(
                        FileInput {
                            paths: [
                                "conf/x",
                            ],
                            format: Lines,
                            max_record_bytes: 1048576,
                            overlong: Skip,
                            follow: false,
                            start_at: Beginning,
                            max_queued_records: 1000000,
                            max_queued_bytes: 16777216,
                        },
                    ),
                    start_after: [],
                    max_records_per_second: None,
                },
            ],
            outputs: [
                Output {
                    name: "parts",
                    kind: File(
                        FileOutput {
                            path: "conf/out/part-{segment}.gz",
                            format: Json,
                            segments: Some(
                                Segments {
                                    max_bytes: Some(
                                        1000000000,
                                    ),
                                    max_records: Some(
                                        7,
                                    ),
                                    compression: Gzip,
                                },
                            ),
                        },
                    ),
                },
                Output {
                    name: "shown",
                    kind: Stdout {
                        format: Json,
                    },
                },
                Output {
                    name: "gone",
                    kind: Null,
                },
            ],
            delivery: AtLeastOnce,
            state_dir: "/var/lib/x",
            checkpoint_interval: 90s,
            min_batch_records: 1,
            max_buffering_delay: 0ns,
            max_batch_records: 2,
            stall_timeout: 7200s,
            on_stall: Stop,
            shutdown_timeout: 0ns,
            control: Some(
                Control {
                    listen: [::1]:8080,
                    token: None,
                    token_file: None,
                    tls: Some(
                        TlsFiles {
                            certificate: "conf/tls/c.pem",
                            key: "/tls/k.pem",
                        },
                    ),
                },
            ),
            log: Log {
                level: Warn,
                targets: {
                    "lockgate::compose": Trace,
                },
                format: Json,
            },
            settings: [],
        }
        "#);
    }

    #[test]
    fn kinds_without_settings_need_no_braces() {
        let pipeline = pipeline(
            "name: x\ndelivery: none\ninputs: {a: {file: {paths: [i]}}}\n\
             outputs:\n  a:\n    null:\n  b:\n    null: {}\n  c:\n    stdout:\n",
        );
        let kinds: Vec<String> =
            pipeline.outputs.iter().map(|output| format!("{:?}", output.kind)).collect();
        assert_eq!(kinds, ["Null", "Null", "Stdout { format: Lines }"]);
    }

    #[test]
    fn variables_take_the_type_that_is_wanted() {
        let pipeline = pipeline(
            "name: ${NAME:-x}\n\
             delivery: ${MODE:-at_least_once}\n\
             checkpoint_interval: ${T:-3s}\n\
             min_batch_records: ${N}\n\
             inputs:\n  a:\n    file:\n      paths: ${P:-p$$}\n      follow: ${YES}\n      \
             max_queued_records: \"${N}\"\n      max_queued_bytes: ${B:-2000000}\n\
             outputs:\n  b:\n    file:\n      path: ${OUT}/x\n",
        );
        assert_eq!(pipeline.name, "x");
        assert_eq!(pipeline.delivery, Delivery::AtLeastOnce);
        assert_eq!(pipeline.checkpoint_interval, Duration::from_secs(3));
        assert_eq!(pipeline.min_batch_records, 500);
        let input = file_input(&pipeline);
        assert_eq!(input.paths, ["conf/p$"]);
        assert!(input.follow);
        assert_eq!((input.max_queued_records, input.max_queued_bytes), (500, 2_000_000));
        assert_eq!(file_output(&pipeline).path, Path::new("/data/out/x"));
    }

    #[test]
    fn a_limit_that_is_left_out_gives_way() {
        let check = |settings: &str, expected: (u64, usize)| {
            let pipeline = pipeline(&format!(
                "name: x\n{settings}\ninputs: {{a: {{file: {{paths: i}}}}}}\n\
                 outputs: {{b: {{null: }}}}"
            ));
            assert_eq!((pipeline.min_batch_records, pipeline.max_batch_records), expected);
        };
        check("", (5_000, 100_000));
        check("max_batch_records: 10", (10, 10));
        check("min_batch_records: 200000", (200_000, 200_000));
        check("min_batch_records: 5\nmax_batch_records: 5", (5, 5));

        let pipeline = pipeline(
            "name: x\ninputs: {a: {file: {paths: i, max_record_bytes: 64MiB}}}\n\
             outputs: {b: {null: }}",
        );
        assert_eq!(file_input(&pipeline).max_queued_bytes, 64 << 20);
    }

    #[test]
    fn a_directory_is_no_glob() {
        let text = "name: x\ninputs: {a: {file: {paths: ['[a]*', /b/*]}}}\noutputs: {b: {null: }}";
        let pipeline = parse(text, Path::new("/x[1]/p.yaml"), &|_| None).expect("valid");
        assert_eq!(file_input(&pipeline).paths, ["/x[[]1[]]/[a]*", "/b/*"]);
        assert_eq!(pipeline.state_dir, Path::new("/x[1]/.lockgate/x"));
    }

    #[test]
    fn names() {
        let check = |name: &str, allowed| assert_eq!(name_rule(name).is_ok(), allowed, "{name:?}");
        for name in ["a", "A-b_c.9", "...", ".hidden", "-", &"x".repeat(64)] {
            check(name, true);
        }
        for name in ["", ".", "..", "a b", "a/b", "é", "a\n", "${x}", &"x".repeat(65)] {
            check(name, false);
        }
    }
}
