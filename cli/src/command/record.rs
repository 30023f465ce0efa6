//! `lockgate record`: takes a slice of topics home.
//!
//! A reader of the topics is driven by hand: there is no circuit, no output and no state. What it hands over at a time
//! is one part of the recording.

mod journaled;
mod listener;
mod place;
mod writer;

use std::time::{Duration, Instant};

use indicatif::{HumanBytes, HumanCount, HumanDuration};
use lockgate_core::{
    Batch, BufferSize, FaultTolerance, InputEndpoint, InputReader, InputReaderCommand as Command,
    count, size,
};
use lockgate_file_adapter::recording::{About, RecordingError};
use lockgate_kafka_adapter::{KafkaInput, KafkaInputConfig, ReadMode, TopicSelection};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant as Deadline, MissedTickBehavior, interval, sleep_until};

use crate::args::Record;
use crate::exit::{Code, Failed};
use crate::log::Log;
use crate::mask::Mask;
use crate::pipeline::LogSettings;
use crate::recorder::about;
use crate::signals::Signals;
use crate::terminal::Terminal;
use listener::{Listener, Said};
pub(crate) use place::{From, To};
use writer::Writer;

/// How often a person sees the line change.
const GLANCE: Duration = Duration::from_millis(200);
/// Most records of one part, which is a step when it is replayed.
const PART_RECORDS: usize = 10_000;
/// What came longer ago survives a crash.
const FLUSH: Duration = Duration::from_secs(10);
/// How long a reader that was told to go may take.
const LETTING_GO: Duration = Duration::from_secs(5);

pub(crate) fn record(args: &Record) -> Result<(), Failed> {
    if let (Some(state_dir), Some(pipeline)) = (&args.from_state, &args.pipeline) {
        return journaled::record(state_dir, pipeline, &args.out);
    }
    let terminal = Terminal::start();
    Log::start(&terminal, &LogSettings::default())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failed::storage("starting the runtime", &error))?;
    runtime.block_on(async {
        let recording = Recording::begin(args, &terminal)?;
        recording.run(args, &terminal).await
    })
}

fn config(args: &Record) -> Result<KafkaInputConfig, Failed> {
    let topics = match &args.topic[..] {
        [pattern] if pattern.starts_with('^') => TopicSelection::Pattern(pattern.clone()),
        names => TopicSelection::Names(names.to_vec()),
    };
    let brokers = args.brokers.iter().flat_map(|brokers| brokers.split(','));
    let brokers = brokers.map(str::to_owned).collect();
    let mut config = KafkaInputConfig::new(brokers, topics);
    config.start_from = args.from.start_from();
    config.stop_at = args.to.map(To::stop_at);
    config.mode = ReadMode::Assign {
        partitions: (!args.partitions.is_empty()).then(|| args.partitions.clone()),
        offsets_group: args.group.clone(),
    };
    if matches!(args.from, From::Stored) && args.group.is_none() {
        let message = "-o stored: say by --group whose stored offsets are meant";
        return Err(Failed::new(Code::Usage, message));
    }
    for property in &args.properties {
        let Some((name, value)) = property.split_once('=') else {
            let message = format!("-X {property}: it must be NAME=VALUE or NAME=file:PATH");
            return Err(Failed::new(Code::Usage, message));
        };
        let value = match value.strip_prefix("file:") {
            None => value.to_owned(),
            Some(path) => {
                let read = std::fs::read_to_string(path);
                let read = read.map_err(|error| {
                    Failed::new(Code::Usage, format!("-X {name}: reading {path}: {error}"))
                })?;
                read.trim_end_matches(['\r', '\n']).to_owned()
            }
        };
        config.properties.insert(name.to_owned(), value);
    }
    Ok(config)
}

fn mask(args: &Record) -> Mask {
    let fields = args.mask.iter().map(|field| field.split('.').map(str::to_owned).collect());
    Mask { fields: fields.collect(), hashes_keys: args.hash_keys }
}

/// A recording under way.
struct Recording {
    reader: Box<dyn InputReader>,
    said: UnboundedReceiver<Said>,
    signals: Signals,
    writer: Writer,
    mask: Mask,
    /// How many more records are wanted.
    left: u64,
    written: BufferSize,
    /// What the reader has announced and not handed over.
    held: BufferSize,
    is_asked: bool,
    has_ended: bool,
    begun: Instant,
    flushed: Instant,
    /// About how many records there will be, if that is known.
    expected: Option<u64>,
}

