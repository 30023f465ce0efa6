//! The queue of one partition, and the batch call that empties it.
//!
//! `rd_kafka_consume_batch_queue` is not part of the safe crate and is twice as fast as its poll for each
//! message. Besides, messages that do not fit now can stay where they are, in the memory of the client, until
//! they do: each is copied once.

use std::ffi::{CStr, CString, c_void};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Arc;

use lockgate_core::{EndpointError, Header, NewRecord, Timestamp, TimestampKind};
use rdkafka::bindings::{self as sys, rd_kafka_timestamp_type_t as TimestampType};
use rdkafka::consumer::Consumer;
use rdkafka::error::{IsError, RDKafkaErrorCode};

use crate::client::Client;
use crate::code;
use crate::input::signal::{Raised, Signal};
use crate::waker::Waker;

/// Most messages taken by one call, and so kept uncopied for one partition.
pub(in crate::input) const MAX_TAKEN: usize = 1024;

/// What came out of the queue of a partition.
pub(in crate::input) enum Arrival<'a> {
    /// A record; its headers are read apart.
    Record(NewRecord<'a>),
    /// The log ended here when it was read: nothing committed lies between the last record and this offset.
    End(u64),
    /// Reading failed.
    Failed(RDKafkaErrorCode, String),
}

/// The queue of one partition, apart from all others, and what was taken from it and not used yet.
///
/// There is one for each partition as long as its client lives: when it is dropped, the partition gives nothing
/// more.
pub(in crate::input) struct PartitionQueue {
    queue: NonNull<sys::rd_kafka_queue_t>,
    taken: Vec<NonNull<sys::rd_kafka_message_t>>,
    /// The first one that is not used.
    front: usize,
    signal: Arc<Signal>,
    /// Keeps the client alive until queue and messages are gone; dropped last.
    _client: Arc<Client>,
}

// SAFETY: the library's queues and messages may be used by any thread, one at a time; `&mut self` and the owner's
// thread see to that. What is shared with the library's own threads is `Signal`, which is `Sync`.
unsafe impl Send for PartitionQueue {}

impl PartitionQueue {
    /// The queue of a partition, which has this place among those of its reader. To be made before the partition is
    /// assigned, so that nothing of it goes elsewhere.
    pub(in crate::input) fn new(
        client: &Arc<Client>,
        topic: &str,
        partition: u32,
        place: usize,
        (raised, waker): (&Raised, &Waker),
    ) -> Result<Self, EndpointError> {
        let none = || EndpointError::Bug(format!("{topic}[{partition}] has no queue"));
        let name = CString::new(topic).map_err(|_| none())?;
        let number = i32::try_from(partition).map_err(|_| none())?;
        let signal = Arc::new(Signal::new(place, raised.clone(), waker.clone()));
        // SAFETY: the client is alive and `name` outlives the call. The reference that comes back is ours.
        let queue = unsafe {
            sys::rd_kafka_queue_get_partition(client.client().native_ptr(), name.as_ptr(), number)
        };
        let queue = NonNull::new(queue).ok_or_else(none)?;
        // SAFETY: the queue is ours. `signal` is alive until `drop` has taken the callback back.
        unsafe {
            sys::rd_kafka_queue_forward(queue.as_ptr(), ptr::null_mut());
            let opaque = Arc::as_ptr(&signal).cast_mut().cast::<c_void>();
            sys::rd_kafka_queue_cb_event_enable(queue.as_ptr(), Some(raise), opaque);
        }
        let client = client.clone();
        Ok(Self { queue, taken: Vec::new(), front: 0, signal, _client: client })
    }

    /// Whether something may have come since a call of [`take`](Self::take) found the queue empty.
    pub(in crate::input) fn is_raised(&self) -> bool {
        self.signal.is_raised()
    }

    /// Whether something was taken and not used, or may have come.
    pub(in crate::input) fn may_have_more(&self) -> bool {
        !self.is_used_up() || self.is_raised()
    }

    /// Whether everything taken was used.
    pub(in crate::input) fn is_used_up(&self) -> bool {
        self.front == self.taken.len()
    }

    /// Takes at most `most` messages, without waiting; what was taken before must be used up.
    pub(in crate::input) fn take(&mut self, most: usize) {
        debug_assert!(self.is_used_up(), "a second take would grow what is kept");
        let most = most.min(MAX_TAKEN);
        self.signal.lower();
        self.taken.clear();
        self.front = 0;
        self.taken.reserve(most);
        // SAFETY: there is room for `most` pointers, each `NonNull` laid out as a pointer. The library writes
        // `count` of them, none null, each of which is ours to destroy.
        let count = unsafe {
            let count = sys::rd_kafka_consume_batch_queue(
                self.queue.as_ptr(),
                0,
                self.taken.as_mut_ptr().cast(),
                most,
            );
            let count = usize::try_from(count).unwrap_or(0);
            self.taken.set_len(count);
            count
        };
        if count == most {
            self.signal.keep_raised();
        }
    }

