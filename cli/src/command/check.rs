//! `lockgate check`: what would run.

use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use indicatif::HumanBytes;

use super::print;
use crate::compose::compose;
use crate::exit::Failed;
use crate::pipeline::{
    self, Delivery, FileInput, Input, InputFormat, InputKind, KafkaInput, KafkaOutput, Kept, Mode,
    OnRefused, OutputFormat, OutputKind, PartitionChoice, Pipeline, StartFrom, Topic, Topics,
};

pub(crate) fn check(path: &Path) -> Result<(), Failed> {
    let pipeline = pipeline::load(path)?;
    compose(&pipeline, false)?;
    print(&describe(&pipeline))
}

pub(crate) fn describe(pipeline: &Pipeline) -> String {
    let delivery = match pipeline.delivery {
        Delivery::ExactlyOnce => "exactly once",
        Delivery::AtLeastOnce => "at least once",
        Delivery::None => "no promise",
    };
    let mut text = format!("{}: {delivery}", pipeline.name);
    // Writing to a string does not fail.
    let _ = match pipeline.delivery {
        Delivery::None => writeln!(text),
        _ => writeln!(
            text,
            ", a checkpoint every {:?}, state in {}",
            pipeline.checkpoint_interval,
            pipeline.state_dir.display()
        ),
    };
    for input in &pipeline.inputs {
        let name = &input.name;
        match &input.kind {
            InputKind::File(file) => file_input(&mut text, name, file),
            InputKind::Kafka(kafka) => kafka_input(&mut text, name, kafka),
            InputKind::Recording(recording) => {
                let of = recording.input.as_ref();
                let of = of.map_or_else(String::new, |input| format!(" of the input {input}"));
                let path = recording.path.display();
                let _ =
                    writeln!(text, "  input   {name}: what was recorded{of}\n            {path}");
            }
        }
        when(&mut text, input, pipeline);
    }
    for output in &pipeline.outputs {
        let name = &output.name;
        let _ = match &output.kind {
            OutputKind::File(file) => {
                let cut = if file.segments.is_some() { "segments" } else { "one file" };
                let (records, path) = (format(file.format), file.path.display());
                writeln!(text, "  output  {name}: {records} in {cut}\n            {path}")
            }
            OutputKind::Kafka(kafka) => {
                kafka_output(&mut text, name, kafka);
                Ok(())
            }
            OutputKind::Stdout { format: records } => {
                writeln!(text, "  output  {name}: {} to standard output", format(*records))
            }
            OutputKind::Null => writeln!(text, "  output  {name}: counted and forgotten"),
        };
    }
    if let Some(control) = &pipeline.control {
        let token = if control.token.is_some() { "with a token" } else { "without a token" };
        let tls = if control.tls.is_some() { ", over TLS" } else { "" };
        let _ = writeln!(text, "  control {}, {token}{tls}", control.listen);
    }
    text
}

/// After which inputs, and how fast.
fn when(text: &mut String, input: &Input, pipeline: &Pipeline) {
    let before: Vec<&str> =
        input.start_after.iter().map(|place| pipeline.inputs[*place].name.as_str()).collect();
    if !before.is_empty() {
        let _ = writeln!(text, "            when these have ended: {}", before.join(", "));
    }
    if let Some(most) = input.max_records_per_second {
        let _ = writeln!(text, "            at most {most} records per second");
    }
}

fn file_input(text: &mut String, name: &str, file: &FileInput) {
    let records = match file.format {
        InputFormat::Lines => "lines",
        InputFormat::LengthDelimited => "length-delimited records",
    };
    let most = HumanBytes(file.max_record_bytes as u64);
    let end = if file.follow { "followed" } else { "read to their end" };
    let _ = writeln!(text, "  input   {name}: {records} of up to {most} from files, {end}");
    for path in &file.paths {
        let _ = writeln!(text, "            {path}");
    }
}

fn kafka_input(text: &mut String, name: &str, kafka: &KafkaInput) {
    let start = match &kafka.start_from {
        StartFrom::Earliest => "from their beginning".to_owned(),
        StartFrom::Latest => "from their end on".to_owned(),
        StartFrom::Timestamp(ms) => {
            let at = u64::try_from(*ms).unwrap_or_default();
            let at = UNIX_EPOCH + Duration::from_millis(at);
            format!("from {} on", humantime::format_rfc3339(at))
        }
        StartFrom::Offsets(_) => "from the given offsets".to_owned(),
    };
    let end = if kafka.stop_at.is_some() { "to their end" } else { "for ever" };
    let by = match &kafka.mode {
        Mode::Assign { partitions: None, .. } => "all partitions".to_owned(),
        Mode::Assign { partitions: Some(numbers), .. } => {
            let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
            format!("partitions {}", numbers.join(", "))
        }
        Mode::Group { id, .. } => format!("as a member of the group {id}"),
    };
    let brokers = kafka.brokers.join(",");
    let _ = writeln!(text, "  input   {name}: topics of Kafka at {brokers}, {by}, {start}, {end}");
    match &kafka.topics {
        Topics::Names(names) => {
            for name in names {
                let _ = writeln!(text, "            {name}");
            }
        }
        Topics::Pattern(pattern) => {
            let _ = writeln!(text, "            {pattern} (a pattern)");
        }
    }
    properties(text, kafka.properties.names());
}

