//! `lockgate check`: what would run.

use std::fmt::Write;
use std::path::Path;

use indicatif::HumanBytes;

use super::print;
use crate::compose::compose;
use crate::exit::Failed;
use crate::pipeline::{self, Delivery, InputFormat, InputKind, OutputFormat, OutputKind, Pipeline};

pub(crate) fn check(path: &Path) -> Result<(), Failed> {
    let pipeline = pipeline::load(path)?;
    compose(&pipeline, false)?;
    print(&describe(&pipeline))
}

fn describe(pipeline: &Pipeline) -> String {
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
        let InputKind::File(file) = &input.kind;
        let records = match file.format {
            InputFormat::Lines => "lines",
            InputFormat::LengthDelimited => "length-delimited records",
        };
        let (name, most) = (&input.name, HumanBytes(file.max_record_bytes as u64));
        let end = if file.follow { "followed" } else { "read to their end" };
        let _ = writeln!(text, "  input   {name}: {records} of up to {most} from files, {end}");
        for path in &file.paths {
            let _ = writeln!(text, "            {path}");
        }
    }
    for output in &pipeline.outputs {
        let name = &output.name;
        let _ = match &output.kind {
            OutputKind::File(file) => {
                let cut = if file.segments.is_some() { "segments" } else { "one file" };
                let (records, path) = (format(file.format), file.path.display());
                writeln!(text, "  output  {name}: {records} in {cut}\n            {path}")
            }
            OutputKind::Stdout { format: records } => {
                writeln!(text, "  output  {name}: {} to standard output", format(*records))
            }
            OutputKind::Null => writeln!(text, "  output  {name}: counted and forgotten"),
        };
    }
    text
}

fn format(format: OutputFormat) -> &'static str {
    match format {
        OutputFormat::Lines => "lines",
        OutputFormat::Json => "JSON objects",
    }
}
