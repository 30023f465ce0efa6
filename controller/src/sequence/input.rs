//! What the machine knows about one input.

use std::collections::BTreeSet;
use std::time::Duration;

use lockgate_core::{FaultTolerance, InputReaderCommand, ReaderProtocol, ReaderState};
use serde_json::Value as JsonValue;

use super::SequenceInput;
use super::pace::Pace;
use crate::tuning::InputTuning;

/// Why an input is paused. It runs when no reason is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PauseReason {
    /// Somebody asked for it.
    User,
    /// Others must end first.
    StartOrder,
    /// Changed settings wait until what was read under the old ones has been handed over.
    Reload,
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
    pub(super) tuning: InputTuning,
    /// The inputs that must have ended before it is read.
    pub(super) start_after: Vec<usize>,
    pub(super) pace: Option<Pace>,
    /// Whether the pace has been set since the last `Queue`, which then was for more than it allows.
    pub(super) pace_is_new: bool,
    /// Whether the last `Queue` came after it was told to pause.
    asked_in_pause: bool,
    /// Whether it has answered that one, and holds nothing more.
    quiet: bool,
    /// When the last `Replay` or `Queue` was sent.
    asked_at: Duration,
}

impl Input {
    pub(super) fn new(input: SequenceInput, level: FaultTolerance, now: Duration) -> Self {
        let SequenceInput { name, tuning, seek, paused, start_after } = input;
        let user = paused.then_some(PauseReason::User);
        let order = (!start_after.is_empty()).then_some(PauseReason::StartOrder);
        Self {
            protocol: ReaderProtocol::new(name, level, tuning.limits),
            seek,
            pauses: user.into_iter().chain(order).collect(),
            has_barriers: false,
            stopped: false,
            stalled: false,
            tuning,
            start_after,
            pace: tuning.max_records_per_second.map(|rate| Pace::new(rate, now)),
            pace_is_new: false,
            asked_in_pause: false,
            quiet: false,
            asked_at: Duration::ZERO,
        }
    }

    /// The command was sent.
    pub(super) fn sent(&mut self, command: &InputReaderCommand) {
        match command {
            InputReaderCommand::Queue { .. } => {
                self.pace_is_new = false;
                self.asked_in_pause = matches!(self.protocol.state(), ReaderState::Paused { .. });
            }
            _ => self.asked_in_pause = false,
        }
        self.quiet = false;
    }

    /// It gave so many records to a step.
    pub(super) fn gave(&mut self, now: Duration, records: u64) {
        self.quiet = self.asked_in_pause && self.protocol.held().records == 0;
        if let Some(pace) = &mut self.pace {
            // What was asked for before there was this pace is not held against it.
            let most = if self.pace_is_new { pace.at_most() } else { u64::MAX };
            pace.took(now, records.min(most));
        }
    }

    pub(super) fn drain_shape(&self) -> (bool, bool) {
        (self.asked_in_pause, self.quiet)
    }

    /// Whether changed settings need not wait for it: they do not concern it, or it holds nothing and reads nothing.
    pub(super) fn is_drained(&self) -> bool {
        let reads_nothing = match self.protocol.state() {
            ReaderState::New | ReaderState::Replaying { answered: true } | ReaderState::Gone => {
                true
            }
            ReaderState::Replaying { answered: false } | ReaderState::Running { .. } => false,
            ReaderState::Paused { .. } => self.quiet || self.is_done(),
        };
        !self.pauses.contains(&PauseReason::Reload)
            || reads_nothing && self.protocol.held().records == 0
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
            || held.records * 2 >= self.tuning.limits.max_queued_records
            || held.bytes * 2 >= self.tuning.limits.max_queued_bytes
    }
}
