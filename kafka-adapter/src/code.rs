//! Error codes as the client library gives them: numbers, of which brokers may have newer ones than it knows.
//!
//! The bindings read them as an enum, and an enum that holds a number of none of its variants is undefined behaviour.
//! What a broker may have said is read as a number here.
#![allow(unsafe_code, reason = "the bindings have an enum where the library has any number")]

use rdkafka::bindings as sys;
use rdkafka::error::RDKafkaErrorCode as Code;

#[allow(
    clashing_extern_declarations,
    reason = "the same functions, with the number that the library gives in place of the enum"
)]
mod raw {
    use rdkafka::bindings as sys;

    unsafe extern "C" {
        pub(super) fn rd_kafka_event_error(event: *mut sys::rd_kafka_event_t) -> i32;
        pub(super) fn rd_kafka_error_code(error: *const sys::rd_kafka_error_t) -> i32;
    }
}

/// The error that the number stands for; `None` for success.
pub(crate) fn of_number(number: i32) -> Option<Code> {
    let known = sys::rd_kafka_resp_err_t::try_from(number);
    (number != 0).then(|| known.map_or(Code::Unknown, Code::from))
}

/// # Safety
/// `event` is alive.
pub(crate) unsafe fn of_event(event: *mut sys::rd_kafka_event_t) -> Option<Code> {
    // SAFETY: as above; the function only reads it. In C an enum is an `int`, of which every value is an `i32`.
    of_number(unsafe { raw::rd_kafka_event_error(event) })
}

/// # Safety
/// `error` is null, which is success, or alive.
pub(crate) unsafe fn of_error(error: *const sys::rd_kafka_error_t) -> Option<Code> {
    // SAFETY: as above; the function takes null, too.
    of_number(unsafe { raw::rd_kafka_error_code(error) })
}

/// # Safety
/// `message` is alive.
pub(crate) unsafe fn of_message(message: *const sys::rd_kafka_message_t) -> Option<Code> {
    // SAFETY: as above. The field has the size and the alignment of an `i32`, which may have any value.
    of_number(unsafe { (&raw const (*message).err).cast::<i32>().read() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A code of a broker newer than the library was read as a variant of an enum that has none for it.
    #[test]
    fn a_code_that_is_not_known_is_an_error_all_the_same() {
        assert_eq!(of_number(0), None);
        assert_eq!(of_number(-191), Some(Code::PartitionEOF));
        assert_eq!(of_number(3), Some(Code::UnknownTopicOrPartition));
        for number in [131, 32_767, -1000, i32::MAX, i32::MIN] {
            assert_eq!(of_number(number), Some(Code::Unknown), "{number}");
        }
    }

    #[test]
    fn a_message_is_read_as_its_number() {
        // SAFETY: all of it may be zero: numbers, null pointers, success.
        let mut message: sys::rd_kafka_message_t = unsafe { std::mem::zeroed() };
        // SAFETY: it is alive, and a number has the place of the enum.
        let read = |message: &sys::rd_kafka_message_t| unsafe { of_message(message) };
        assert_eq!(read(&message), None);
        message.err = sys::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR__PARTITION_EOF;
        assert_eq!(read(&message), Some(Code::PartitionEOF));
    }
}