    /// The next one that was taken and not used.
    pub(in crate::input) fn front(&self) -> Option<Arrival<'_>> {
        let message = self.taken.get(self.front)?.as_ptr();
        // SAFETY: the message is ours and lives until `pop` or `drop`, which need `&mut self`; what is borrowed
        // from it has the lifetime of `&self`. Keys and values are null or point to as many bytes as it says.
        unsafe {
            let offset = u64::try_from((*message).offset).unwrap_or_default();
            let code = code::of_message(message);
            if code == Some(RDKafkaErrorCode::PartitionEOF) {
                return Some(Arrival::End(offset));
            }
            if let Some(code) = code {
                let text = sys::rd_kafka_message_errstr(message);
                let text =
                    if text.is_null() { c"no reason was given" } else { CStr::from_ptr(text) };
                return Some(Arrival::Failed(code, text.to_string_lossy().into_owned()));
            }
            let mut kind = TimestampType::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
            let ms = sys::rd_kafka_message_timestamp(message, &mut kind);
            let timestamp = match kind {
                TimestampType::RD_KAFKA_TIMESTAMP_CREATE_TIME => Some(TimestampKind::Create),
                TimestampType::RD_KAFKA_TIMESTAMP_LOG_APPEND_TIME => Some(TimestampKind::LogAppend),
                TimestampType::RD_KAFKA_TIMESTAMP_NOT_AVAILABLE => None,
            };
            let epoch = sys::rd_kafka_message_leader_epoch(message);
            Some(Arrival::Record(NewRecord {
                offset,
                timestamp: timestamp.map(|kind| Timestamp { ms, kind }),
                leader_epoch: (epoch >= 0).then_some(epoch),
                key: bytes((*message).key, (*message).key_len),
                value: bytes((*message).payload, (*message).len),
                headers: &[],
            }))
        }
    }

    /// The headers of the record at the front, in `headers`, which is emptied first.
    pub(in crate::input) fn headers<'a>(&'a self, headers: &mut Vec<Header<'a>>) {
        headers.clear();
        let Some(message) = self.taken.get(self.front) else { return };
        let mut list = ptr::null_mut();
        // SAFETY: the message is ours; the list belongs to it and lives as long. Names end with a zero byte,
        // values are null or point to as many bytes as it says.
        unsafe {
            if sys::rd_kafka_message_headers(message.as_ptr(), &mut list).is_error() {
                return;
            }
            for index in 0.. {
                let (mut name, mut value, mut len) = (ptr::null(), ptr::null(), 0);
                let code =
                    sys::rd_kafka_header_get_all(list, index, &mut name, &mut value, &mut len);
                if code.is_error() {
                    return;
                }
                let name = CStr::from_ptr(name).to_bytes();
                headers.push(Header { name, value: bytes(value, len) });
            }
        }
    }

    /// The front is used.
    pub(in crate::input) fn pop(&mut self) {
        if let Some(message) = self.taken.get(self.front) {
            // SAFETY: it is ours, and everything before the new front is never looked at again.
            unsafe { sys::rd_kafka_message_destroy(message.as_ptr()) };
            self.front += 1;
        }
    }

    /// Throws away what was taken: the partition is to be read from elsewhere.
    pub(in crate::input) fn clear(&mut self) {
        while !self.is_used_up() {
            self.pop();
        }
        self.signal.keep_raised();
    }
}

impl Drop for PartitionQueue {
    fn drop(&mut self) {
        self.clear();
        // SAFETY: the callback runs under the lock of the queue, which taking it back needs too, so `signal` is
        // not used afterwards. The reference to the queue is ours, and the client is alive.
        unsafe {
            sys::rd_kafka_queue_cb_event_enable(self.queue.as_ptr(), None, ptr::null_mut());
            sys::rd_kafka_queue_destroy(self.queue.as_ptr());
        }
    }
}

/// Called by a thread of the library when a queue is no longer empty.
unsafe extern "C" fn raise(_: *mut sys::rd_kafka_t, opaque: *mut c_void) {
    // SAFETY: `opaque` is the `Signal` of a queue that has not taken this callback back.
    let signal = unsafe { &*opaque.cast::<Signal>() };
    signal.raise();
}

/// # Safety
/// `start` is null, or points to `len` bytes that live for `'a`.
unsafe fn bytes<'a>(start: *const c_void, len: usize) -> Option<&'a [u8]> {
    // SAFETY: as above.
    (!start.is_null()).then(|| unsafe { slice::from_raw_parts(start.cast::<u8>(), len) })
}