fn kafka_output(text: &mut String, name: &str, kafka: &KafkaOutput) {
    let brokers = kafka.brokers.join(",");
    let how = if kafka.exactly_once { "in transactions" } else { "without transactions" };
    let partition = match kafka.partition {
        PartitionChoice::ByKey => "by key",
        PartitionChoice::Kept => "to the partition they come from",
    };
    let mut without = String::new();
    for (part, choice) in [("keys", kafka.key), ("headers", kafka.headers)] {
        if choice == Kept::Dropped {
            without += &format!(", without {part}");
        }
    }
    let refused = match &kafka.on_refused {
        OnRefused::Stop => String::new(),
        OnRefused::Skip => ", refused ones skipped".to_owned(),
        OnRefused::DeadLetter(topic) => format!(", refused ones to {topic}"),
    };
    let _ = writeln!(
        text,
        "  output  {name}: records to Kafka at {brokers}, {how}, {partition}{without}{refused}"
    );
    let _ = match &kafka.topic {
        Topic::Fixed(name) => writeln!(text, "            {name}"),
        Topic::OfRecord { header: None, .. } => {
            writeln!(text, "            (the topic they come from)")
        }
        Topic::OfRecord { header: Some(header), .. } => {
            writeln!(text, "            (the topic that the header {header:?} names)")
        }
    };
    properties(text, kafka.properties.names());
}

/// Only the names: any value may be secret.
fn properties<'a>(text: &mut String, names: impl Iterator<Item = &'a str>) {
    let names: Vec<&str> = names.collect();
    if !names.is_empty() {
        let _ = writeln!(text, "            with {}", names.join(", "));
    }
}

fn format(format: OutputFormat) -> &'static str {
    match format {
        OutputFormat::Lines => "lines",
        OutputFormat::Json => "JSON objects",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn when_inputs_are_read_and_where_to_ask_is_described() {
        let text = "
name: x
control: {listen: 'localhost:8080', tls: {certificate: c, key: k}}
inputs:
  new: {file: {paths: new.log, follow: true, start_after: [old, older]}}
  old: {recording: {path: old.parquet, max_records_per_second: 500, start_after: older}}
  older: {recording: {path: older.parquet}}
outputs: {gone: {null: }}
";
        let pipeline = pipeline::parse(text, Path::new("p.yaml"), &|_| None).expect("valid");
        insta::assert_snapshot!(describe(&pipeline), @"
        x: exactly once, a checkpoint every 10s, state in .lockgate/x
          input   new: lines of up to 1.00 MiB from files, followed
                    new.log
                    when these have ended: old, older
          input   old: what was recorded
                    old.parquet
                    when these have ended: older
                    at most 500 records per second
          input   older: what was recorded
                    older.parquet
          output  gone: counted and forgotten
          control 127.0.0.1:8080, without a token, over TLS
        ");
    }

    #[test]
    fn kafka_is_described_without_a_broker_and_without_secrets() {
        let text = "
name: x
inputs:
  all:
    kafka:
      brokers: [h:1, i:2]
      topics: [orders, returns]
      partitions: [0, 2]
      start_from: {timestamp: 2026-01-31T12:00:00Z}
      stop_at: end
      properties: {sasl.password: hunter2, fetch.min.bytes: 1}
  some:
    kafka: {brokers: 'h:1', topic: '^o.*'}
outputs:
  copy:
    kafka: {brokers: 'j:1', topic: copy, key: dropped, on_refused: {dead_letter: dead}}
  back:
    kafka: {brokers: 'j:1', topic: {from: header, name: to, position_topic: p}, partition: kept}
";
        let pipeline = pipeline::parse(text, Path::new("p.yaml"), &|_| None).expect("valid");
        insta::assert_snapshot!(describe(&pipeline), @r#"
        x: exactly once, a checkpoint every 10s, state in .lockgate/x
          input   all: topics of Kafka at h:1,i:2, partitions 0, 2, from 2026-01-31T12:00:00Z on, to their end
                    orders
                    returns
                    with fetch.min.bytes, sasl.password
          input   some: topics of Kafka at h:1, all partitions, from their beginning, for ever
                    ^o.* (a pattern)
          output  copy: records to Kafka at j:1, in transactions, by key, without keys, refused ones to dead
                    copy
          output  back: records to Kafka at j:1, in transactions, to the partition they come from
                    (the topic that the header "to" names)
        "#);
        let debug = format!("{pipeline:?}");
        assert!(debug.contains("sasl.password") && !debug.contains("hunter2"), "{debug}");
        assert!(!format!("{:?}", pipeline.settings()).contains("hunter2"));
    }
}
