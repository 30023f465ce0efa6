//! Where a partition's log ended when records of it were last fetched. The safe crate only has the call that asks the
//! broker and waits.

use std::ffi::CString;

use rdkafka::bindings as sys;
use rdkafka::consumer::Consumer;

use crate::client::Client;

/// The offset after the last record of the partition's log, if anything was fetched of it.
pub(in crate::input) fn high_watermark(
    client: &Client,
    topic: &str,
    partition: u32,
) -> Option<u64> {
    let topic = CString::new(topic).ok()?;
    let partition = i32::try_from(partition).ok()?;
    let (mut low, mut high) = (-1, -1);
    // SAFETY: the client is alive during the call, which looks into its memory under its own lock and writes two
    // numbers.
    let answer = unsafe {
        sys::rd_kafka_get_watermark_offsets(
            client.client().native_ptr(),
            topic.as_ptr(),
            partition,
            &mut low,
            &mut high,
        )
    };
    if answer != sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR {
        return None;
    }
    u64::try_from(high).ok()
}
