//! The queues of all partitions of a topic, and the batch call that empties them.
#![allow(unsafe_code, reason = "the batch call is not part of the safe crate")]

use std::ffi::CString;
use std::ptr;
use std::slice;
use std::thread;
use std::time::Duration;

use anyhow::{Result, bail};
use rdkafka::bindings as sys;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{Offset, TopicPartitionList};

use crate::broker::PARTITIONS;

const WAIT: Duration = Duration::from_secs(60);

/// Most messages of one call.
const MOST: usize = 1024;

/// All partitions from their beginning.
pub(super) struct Queues {
    consumer: BaseConsumer,
    queues: Vec<*mut sys::rd_kafka_queue_t>,
    messages: Vec<*mut sys::rd_kafka_message_t>,
}

/// A message, as long as it is looked at.
pub(super) struct Message<'a> {
    pub(super) partition: i32,
    pub(super) offset: i64,
    pub(super) value: &'a [u8],
}

impl Queues {
    /// The partitions of `beside` are read, too, and what they have, which is nothing, is left where it is.
    pub(super) fn new(consumer: BaseConsumer, topic: &str, beside: &[String]) -> Result<Self> {
        let name = CString::new(topic)?;
        let mut list = TopicPartitionList::new();
        let mut queues = Vec::new();
        for number in 0..i32::try_from(PARTITIONS)? {
            list.add_partition_offset(topic, number, Offset::Beginning)?;
            // SAFETY: the client is alive, and lives longer than its queues; the name ends with a zero byte.
            unsafe {
                let client = consumer.client().native_ptr();
                let queue = sys::rd_kafka_queue_get_partition(client, name.as_ptr(), number);
                sys::rd_kafka_queue_forward(queue, ptr::null_mut());
                queues.push(queue);
            }
        }
        let metadata = beside.iter().map(|topic| consumer.fetch_metadata(Some(topic), WAIT));
        for metadata in metadata.collect::<Result<Vec<_>, _>>()? {
            for topic in metadata.topics() {
                for partition in topic.partitions() {
                    list.add_partition_offset(topic.name(), partition.id(), Offset::Beginning)?;
                }
            }
        }
        consumer.incremental_assign(&list)?;
        Ok(Self { consumer, queues, messages: vec![ptr::null_mut(); MOST] })
    }

    pub(super) fn consumer(&self) -> &BaseConsumer {
        &self.consumer
    }

    /// Takes what each partition has, and waits a little if none has anything; each message is shown and thrown away. How
    /// many there were.
    pub(super) fn take(&mut self, mut each: impl FnMut(Message<'_>) -> Result<()>) -> Result<u64> {
        let mut seen = 0;
        for queue in &self.queues {
            // SAFETY: the queue is alive, and there is room for as many pointers.
            let count = unsafe {
                sys::rd_kafka_consume_batch_queue(*queue, 0, self.messages.as_mut_ptr(), MOST)
            };
            for message in &self.messages[..usize::try_from(count)?] {
                // SAFETY: the message is ours until it is destroyed, once; its payload is null or has as many bytes.
                let shown = unsafe {
                    let found = &**message;
                    let value = if found.payload.is_null() {
                        &[]
                    } else {
                        slice::from_raw_parts(found.payload.cast::<u8>(), found.len)
                    };
                    let (partition, offset) = (found.partition, found.offset);
                    let shown = if found.err == sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR
                    {
                        each(Message { partition, offset, value })
                    } else {
                        Err(anyhow::anyhow!("reading failed: {:?}", found.err))
                    };
                    sys::rd_kafka_message_destroy(*message);
                    shown
                };
                if let Err(error) = shown {
                    bail!(error);
                }
                seen += 1;
            }
        }
        if seen == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        Ok(seen)
    }
}
