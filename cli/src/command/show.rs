//! `lockgate show`: what was recorded.

mod json;
mod table;

pub(crate) use json::Line;

use std::path::Path;

use lockgate_core::{Batch, Framing, PartDigest, Partition, Record};
use lockgate_file_adapter::recording::Part;
use lockgate_file_adapter::tape::Tape;

use super::replay::partition;
use super::verify::{span, steps_of};
use super::{inspect, offer, print};
use crate::args::Show;
use crate::excerpt::{self, excerpt};
use crate::exit::{Code, Failed};
use crate::progress::counted;
use crate::subject::Subject;
use table::Table;

/// How many records a person is shown, unless they say.
const FIRST: u64 = 20;
/// How much JSON is written at once.
const JSON_BYTES: usize = 64 << 10;

pub(crate) fn show(args: &Show) -> Result<(), Failed> {
    let subject = Subject::of(&args.what)?;
    if let Subject::State(directory) = &subject {
        return show_state(directory, args);
    }
    let tapes = subject.tapes(args.input.as_deref())?;
    let wanted = Wanted::new(args);
    if let Some(step) = wanted.step
        && !tapes.values().any(|tape| number_of(tape, step).is_some())
    {
        let known: Vec<String> = (tapes.iter())
            .map(|(input, tape)| format!("{input}: {}", steps_in_words(tape)))
            .collect();
        let message = format!("step {step} was not recorded ({})", known.join("; "));
        return Err(Failed::new(Code::Data, message));
    }
    let mut seen = false;
    for (number, (input, tape)) in tapes.iter().enumerate() {
        let mut view: Box<dyn View> = match args.json {
            true => Box::new(Lines { input, text: String::new() }),
            false => {
                let gap = if number > 0 { "\n" } else { "" };
                print(&format!("{gap}{}", heading(input, tape, wanted.step)))?;
                Box::new(Table::new(excerpt::width()))
            }
        };
        seen |= wanted.give(tape, view.as_mut())?;
    }
    match &wanted.partition {
        Some(typed) if !seen && wanted.records > 0 => {
            let message = format!("no record of {typed} is among those asked for");
            Err(Failed::new(Code::Data, message))
        }
        _ => Ok(()),
    }
}

fn show_state(directory: &Path, args: &Show) -> Result<(), Failed> {
    let Show { what: _, input, step, partition, records, json } = args;
    if input.is_some() || step.is_some() || partition.is_some() || records.is_some() {
        let message = format!(
            "{0} is a state directory, which has positions and hashes of steps, and no records; use `lockgate inspect \
             {0}`, or give what `lockgate run --record` wrote",
            directory.display()
        );
        return Err(Failed::new(Code::Usage, message));
    }
    inspect(directory, *json)
}

/// Where records are shown.
trait View {
    fn record(&mut self, step: Option<u64>, record: &Record<'_>);
    /// What is to be written now; all of it if `is_last`.
    fn text(&mut self, is_last: bool) -> Option<String>;
}

impl View for Table {
    fn record(&mut self, step: Option<u64>, record: &Record<'_>) {
        self.push(step, record);
    }

    fn text(&mut self, is_last: bool) -> Option<String> {
        (is_last || self.is_full()).then(|| self.take_text())
    }
}

/// JSON, one line for each record.
struct Lines<'a> {
    input: &'a str,
    text: String,
}

impl View for Lines<'_> {
    fn record(&mut self, step: Option<u64>, record: &Record<'_>) {
        json::Line { by: ("input", self.input), step, record: *record }.push_to(&mut self.text);
    }

    fn text(&mut self, is_last: bool) -> Option<String> {
        (is_last || self.text.len() >= JSON_BYTES).then(|| std::mem::take(&mut self.text))
    }
}

/// Which records are asked for.
struct Wanted {
    step: Option<u64>,
    partition: Option<Partition>,
    records: u64,
}

impl Wanted {
    fn new(args: &Show) -> Self {
        let all = if args.json { u64::MAX } else { FIRST };
        Self {
            step: args.step,
            partition: args.partition.as_deref().map(partition),
            records: args.records.unwrap_or(all),
        }
    }

