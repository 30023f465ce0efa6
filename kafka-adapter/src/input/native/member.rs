//! As whom a consumer group knows a client.

use std::ffi::CStr;

use rdkafka::bindings as sys;
use rdkafka::consumer::{Consumer, ConsumerGroupMetadata};

use crate::client::Client;

/// As whom the group knows the client, and its id alone; `None` while it is no member of a live generation.
///
/// Without a generation and an id the brokers would take any offsets, unchecked: such metadata never leave here.
pub(in crate::input) fn member(client: &Client) -> Option<(ConsumerGroupMetadata, Vec<u8>)> {
    let before = identity(client)?;
    let metadata = client.group_metadata()?;
    // It may have changed between; then it is asked for again later.
    (identity(client)? == before).then_some((metadata, before.1))
}

/// Generation and id.
fn identity(client: &Client) -> Option<(i32, Vec<u8>)> {
    // SAFETY: the client is alive. What comes back is ours, and is destroyed here once; its text lives as long and
    // ends with a zero byte.
    unsafe {
        let metadata = sys::rd_kafka_consumer_group_metadata(client.client().native_ptr());
        if metadata.is_null() {
            return None;
        }
        let generation = sys::rd_kafka_consumer_group_metadata_generation_id(metadata);
        let id = sys::rd_kafka_consumer_group_metadata_member_id(metadata);
        let id = if id.is_null() { Vec::new() } else { CStr::from_ptr(id).to_bytes().to_vec() };
        sys::rd_kafka_consumer_group_metadata_destroy(metadata);
        (generation >= 0 && !id.is_empty()).then_some((generation, id))
    }
}
