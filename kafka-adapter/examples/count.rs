//! How fast a topic is read: by the reader of this crate, cut into steps, and by a bare loop around the batch
//! call over the same partitions with the same properties. The ratio is what counts.
//!
//! ```sh
//! LOCKGATE_KAFKA=127.0.0.1:9092 cargo run --release -p lockgate-kafka-adapter --example count -- 5000000
//! ```
//!
//! The topic is made, filled with records of 100 bytes and deleted again.
#![allow(clippy::unwrap_used, reason = "a measurement that fails may stop as it likes")]
#![allow(unsafe_code, reason = "the bare loop is there to be compared with")]

use std::error::Error;
use std::ffi::CString;
use std::future::Future;
use std::pin::pin;
use std::ptr;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use lockgate_core::{
    Batch, BufferSize, EndpointError, FaultTolerance, InputConsumer, InputEndpoint,
    InputReaderCommand as Command, QueueLimits, Resume, count,
};
use lockgate_kafka_adapter::{KafkaInput, KafkaInputConfig, StopAt, TopicSelection};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::bindings as sys;
use rdkafka::client::DefaultClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{Offset, TopicPartitionList};

const PARTITIONS: u32 = 4;
const RECORD: [u8; 100] = [b'x'; 100];
const LIMITS: QueueLimits = QueueLimits { max_queued_records: 200_000, max_queued_bytes: 32 << 20 };
const MAX_BATCH: usize = 50_000;
const ROUNDS: usize = 5;
const WAIT: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn Error>> {
    let brokers = std::env::var("LOCKGATE_KAFKA")
        .map_err(|_| "LOCKGATE_KAFKA is not set: start a broker with `cargo xtask kafka start`")?;
    let records: u64 = std::env::args().nth(1).map_or(Ok(2_000_000), |count| count.parse())?;
    let topic = format!("count-{}", std::process::id());
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &brokers);
    let admin: AdminClient<DefaultClientContext> = config.create()?;
    let new = NewTopic::new(&topic, PARTITIONS as i32, TopicReplication::Fixed(1));
    wait(admin.create_topics([&new], &AdminOptions::new()))?;
    fill(&config, &topic, records)?;
    for round in 1..=ROUNDS {
        let bare = records as f64 / bare(&brokers, &topic, records)?.as_secs_f64();
        let ours = records as f64 / ours(&brokers, &topic, records)?.as_secs_f64();
        println!(
            "{round}: bare batch call {:.2} M records/s, reader {:.2} M records/s, ratio {:.2}",
            bare / 1e6,
            ours / 1e6,
            ours / bare
        );
    }
    wait(admin.delete_topics(&[&topic], &AdminOptions::new()))?;
    Ok(())
}

/// Waits for a future by asking it again and again: it is not what is measured.
fn wait<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return output;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn fill(config: &ClientConfig, topic: &str, records: u64) -> Result<(), Box<dyn Error>> {
    let mut config = config.clone();
    config.set("linger.ms", "20").set("batch.size", "1000000");
    let producer: BaseProducer = config.create()?;
    for i in 0..records {
        let partition = (i % u64::from(PARTITIONS)) as i32;
        let mut record = BaseRecord::<(), [u8]>::to(topic).partition(partition).payload(&RECORD);
        while let Err((error, back)) = producer.send(record) {
            if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
                return Err(error.into());
            }
            producer.poll(Duration::from_millis(10));
            record = back;
        }
    }
    producer.flush(WAIT)?;
    Ok(())
}

