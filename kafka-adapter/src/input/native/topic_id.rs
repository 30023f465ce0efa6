//! The id of a topic, which tells it from another one of the same name.

use std::ffi::{CStr, CString};
use std::ptr;
use std::time::Duration;

use rdkafka::bindings as sys;
use rdkafka::consumer::Consumer;
use rdkafka::error::{KafkaError, RDKafkaErrorCode as Code};

use crate::client::Client;
use crate::code;

/// What brokers say that have no ids.
const NONE: &[u8] = b"AAAAAAAAAAAAAAAAAAAAAA";

/// The id of a topic, in base 64; `None` where brokers are too old to have any.
pub(in crate::input) fn topic_id(
    client: &Client,
    topic: &str,
    timeout: Duration,
) -> Result<Option<String>, KafkaError> {
    let failed = |code: Code| KafkaError::MetadataFetch(code);
    let name = CString::new(topic).map_err(|_| failed(Code::InvalidTopic))?;
    let client = client.client().native_ptr();
    let timeout_ms = i32::try_from(timeout.as_millis()).unwrap_or(i32::MAX).max(1);
    // SAFETY: the client is alive during the call, everything made here is destroyed here, once, and the names
    // outlive the request, which copies them.
    unsafe {
        let queue = sys::rd_kafka_queue_new(client);
        let operation = sys::rd_kafka_admin_op_t::RD_KAFKA_ADMIN_OP_DESCRIBETOPICS;
        let options = sys::rd_kafka_AdminOptions_new(client, operation);
        // Fails for times that are out of range only, and then the usual one holds.
        sys::rd_kafka_AdminOptions_set_request_timeout(options, timeout_ms, ptr::null_mut(), 0);
        let topics = sys::rd_kafka_TopicCollection_of_topic_names(&mut name.as_ptr(), 1);
        sys::rd_kafka_DescribeTopics(client, topics, options, queue);
        let event = sys::rd_kafka_queue_poll(queue, timeout_ms);
        let id = if event.is_null() { Err(failed(Code::OperationTimedOut)) } else { read(event) };
        sys::rd_kafka_event_destroy(event);
        sys::rd_kafka_TopicCollection_destroy(topics);
        sys::rd_kafka_AdminOptions_destroy(options);
        sys::rd_kafka_queue_destroy(queue);
        id
    }
}

/// # Safety
/// `event` is the answer to a request for the description of one topic.
unsafe fn read(event: *mut sys::rd_kafka_event_t) -> Result<Option<String>, KafkaError> {
    // SAFETY: the answer lives as long as its event, and has as many topics as it says; each has an id, and the text of
    // an id, which ends with a zero byte, belongs to it.
    unsafe {
        match code::of_event(event) {
            None => {}
            Some(Code::UnsupportedFeature | Code::UnsupportedVersion) => return Ok(None),
            Some(code) => return Err(KafkaError::MetadataFetch(code)),
        }
        let result = sys::rd_kafka_event_DescribeTopics_result(event);
        if result.is_null() {
            return Err(KafkaError::MetadataFetch(Code::BadMessage));
        }
        let mut count = 0;
        let found = sys::rd_kafka_DescribeTopics_result_topics(result, &mut count);
        if count == 0 {
            return Ok(None);
        }
        let error = sys::rd_kafka_TopicDescription_error(*found);
        if let Some(code) = code::of_error(error) {
            return Err(KafkaError::MetadataFetch(code));
        }
        let id = sys::rd_kafka_TopicDescription_topic_id(*found);
        let text = sys::rd_kafka_Uuid_base64str(id);
        if text.is_null() {
            return Ok(None);
        }
        let text = CStr::from_ptr(text);
        Ok((text.to_bytes() != NONE).then(|| text.to_string_lossy().into_owned()))
    }
}
