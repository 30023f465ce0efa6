//! Faults that the model check puts into the machine on purpose, to show that it would find them.
//!
//! Without debug assertions none has an effect, and nothing of them is left in the program.

use super::Sequence;

/// A deliberate fault.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SequenceFault {
    /// A step is written as soon as it is hashed.
    WriteBeforeJournal,
    /// What a journal entry of the first load does not give is not asked for.
    JournalHalfLoaded,
    /// A checkpoint is taken although a reader stands at a barrier.
    BarrierIgnored,
    /// A checkpoint is taken while steps are in flight.
    DrainingSkipped,
    /// The position after a replayed step is not kept.
    ReplayedPositionLost,
    /// What a reader still holds after its answer is forgotten.
    RestForgotten,
    /// An input goes on as soon as one of the reasons for its pause is gone.
    PauseReasonsMixed,
    /// Space on a disk ends a user's pause, too.
    UserPauseForgotten,
    /// A stop pauses also the reader that has to get away from a barrier.
    BarrierPausedByStop,
    /// A failed run waits for the step that it can no longer complete.
    FormingKept,
    /// After a replay `Extend` is sent again, past the protocol's check.
    ExtendedTwice,
    /// A reader is paused by a full disk whether it runs or not.
    PausedTwice,
    /// What a reader hands over is taken twice.
    PartDoubled,
    /// The outputs close what they hold open as soon as the last step exists.
    EndsTooEarly,
    /// A stop ends the run at once.
    StopWithoutCheckpoint,
    /// No checkpoint is due by itself.
    CheckpointNeverDue,
    /// The grace time of a stop does not run out.
    StopNeverLate,
    /// A reader that has stopped for a checkpoint is asked to stop for it again.
    StoppedAskedAgain,
    /// Other limits are in force as soon as a reader that was told to pause holds nothing.
    ReloadUnheard,
    /// Inputs stay paused for changed settings that are in force.
    ReloadStaysPaused,
    /// A suspension that is called off leaves the readers as they are.
    CalledOffStaysPaused,
    /// Steps are cut however many are in flight.
    RoomIgnored,
    /// A source that is idle at a barrier holds up the inputs that got away from theirs.
    HeldUpByBarrier,
}

impl Sequence {
    /// This machine with a fault in it.
    #[doc(hidden)]
    #[must_use]
    pub fn with_fault(mut self, fault: SequenceFault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Whether the fault was put in.
    #[inline]
    pub(super) fn has(&self, fault: SequenceFault) -> bool {
        cfg!(debug_assertions) && self.fault == Some(fault)
    }
}