/// Reads and throws away.
fn bare(brokers: &str, topic: &str, records: u64) -> Result<Duration, Box<dyn Error>> {
    let mut config = ClientConfig::new();
    let kbytes = (LIMITS.max_queued_bytes / 1024 / u64::from(PARTITIONS)).clamp(128, 4096);
    for (name, value) in [
        ("bootstrap.servers", brokers),
        ("group.id", "bare"),
        ("enable.auto.commit", "false"),
        ("enable.auto.offset.store", "false"),
        ("fetch.queue.backoff.ms", "2"),
        ("fetch.wait.max.ms", "50"),
        ("queued.min.messages", "20000"),
        ("queued.max.messages.kbytes", &kbytes.to_string()),
    ] {
        config.set(name, value);
    }
    let consumer: BaseConsumer = config.create()?;
    let name = CString::new(topic)?;
    let mut list = TopicPartitionList::new();
    let mut queues = Vec::new();
    for number in 0..PARTITIONS as i32 {
        list.add_partition_offset(topic, number, Offset::Beginning)?;
        // SAFETY: the client outlives its queues, which are destroyed below.
        unsafe {
            let client = consumer.client().native_ptr();
            let queue = sys::rd_kafka_queue_get_partition(client, name.as_ptr(), number);
            sys::rd_kafka_queue_forward(queue, ptr::null_mut());
            queues.push(queue);
        }
    }
    let start = Instant::now();
    consumer.incremental_assign(&list)?;
    let mut messages = vec![ptr::null_mut(); 1024];
    let mut seen = 0;
    while seen < records {
        for queue in &queues {
            // SAFETY: the queue is alive, and there is room for as many pointers. Each is destroyed once.
            unsafe {
                let count = sys::rd_kafka_consume_batch_queue(
                    *queue,
                    1,
                    messages.as_mut_ptr(),
                    messages.len(),
                );
                for message in &messages[..usize::try_from(count)?] {
                    sys::rd_kafka_message_destroy(*message);
                    seen += 1;
                }
            }
        }
    }
    let took = start.elapsed();
    // SAFETY: each queue is ours and is not used any more.
    queues.into_iter().for_each(|queue| unsafe { sys::rd_kafka_queue_destroy(queue) });
    Ok(took)
}

enum Said {
    Buffered,
    Extended(u64),
    Ended,
    Failed(String),
}

struct Desk(Mutex<Sender<Said>>);

impl Desk {
    fn say(&self, said: Said) {
        let _ = self.0.lock().unwrap().send(said);
    }
}

impl InputConsumer for Desk {
    fn max_batch_size(&self) -> usize {
        MAX_BATCH
    }
    fn limits(&self) -> QueueLimits {
        LIMITS
    }
    fn buffered(&self, _: BufferSize) {
        self.say(Said::Buffered);
    }
    fn replayed(&self, _: Vec<Batch>) {}
    fn extended(&self, batches: Vec<Batch>, _: Resume) {
        self.say(Said::Extended(count(&batches)));
    }
    fn eoi(&self) {
        self.say(Said::Ended);
    }
    fn error(&self, _: bool, error: EndpointError) {
        self.say(Said::Failed(error.to_string()));
    }
    fn policy_applied(&self, _: &'static str, _: String) {}
}

/// Reads in steps, as a controller does.
fn ours(brokers: &str, topic: &str, records: u64) -> Result<Duration, Box<dyn Error>> {
    let topics = TopicSelection::Names(vec![topic.to_owned()]);
    let mut config = KafkaInputConfig::new(vec![brokers.to_owned()], topics);
    config.stop_at = Some(StopAt::End);
    config.max_pending_records = 50_000.try_into()?;
    let (sender, said) = channel();
    let desk = Arc::new(Desk(Mutex::new(sender)));
    let input = Box::new(KafkaInput::new(config));
    let reader = input.open(FaultTolerance::ExactlyOnce, desk, None)?;
    let start = Instant::now();
    reader.request(Command::Extend);
    let (mut seen, mut is_asked) = (0, false);
    while seen < records {
        match said.recv_timeout(WAIT)? {
            Said::Buffered if !is_asked => {
                reader.request(Command::Queue { checkpoint_requested: false });
                is_asked = true;
            }
            Said::Extended(count) => {
                seen += count;
                is_asked = count > 0;
                if is_asked {
                    reader.request(Command::Queue { checkpoint_requested: false });
                }
            }
            Said::Failed(error) => return Err(error.into()),
            Said::Buffered | Said::Ended => {}
        }
    }
    Ok(start.elapsed())
}
