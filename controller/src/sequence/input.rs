//! What the machine knows about one input.

use std::collections::BTreeSet;
use std::time::Duration;

use lockgate_core::{FaultTolerance, QueueLimits, ReaderProtocol};
use serde_json::Value as JsonValue;

use super::SequenceInput;

/// Why an input is paused. It runs when no reason is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PauseReason {
    /// Somebody asked for it.
    User,
    /// What comes in cannot be stored at the moment.
    Backpressure,
}

#[derive(Clone, Debug)]
pub(super) struct Input {
    pub(super) protocol: ReaderProtocol,
    /// Where its reader stands, all of it.
    pub(super) seek: Option<JsonValue>,
    pub(super) pauses: BTreeSet<PauseReason>,
    /// Whether it has ever stood at a barrier.
    pub(super) has_barriers: bool,
    /// Whether it has just given nothing of what it holds, so as to be where resuming is cheap.
    pub(super) stopped: bool,
    pub(super) stalled: bool,
    limits: QueueLimits,
    /// When the last `Replay` or `Queue` was sent.
    asked_at: Duration,
}

impl Input {
    pub(super) fn new(input: SequenceInput, level: FaultTolerance) -> Self {
        Self {
            protocol: ReaderProtocol::new(input.name, level, input.limits),
            seek: input.seek,
            pauses: BTreeSet::new(),
            has_barriers: false,
            stopped: false,
            stalled: false,
            limits: input.limits,
            asked_at: Duration::ZERO,
        }
    }

    /// A `Replay` or `Queue` was sent.
    pub(super) fn asked(&mut self, now: Duration) {
        self.asked_at = now;
    }

    /// The reader answered; whether that is news because it was stalled.
    pub(super) fn answered(&mut self) -> bool {
        std::mem::take(&mut self.stalled)
    }

    /// When an unanswered command makes the reader count as stalled; `None` if it already does.
    pub(super) fn stall_due(&self, timeout: Duration) -> Option<Duration> {
        (self.protocol.unanswered() && !self.stalled).then(|| self.asked_at.saturating_add(timeout))
    }

    /// Counts the reader as stalled; for how long it has been silent.
    pub(super) fn stall(&mut self, now: Duration) -> Duration {
        self.stalled = true;
        now.saturating_sub(self.asked_at)
    }

    /// Whether all input was reported and nothing is left to hand over.
    pub(super) fn is_done(&self) -> bool {
        self.protocol.ended() && self.protocol.held().records == 0 && !self.protocol.unanswered()
    }

    /// Whether waiting for more before a step is cut gains nothing: the reader has reached the end, or has
    /// used half of what it may hold.
    pub(super) fn is_half_full(&self) -> bool {
        let held = self.protocol.held();
        self.protocol.ended()
            || held.records * 2 >= self.limits.max_queued_records
            || held.bytes * 2 >= self.limits.max_queued_bytes
    }
}
