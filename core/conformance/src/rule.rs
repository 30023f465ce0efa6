//! What is checked, each rule with a name that stays.
//!
//! Not here: how a rule is checked. Most are checked on every answer, in `desk`; the others in `run`.

use std::fmt;

use lockgate_core::{FaultTolerance, ProtocolError, ReaderState};

macro_rules! rules {
    ($($(#[doc = $text:literal])+ $variant:ident = $name:literal,)+) => {
        /// A rule of the protocol that the kit checks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $($(#[doc = $text])+ $variant,)+
        }

        impl Rule {
            /// Every rule.
            pub const ALL: &[Rule] = &[$(Rule::$variant),+];

            /// Its name, which stays the same from version to version.
            pub fn name(self) -> &'static str {
                match self {
                    $(Rule::$variant => $name,)+
                }
            }

            /// What it demands, in a sentence or two.
            pub fn text(self) -> &'static str {
                match self {
                    $(Rule::$variant => concat!($($text),+).trim_ascii_start(),)+
                }
            }
        }
    };
}

rules! {
    /// The known data is opened and read without a fatal error.
    ReadsGoodData = "reads-good-data",
    /// The reader can be opened again at every position that it gave, and where it started.
    OpensAtItsPositions = "opens-at-its-positions",
    /// The reader gives nothing before the first command, and nothing between a replay and the first Extend.
    QuietUntilExtend = "quiet-until-extend",
    /// After Extend the reader reads: one that holds nothing announces more, or the end, before the deadline.
    ReadsWhenExtended = "reads-when-extended",
    /// The first Extend reads on from the end of the last replay, else from the position given on opening,
    /// else from the beginning.
    StartsAtResumePoint = "starts-at-resume-point",
    /// After Pause the reader announces no more: none at all once it has answered a Queue that was sent after
    /// the Pause.
    StopsAtPause = "stops-at-pause",
    /// Every Queue is answered before the deadline, while the reader is paused too, and after the end of input
    /// until all of it has been handed over.
    AnswersQueue = "answers-queue",
    /// Every Replay is answered before the deadline.
    AnswersReplay = "answers-replay",
    /// An answer comes once, and only when it was asked for.
    AnswersOnlyWhenAsked = "answers-only-when-asked",
    /// Queue hands over at least one record if the reader holds any, unless a checkpoint is requested and the
    /// reader stands at a good place for one.
    HandsOverWhatItHolds = "hands-over-what-it-holds",
    /// No more is handed over than was announced as buffered, in records and in bytes.
    AnnouncesWhatItBuffers = "announces-what-it-buffers",
    /// A replay announces exactly what it hands over.
    AnnouncesReplays = "announces-replays",
    /// One answer to Queue holds at most `max_batch_size` records.
    KeepsMaxBatchSize = "keeps-max-batch-size",
    /// What is announced and not handed over stays within the limits; a larger record is held alone.
    KeepsQueueLimits = "keeps-queue-limits",
    /// A position is never weaker than the level that the reader was opened with.
    KeepsItsPromise = "keeps-its-promise",
    /// The first position that a reader gives after it was opened is the whole of it; after that what changed is
    /// enough.
    GivesWholePositionFirst = "gives-whole-position-first",
    /// At the end of its input the reader stands at no barrier.
    ClearsBarrierAtEnd = "clears-barrier-at-end",
    /// A reader whose input ends reports that once, when everything has been announced; one whose input does
    /// not end never does.
    ReportsEnd = "reports-end",
    /// Nothing is announced after the end of input.
    NothingAfterEnd = "nothing-after-end",
    /// A reader that has reached the end stays open until it has handed over everything that it holds.
    DrainsBeforeClosing = "drains-before-closing",
    /// A reader closes only after the end of input, a reported fatal error, or Disconnect.
    ReportsErrorBeforeClosing = "reports-error-before-closing",
    /// A reader does not close while a Queue or a Replay is unanswered, unless it has reported a fatal error, or
    /// the end of input with nothing left.
    FinishesItsAnswer = "finishes-its-answer",
    /// After a fatal error nothing more is given.
    QuietAfterFatalError = "quiet-after-fatal-error",
    /// The reader does not panic inside a call. One that panics on a thread of its own has closed without an
    /// error.
    DoesNotPanic = "does-not-panic",
    /// After Disconnect the reader is closed before the deadline.
    ClosesAfterDisconnect = "closes-after-disconnect",
    /// Every known record is handed over, whatever the commands and wherever the reader was crashed.
    NothingLost = "nothing-lost",
    /// No record is handed over twice, other than by replays.
    NothingDoubled = "nothing-doubled",
    /// The records of a partition come in their order.
    KeepsOrder = "keeps-order",
    /// A record comes as it is: position, timestamp, key, value and headers.
    KeepsContent = "keeps-content",
    /// A replayed step has the records of the step that was journaled: the same number, the same hash.
    ReplaysTheSame = "replays-the-same",
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Rule {
    /// The rule that was broken by an answer which the protocol refused.
    pub(crate) fn broken_by(error: &ProtocolError, ended: bool) -> Self {
        match error {
            ProtocolError::Answer { state, answer, .. } => match state {
                ReaderState::New => Rule::QuietUntilExtend,
                ReaderState::Replaying { .. } if ["buffered", "eoi"].contains(answer) => {
                    Rule::QuietUntilExtend
                }
                _ => Rule::AnswersOnlyWhenAsked,
            },
            ProtocolError::AfterEnd { answer: "eoi", .. } => Rule::ReportsEnd,
            ProtocolError::AfterEnd { .. } => Rule::NothingAfterEnd,
            ProtocolError::Count { .. } => Rule::AnnouncesWhatItBuffers,
            ProtocolError::Limit { .. } => Rule::KeepsQueueLimits,
            ProtocolError::Resume { promised: FaultTolerance::ExactlyOnce, .. } => {
                Rule::KeepsItsPromise
            }
            ProtocolError::Resume { .. } => Rule::ClearsBarrierAtEnd,
            ProtocolError::Change { .. } => Rule::GivesWholePositionFirst,
            ProtocolError::Nothing { .. } => Rule::HandsOverWhatItHolds,
            ProtocolError::Died { state, .. } if is_unanswered(*state) => Rule::FinishesItsAnswer,
            ProtocolError::Died { .. } if ended => Rule::DrainsBeforeClosing,
            // A command that may not be sent is a fault of the kit, and does not get here.
            ProtocolError::Died { .. } | ProtocolError::Command { .. } => {
                Rule::ReportsErrorBeforeClosing
            }
        }
    }
}

fn is_unanswered(state: ReaderState) -> bool {
    match state {
        ReaderState::Replaying { answered } => !answered,
        ReaderState::Running { queued } | ReaderState::Paused { queued } => queued,
        ReaderState::New | ReaderState::Gone => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_texts_are_sentences() {
        let names: std::collections::BTreeSet<_> =
            Rule::ALL.iter().map(|rule| rule.name()).collect();
        assert_eq!(names.len(), Rule::ALL.len());
        for rule in Rule::ALL {
            assert!(rule.name().bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'));
            let text = rule.text();
            assert!(
                text.ends_with('.') && !text.starts_with(' ') && !text.contains("  "),
                "{text}"
            );
        }
    }
}
