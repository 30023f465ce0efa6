//! How fast a pipeline reads a topic, exactly once and to an output that throws everything away, beside two bare
//! loops over the same partitions with the same properties: one around the batch call, one around the poll for
//! each message. The ratios are what counts.
//!
//! `cargo xtask bench --kafka` runs it. The topics are made, filled and deleted again.
#![allow(clippy::unwrap_used, reason = "a measurement that fails may stop as it likes")]
#![allow(unsafe_code, reason = "the bare loop is there to be compared with")]

use std::error::Error;
use std::ffi::CString;
use std::ptr;
use std::time::{Duration, Instant};

use lockgate_controller::{Controller, InputTuning, Pipeline, Settings};
use lockgate_file_adapter::NullOutput;
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
use tokio::runtime::Builder;

const PARTITIONS: u32 = 4;
const WAIT: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn Error>> {
    let brokers = std::env::var("LOCKGATE_KAFKA")
        .map_err(|_| "LOCKGATE_KAFKA is not set: start a broker with `cargo xtask kafka start`")?;
    let mut arguments = std::env::args().skip(1);
    let megabytes: u64 = arguments.next().map_or(Ok(500), |count| count.parse())?;
    let rounds: usize = arguments.next().map_or(Ok(5), |count| count.parse())?;
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", &brokers);
    let admin: AdminClient<DefaultClientContext> = config.create()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    for bytes in [100, 1024] {
        let topic = format!("speed-{bytes}-{}", std::process::id());
        let new = NewTopic::new(&topic, PARTITIONS as i32, TopicReplication::Fixed(1));
        runtime.block_on(admin.create_topics([&new], &AdminOptions::new()))?;
        let records = megabytes * 1_000_000 / bytes;
        fill(&config, &topic, records, &vec![b'x'; bytes as usize])?;
        println!("{records} records of {bytes} bytes in {PARTITIONS} partitions, {rounds} rounds");
        let (mut of_batch, mut of_poll) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let speed = |took: Duration| records as f64 / took.as_secs_f64();
            let batch = speed(by_batch_call(&brokers, &topic, records)?);
            let poll = speed(by_poll(&brokers, &topic, records)?);
            let ours = speed(pipeline(&brokers, &topic, records)?);
            println!(
                "  batch call {:.2}, poll {:.2}, pipeline {:.2} M records/s",
                batch / 1e6,
                poll / 1e6,
                ours / 1e6
            );
            of_batch.push(ours / batch);
            of_poll.push(ours / poll);
        }
        println!("  pipeline to batch call {}, to poll {}", spread(of_batch), spread(of_poll));
        runtime.block_on(admin.delete_topics(&[&topic], &AdminOptions::new()))?;
    }
    Ok(())
}

/// The median, and between what the values lie.
fn spread(mut ratios: Vec<f64>) -> String {
    ratios.sort_by(f64::total_cmp);
    let (low, median, high) = (ratios[0], ratios[ratios.len() / 2], ratios[ratios.len() - 1]);
    format!("{median:.2} ({low:.2} to {high:.2})")
}

fn fill(
    config: &ClientConfig,
    topic: &str,
    records: u64,
    value: &[u8],
) -> Result<(), Box<dyn Error>> {
    let mut config = config.clone();
    config.set("linger.ms", "20").set("batch.size", "1000000");
    let producer: BaseProducer = config.create()?;
    for i in 0..records {
        let partition = (i % u64::from(PARTITIONS)) as i32;
        let mut record = BaseRecord::<(), [u8]>::to(topic).partition(partition).payload(value);
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

/// A client that is tuned like the program's own.
fn consumer(brokers: &str) -> Result<BaseConsumer, Box<dyn Error>> {
    let mut config = ClientConfig::new();
    let kbytes =
        (InputTuning::default().limits.max_queued_bytes / 1024 / u64::from(PARTITIONS)).to_string();
    for (name, value) in [
        ("bootstrap.servers", brokers),
        ("group.id", "bare"),
        ("enable.auto.commit", "false"),
        ("enable.auto.offset.store", "false"),
        ("fetch.queue.backoff.ms", "2"),
        ("fetch.wait.max.ms", "50"),
        ("queued.min.messages", "20000"),
        ("queued.max.messages.kbytes", &kbytes),
    ] {
        config.set(name, value);
    }
    Ok(config.create()?)
}

/// Reads and throws away, whole batches of each partition.
fn by_batch_call(brokers: &str, topic: &str, records: u64) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    let consumer = consumer(brokers)?;
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

/// Reads and throws away, message by message.
fn by_poll(brokers: &str, topic: &str, records: u64) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    let consumer = consumer(brokers)?;
    let mut list = TopicPartitionList::new();
    for number in 0..PARTITIONS as i32 {
        list.add_partition_offset(topic, number, Offset::Beginning)?;
    }
    consumer.assign(&list)?;
    let mut seen = 0;
    while seen < records {
        if let Some(message) = consumer.poll(WAIT) {
            message?;
            seen += 1;
        }
    }
    Ok(start.elapsed())
}

/// Reads exactly once, in steps, with journal and checkpoints.
fn pipeline(brokers: &str, topic: &str, records: u64) -> Result<Duration, Box<dyn Error>> {
    let state = tempfile::tempdir()?;
    let start = Instant::now();
    let topics = TopicSelection::Names(vec![topic.to_owned()]);
    let mut config = KafkaInputConfig::new(vec![brokers.to_owned()], topics);
    config.stop_at = Some(StopAt::End);
    let pipeline = Pipeline::new("speed", Settings::new(state.path()))
        .input("in", KafkaInput::new(config))
        .output("out", NullOutput);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let status = runtime.block_on(async { Controller::open(pipeline)?.run().await })?;
    if status.inputs[0].records != records {
        return Err(format!("{} records were read", status.inputs[0].records).into());
    }
    Ok(start.elapsed())
}
