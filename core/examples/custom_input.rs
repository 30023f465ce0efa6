//! An input of your own, written against `lockgate-core` alone: it counts up to a number, and gives
//! every step again after a crash. Run it with `cargo run -p lockgate-core --example custom_input`. That it
//! keeps every rule of the protocol is tested with `lockgate-conformance`.

use std::sync::{Arc, Mutex};

use lockgate_core::{
    Batch, BatchBuilder, BufferSize, EndpointError, FaultTolerance, InputConsumer, InputEndpoint,
    InputReader, InputReaderCommand, NewRecord, Partition, QueueLimits, Resume,
};
use serde_json::Value as JsonValue;

/// Gives the numbers from 0 up to `end`, one record each.
pub(crate) struct Counter {
    pub(crate) end: u64,
}

impl InputEndpoint for Counter {
    fn fault_tolerance(&self) -> FaultTolerance {
        FaultTolerance::ExactlyOnce
    }

    fn open(
        self: Box<Self>,
        _level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Box<dyn InputReader>, EndpointError> {
        // A position that is not understood is refused, never taken for the beginning.
        let refuse = |seek| EndpointError::Data(format!("counter: {seek} is no position"));
        let next = resume.map_or(Ok(0), |seek| seek.as_u64().ok_or_else(|| refuse(seek)))?;
        let place = Place { next, buffered: next, running: false, ended: false, closed: false };
        let place = Mutex::new(place);
        Ok(Box::new(CounterReader { end: self.end, consumer, place }))
    }
}

struct CounterReader {
    end: u64,
    consumer: Arc<dyn InputConsumer>,
    place: Mutex<Place>,
}

/// `next` is the first number not handed over, `buffered` the first not announced.
struct Place {
    next: u64,
    buffered: u64,
    running: bool,
    ended: bool,
    closed: bool,
}

impl CounterReader {
    fn batch(from: u64, to: u64) -> Batch {
        let partition = Partition { source: "counter".into(), number: None };
        let mut batch = BatchBuilder::new(Arc::new(partition));
        for number in from..to {
            let value = number.to_be_bytes();
            let record = NewRecord { offset: number, value: Some(&value), ..NewRecord::default() };
            batch.push(record).expect("far below 4 GiB");
        }
        batch.build()
    }

    /// Announces as much as it may hold. (A real source reads on a thread of its own.)
    fn fill(&self, place: &mut Place) {
        if !place.running || place.ended {
            return;
        }
        let limits = self.consumer.limits();
        // A record larger than the limit may be held alone.
        let most = limits.max_queued_records.min((limits.max_queued_bytes / 8).max(1));
        let more = (most - (place.buffered - place.next)).min(self.end - place.buffered);
        if more > 0 {
            place.buffered += more;
            self.consumer.buffered(BufferSize { records: more, bytes: more * 8 });
        }
        if place.buffered == self.end {
            place.ended = true;
            self.consumer.eoi();
        }
    }
}

impl InputReader for CounterReader {
    fn request(&self, command: InputReaderCommand) {
        let place = &mut *self.place.lock().expect("no panic while locked");
        match command {
            InputReaderCommand::Extend => place.running = true,
            InputReaderCommand::Pause => place.running = false,
            InputReaderCommand::Queue { .. } => {
                let from = place.next;
                place.next = place.buffered.min(from + self.consumer.max_batch_size() as u64);
                let replay = rmpv::Value::Array(vec![from.into(), place.next.into()]);
                let resume = Resume::Replay { seek: place.next.into(), replay };
                self.consumer.extended(vec![Self::batch(from, place.next)], resume);
            }
            InputReaderCommand::Replay { metadata: _, data } => {
                let bound = |i: usize| data[i].as_u64().expect("as handed over with the step");
                (place.next, place.buffered) = (bound(1), bound(1));
                let batch = Self::batch(bound(0), bound(1));
                self.consumer.buffered(batch.size());
                self.consumer.replayed(vec![batch]);
            }
            InputReaderCommand::Disconnect => (place.running, place.closed) = (false, true),
        }
        self.fill(place);
    }

    fn is_closed(&self) -> bool {
        self.place.lock().expect("no panic while locked").closed
    }
}

/// Stands in for the controller: prints what the reader reports.
struct Printer;

impl InputConsumer for Printer {
    fn max_batch_size(&self) -> usize {
        4
    }
    fn limits(&self) -> QueueLimits {
        QueueLimits { max_queued_records: 100, max_queued_bytes: 1 << 20 }
    }
    fn buffered(&self, amount: BufferSize) {
        println!("buffered {} records", amount.records);
    }
    fn discarded(&self, amount: BufferSize) {
        println!("let go of {} records", amount.records);
    }
    fn replayed(&self, batches: Vec<Batch>) {
        println!("replayed {} records", lockgate_core::count(&batches));
    }
    fn extended(&self, batches: Vec<Batch>, resume: Resume) {
        println!("extended by {} records, {resume:?}", lockgate_core::count(&batches));
    }
    fn eoi(&self) {
        println!("end of input");
    }
    fn error(&self, fatal: bool, error: EndpointError) {
        println!("error (fatal: {fatal}): {error}");
    }
    fn policy_applied(&self, policy: &'static str, text: String) {
        println!("{policy}: {text}");
    }
}

fn main() -> Result<(), EndpointError> {
    let open = |resume| {
        Box::new(Counter { end: 10 }).open(FaultTolerance::ExactlyOnce, Arc::new(Printer), resume)
    };
    println!("-- the first run is cut off after two steps");
    let reader = open(None)?;
    reader.request(InputReaderCommand::Extend);
    reader.request(InputReaderCommand::Queue { checkpoint_requested: false });
    reader.request(InputReaderCommand::Queue { checkpoint_requested: false });
    drop(reader);

    println!("-- the second run starts at a checkpoint after step 1, replays step 2 and goes on");
    let reader = open(Some(4.into()))?;
    let data = rmpv::Value::Array(vec![4.into(), 8.into()]);
    reader.request(InputReaderCommand::Replay { metadata: 8.into(), data });
    reader.request(InputReaderCommand::Extend);
    reader.request(InputReaderCommand::Queue { checkpoint_requested: true });
    reader.request(InputReaderCommand::Disconnect);
    assert!(reader.is_closed());
    Ok(())
}
