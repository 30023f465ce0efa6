//! What the client library can do for a reader and its safe crate does not offer.
#![allow(
    unsafe_code,
    reason = "the batch call reads twice as many records per second as the safe interface, which has no topic \
              ids and no watermarks without a wait either"
)]

mod batch_call;
mod commits;
mod epoch;
mod member;
mod topic_id;
mod watermark;

pub(super) use batch_call::{Arrival, MAX_TAKEN, PartitionQueue};
pub(super) use commits::Commits;
pub(super) use epoch::set_last_epoch;
pub(super) use member::member;
pub(super) use topic_id::topic_id;
pub(super) use watermark::high_watermark;