impl Recording {
    fn begin(args: &Record, terminal: &Terminal) -> Result<Self, Failed> {
        let config = config(args)?;
        let brokers = args.brokers.as_deref().unwrap_or_default();
        let about = About {
            masked: args.mask.clone(),
            hashed_keys: args.hash_keys,
            ..about("kafka", format!("{} at {brokers}", args.topic.join(", ")))
        };
        let input = KafkaInput::new(config);
        input.check()?;
        if args.out.exists() {
            return Err(RecordingError::Exists { path: args.out.clone() }.into());
        }
        // Only who watches wants to know how much is left.
        let extent = if terminal.is_shown() { input.extent()? } else { None };
        let (sender, said) = unbounded_channel();
        let listener = Listener { sender, most: PART_RECORDS };
        let reader = Box::new(input).open(FaultTolerance::AtLeastOnce, listener.shared(), None)?;
        // Not before the brokers have answered: until then a signal ends everything at once, and a wrong address
        // leaves no file behind.
        let signals = Signals::listen(false)?;
        let writer = Writer::create(&args.out, &about)?;
        Ok(Self {
            reader,
            said,
            signals,
            writer,
            mask: mask(args),
            left: args.count.unwrap_or(u64::MAX),
            written: BufferSize::ZERO,
            held: BufferSize::ZERO,
            is_asked: false,
            has_ended: false,
            begun: Instant::now(),
            flushed: Instant::now(),
            expected: extent.into_iter().chain(args.count).min(),
        })
    }

    async fn run(mut self, args: &Record, terminal: &Terminal) -> Result<(), Failed> {
        let deadline = args.duration.map(|duration| Deadline::now() + duration);
        let mut glance = interval(GLANCE);
        glance.set_missed_tick_behavior(MissedTickBehavior::Skip);
        self.reader.request(Command::Extend);
        let mut why = "the end was reached";
        while !(self.left == 0 || self.has_ended && self.held.records == 0 && !self.is_asked) {
            let over = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = self.signals.next() => {
                    why = "stopped by a signal";
                    break;
                }
                () = over => {
                    why = "the time was over";
                    break;
                }
                said = self.said.recv() => match said {
                    Some(said) => {
                        if let Err(failed) = self.hear(said) {
                            // What is there stays, as of a recording that was cut short.
                            let _ = self.writer.flush();
                            return Err(failed);
                        }
                    }
                    None => {
                        let _ = self.writer.flush();
                        let what = "the reader of the topics died without an error";
                        return Err(Failed::new(Code::Bug, what));
                    }
                },
                _ = glance.tick() => {
                    terminal.show(self.line(deadline));
                    if self.flushed.elapsed() > FLUSH {
                        self.writer.flush()?;
                        self.flushed = Instant::now();
                    }
                }
            }
        }
        if self.left == 0 {
            why = "all that was wanted is there";
        }
        self.reader.request(Command::Disconnect);
        let (written, begun) = (self.written, self.begun);
        let in_file = self.writer.finish()?;
        let reader = self.reader;
        let (let_go, waiting) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            drop(reader);
            let _ = let_go.send(());
        });
        let _ = waiting.recv_timeout(LETTING_GO);
        let seconds = begun.elapsed().as_secs_f64();
        terminal.finish(&format!(
            "{}: {} records, {}, {seconds:.2} s; {} in the file; {why}\n",
            args.out.display(),
            HumanCount(written.records),
            HumanBytes(written.bytes),
            HumanBytes(in_file),
        ));
        Ok(())
    }

    fn hear(&mut self, said: Said) -> Result<(), Failed> {
        match said {
            Said::Buffered(amount) => self.held = self.held.plus(amount),
            Said::Discarded(amount) => self.held = self.held.minus(amount).unwrap_or_default(),
            Said::Extended(batches) => {
                self.is_asked = false;
                self.held = self.held.minus(size(&batches)).unwrap_or_default();
                self.take(batches)?;
            }
            Said::End => self.has_ended = true,
            Said::Failed(error) => return Err(error.into()),
        }
        if self.held.records > 0 && !self.is_asked && self.left > 0 {
            self.is_asked = true;
            self.reader.request(Command::Queue { checkpoint_requested: false });
        }
        Ok(())
    }

    fn take(&mut self, mut batches: Vec<Batch>) -> Result<(), Failed> {
        for batch in &mut batches {
            let most = usize::try_from(self.left).unwrap_or(usize::MAX);
            *batch = batch.take_front(most);
            self.left -= batch.len() as u64;
        }
        batches.retain(|batch| !batch.is_empty());
        if !self.mask.hides_nothing() {
            let masked: Result<Vec<Batch>, _> =
                batches.iter().map(|batch| self.mask.batch(batch)).collect();
            batches = masked.map_err(|error| Failed::new(Code::Data, error.to_string()))?;
        }
        if count(&batches) > 0 {
            self.written = self.written.plus(size(&batches));
            self.writer.add(&batches)?;
        }
        Ok(())
    }

    /// How far it is.
    fn line(&self, deadline: Option<Deadline>) -> String {
        let elapsed = self.begun.elapsed();
        let rate = self.written.records as f64 / elapsed.as_secs_f64().max(0.001);
        let (records, bytes) = (HumanCount(self.written.records), HumanBytes(self.written.bytes));
        let line = format!("{records} records, {bytes}, {}/s", HumanCount(rate as u64));
        let by_count = self.expected.map(|expected| {
            let left = expected.saturating_sub(self.written.records) as f64 / rate.max(0.001);
            Duration::try_from_secs_f64(left).unwrap_or(Duration::MAX)
        });
        let by_time = deadline.map(|deadline| deadline.saturating_duration_since(Deadline::now()));
        match by_count.into_iter().chain(by_time).min() {
            Some(left) if self.written.records > 0 => {
                format!("{line}, {} left", HumanDuration(left))
            }
            _ => line,
        }
    }
}
