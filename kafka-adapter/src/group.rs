//! What the reader of a consumer group and the output that commits its offsets have in common.
//!
//! The reader gives a position with every hand-over (its *turn*), and publishes as whom the group knows it. The
//! output sends the offsets along with the records of the same steps, in one transaction, and says up to which
//! turn that was done. Then the reader may let go of partitions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use lockgate_core::EndpointError;
use rdkafka::consumer::ConsumerGroupMetadata;
use serde::{Deserialize, Serialize};
use serde_json::Value as JsonValue;

use crate::waker::Waker;

/// Joins the reader of a group with the one output that commits the group's offsets.
#[derive(Clone, Default)]
pub struct GroupCommits(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// As whom the group knows the reader; `None` while it is no member, or cannot be sure.
    member: Mutex<Option<Arc<ConsumerGroupMetadata>>>,
    /// The last turn whose offsets are committed.
    committed: AtomicU64,
    waker: OnceLock<Waker>,
}

impl GroupCommits {
    /// The reader's thread is to be woken when a turn is committed.
    pub(crate) fn wakes(&self, waker: Waker) {
        // A second reader of the same group would be a bug of whoever joins them.
        let _ = self.0.waker.set(waker);
    }

    /// The group knows the reader as `member` from now on; `None`: not any more.
    pub(crate) fn publish(&self, member: Option<ConsumerGroupMetadata>) {
        *self.0.member.lock().unwrap_or_else(PoisonError::into_inner) = member.map(Arc::new);
    }

    /// As whom the group knows the reader.
    pub(crate) fn member(&self) -> Option<Arc<ConsumerGroupMetadata>> {
        self.0.member.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The offsets of all turns up to this one are committed.
    pub(crate) fn commit(&self, turn: u64) {
        self.0.committed.fetch_max(turn, Ordering::AcqRel);
        if let Some(waker) = self.0.waker.get() {
            waker.wake();
        }
    }

    /// The last turn whose offsets are committed; 0 if there is none.
    pub(crate) fn committed(&self) -> u64 {
        self.0.committed.load(Ordering::Acquire)
    }
}

impl std::fmt::Debug for GroupCommits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GroupCommits").field("committed", &self.committed()).finish()
    }
}

const VERSION: u32 = 1;

/// The position of a group's reader after a hand-over: for each partition of which it had records, where another
/// member would go on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GroupSeek {
    version: u32,
    /// The group's name.
    pub(crate) group: String,
    /// The number of the hand-over, from 1 in each run.
    pub(crate) turn: u64,
    /// By topic and partition the offset of the first record that was not handed over.
    pub(crate) topics: BTreeMap<String, BTreeMap<u32, u64>>,
}

impl GroupSeek {
    pub(crate) fn new(group: &str, turn: u64) -> Self {
        Self { version: VERSION, group: group.to_owned(), turn, topics: BTreeMap::new() }
    }

    pub(crate) fn to_json(&self) -> JsonValue {
        serde_json::json!(self)
    }

    /// # Errors
    /// If it is not something that [`to_json`](Self::to_json) gave.
    pub(crate) fn from_json(json: &JsonValue) -> Result<Self, EndpointError> {
        let damaged = |what: String| {
            EndpointError::Data(format!(
                "the stored position of a consumer group is damaged: {what}"
            ))
        };
        let seek = Self::deserialize(json).map_err(|error| damaged(error.to_string()))?;
        if seek.version != VERSION {
            return Err(damaged(format!("its version is {}, not {VERSION}", seek.version)));
        }
        Ok(seek)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back() {
        let mut seek = GroupSeek::new("g", 7);
        seek.topics.insert("orders".into(), BTreeMap::from([(3, 1 << 40)]));
        assert_eq!(GroupSeek::from_json(&seek.to_json()).unwrap(), seek);
        let mut other = seek.to_json();
        other["version"] = 2.into();
        assert!(GroupSeek::from_json(&other).unwrap_err().to_string().contains("version is 2"));
        GroupSeek::from_json(&serde_json::json!({"version": 1})).unwrap_err();
    }
}
