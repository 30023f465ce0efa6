//! Commits of offsets whose ends are heard of: the safe crate has no way to learn how one went that nobody waited
//! for.

use std::ptr::NonNull;
use std::sync::Arc;

use rdkafka::bindings as sys;
use rdkafka::consumer::Consumer;
use rdkafka::error::{IsError, KafkaError, KafkaResult, RDKafkaErrorCode as Code};

use crate::client::{self, Client};
use crate::code;

/// Commits of one client, and a queue to which their ends come.
pub(in crate::input) struct Commits {
    queue: NonNull<sys::rd_kafka_queue_t>,
    /// Keeps the client alive until the queue is gone; dropped last.
    client: Arc<Client>,
}

// SAFETY: the library's queues may be used by any thread.
unsafe impl Send for Commits {}

impl Commits {
    /// `None` if the library gives no queue.
    pub(in crate::input) fn new(client: &Arc<Client>) -> Option<Self> {
        // SAFETY: the client is alive. The queue that comes back is ours.
        let queue = unsafe { sys::rd_kafka_queue_new(client.client().native_ptr()) };
        Some(Self { queue: NonNull::new(queue)?, client: client.clone() })
    }

    /// Begins a commit of offsets, each of a topic and a partition.
    ///
    /// # Errors
    /// If it cannot even begin; then no end of it comes.
    pub(in crate::input) fn begin<'a>(
        &self,
        offsets: impl Iterator<Item = (&'a str, u32, u64)>,
    ) -> KafkaResult<()> {
        let list = client::offsets(offsets)?;
        // SAFETY: client, queue and list are alive during the call, which copies the list.
        let code = unsafe {
            let (client, queue) = (self.client.client().native_ptr(), self.queue.as_ptr());
            sys::rd_kafka_commit_queue(client, list.ptr(), queue, None, std::ptr::null_mut())
        };
        if code.is_error() { Err(KafkaError::ConsumerCommit(code.into())) } else { Ok(()) }
    }

    /// How a commit ended, if one has; does not wait.
    pub(in crate::input) fn ended(&self) -> Option<Result<(), Code>> {
        // SAFETY: the queue is alive; the event is ours and destroyed once, after it was read.
        unsafe {
            let event = sys::rd_kafka_queue_poll(self.queue.as_ptr(), 0);
            if event.is_null() {
                return None;
            }
            let code = code::of_event(event);
            sys::rd_kafka_event_destroy(event);
            Some(code.map_or(Ok(()), Err))
        }
    }
}

impl Drop for Commits {
    fn drop(&mut self) {
        // SAFETY: the queue is ours and is not used any more.
        unsafe { sys::rd_kafka_queue_destroy(self.queue.as_ptr()) };
    }
}