    /// Gives the records to `view` and writes what it makes of them. Whether there were any.
    fn give(&self, tape: &Tape, view: &mut dyn View) -> Result<bool, Failed> {
        let parts = match self.step {
            None => 0..tape.parts().len(),
            Some(step) => number_of(tape, step).map_or(0..0, |number| number..number + 1),
        };
        let mut left = self.records;
        let mut seen = false;
        // So that nothing is read for the summary alone.
        let parts = if left == 0 && self.step.is_none() { 0..0 } else { parts };
        for part in tape.read(parts.start).take(parts.len()) {
            let (number, batches) = part?;
            let part = tape.parts()[number];
            if self.step.is_some() {
                check(number, &part, &batches)?;
            }
            let batches = batches.iter().filter(|batch| self.has(batch.partition()));
            for record in batches.flat_map(Batch::iter) {
                if left == 0 {
                    break;
                }
                left -= 1;
                seen = true;
                view.record(part.step, &record);
                if let Some(text) = view.text(false)
                    && !offer(&text)?
                {
                    return Ok(true);
                }
            }
            if left == 0 {
                break;
            }
        }
        if let Some(text) = view.text(true) {
            print(&text)?;
        }
        Ok(seen)
    }

    fn has(&self, partition: &Partition) -> bool {
        let Some(wanted) = &self.partition else { return true };
        // Files are recorded by their whole path, and typed as they are seen from here.
        let is_path = || {
            let absolute = std::path::absolute(&wanted.source).ok();
            wanted.number.is_none()
                && partition.number.is_none()
                && absolute.as_deref() == Some(Path::new(&partition.source))
        };
        wanted == partition || is_path()
    }
}

/// The number of the part that is this step. Where no steps are known, parts are counted from 1.
fn number_of(tape: &Tape, step: u64) -> Option<usize> {
    let parts = tape.parts();
    match parts.first()?.step {
        None => usize::try_from(step).ok()?.checked_sub(1).filter(|number| *number < parts.len()),
        Some(_) => parts.binary_search_by_key(&Some(step), |part| part.step).ok(),
    }
}

/// Makes sure that what is shown as a step is what was recorded as that.
fn check(number: usize, part: &Part, batches: &[Batch]) -> Result<(), Failed> {
    let found = PartDigest::of(batches);
    if found == part.digest {
        return Ok(());
    }
    let step = part.step.unwrap_or(number as u64 + 1);
    let message = format!(
        "step {step} is not what was recorded: the hash of its records is {:016x}; `lockgate verify` says more",
        found.hash
    );
    Err(Failed::new(Code::Data, message))
}

/// What is said before the records.
fn heading(input: &str, tape: &Tape, step: Option<u64>) -> String {
    let Some(step) = step else { return summary(input, tape) };
    match number_of(tape, step).map(|number| tape.parts()[number].digest) {
        None => format!("{input}, step {step}: nothing\n"),
        Some(PartDigest { records, hash }) => {
            let records = counted(records, "record");
            format!("{input}, step {step}: {records}, hash {hash:016x}\n\n")
        }
    }
}

fn summary(input: &str, tape: &Tape) -> String {
    let mut text = String::new();
    let mut say = |what: &str, how: &str| text += &format!("{what:<12}{how}\n");
    // What a recording says may come from anywhere.
    let shown = |text: &str| excerpt(Some(text.as_bytes()), 2000);
    say("input", input);
    let recordings = tape.recordings().len();
    if recordings != 1 {
        say("recordings", &recordings.to_string());
    }
    if let Some(about) = tape.about() {
        say("program", &shown(&about.program));
        say("source", &shown(&about.source));
        say("origin", &shown(&about.origin));
        match about.framing {
            Some(Framing::Lines) => say("framing", "lines"),
            Some(Framing::Length32) => say("framing", "length_delimited"),
            None => {}
        }
        if !about.masked.is_empty() {
            say("masked", &shown(&about.masked.join(", ")));
        }
        if about.hashed_keys {
            say("keys", "replaced by their hashes");
        }
    }
    say("records", &tape.records().to_string());
    say("parts", &tape.parts().len().to_string());
    say("steps", &steps_in_words(tape));
    if !tape.complete() {
        say("cut short", "the last recording was not finished; it has everything up to there");
    }
    text + "\n"
}

fn steps_in_words(tape: &Tape) -> String {
    span(steps_of(tape.parts())).trim_start_matches("steps ").trim_start_matches("step ").into()
}
