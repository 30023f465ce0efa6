//! A reader that may do whatever the protocol allows.
//!
//! What it was told waits in its inbox until it looks. `Extend` it takes up at once where nothing is before
//! it: a reader that has not looked yet and one that has nothing to announce yet are told apart by nobody.
//! For the same reason a `Queue` stays in the inbox until it is answered.

use std::collections::VecDeque;

use lockgate_core::{
    BufferSize, FaultTolerance, InputReaderCommand, ProtocolError, QueueLimits, ReaderProtocol,
    ReaderState, Resume,
};

use super::source::Cut;
use super::{CommandModel, MAX_BATCH_RECORDS};

pub(super) const LIMITS: QueueLimits = QueueLimits { max_queued_records: 4, max_queued_bytes: 4 };
/// What a reader may hold after a change of the settings.
pub(super) const TIGHT: QueueLimits = QueueLimits { max_queued_records: 1, max_queued_bytes: 4 };

/// What a reader was told, without what it would only give back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Told {
    Replay(Cut),
    Extend,
    Pause,
    Queue { checkpoint_requested: bool },
    Disconnect,
}

/// Where a reader says it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// Where it cannot come back to.
    Barrier,
    /// Where it can come back to.
    Seek,
    /// Where it can come back to, and it can give the step again.
    Replay,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Reader {
    /// The rules as seen from here, apart from the machine's own copy.
    protocol: ReaderProtocol,
    pub(super) limits: QueueLimits,
    pub(super) inbox: VecDeque<Told>,
    /// The first record that was not handed over.
    pub(super) next: u8,
    /// The first record that was not announced.
    pub(super) announced: u8,
    /// Whether its last answer was a barrier.
    at_barrier: bool,
    pub(super) closed: bool,
    /// Whether it gave nothing of what it holds because a checkpoint was wanted.
    pub(super) stopped_for_checkpoint: bool,
    /// Whether a user has paused the input.
    pub(super) user_paused: bool,
}

impl Reader {
    pub(super) fn open(level: FaultTolerance, seek: u8) -> Self {
        Self {
            protocol: ReaderProtocol::new("", level, LIMITS),
            limits: LIMITS,
            inbox: VecDeque::new(),
            next: seek,
            announced: seek,
            at_barrier: false,
            closed: false,
            stopped_for_checkpoint: false,
            user_paused: false,
        }
    }

    pub(super) fn held(&self) -> u8 {
        self.announced - self.next
    }

    pub(super) fn has_failed(&self) -> bool {
        self.protocol.failed()
    }

    pub(super) fn is_running(&self) -> bool {
        matches!(self.protocol.state(), ReaderState::Running { .. })
    }

    pub(super) fn has_ended(&self) -> bool {
        self.protocol.ended()
    }

    /// Other limits are in force; whether it holds nothing and does not read.
    pub(super) fn reload(&mut self, limits: QueueLimits) -> bool {
        if limits != self.limits {
            let reads = self.is_running() && !self.has_ended() && !self.closed;
            if self.held() > 0 || reads {
                return false;
            }
            self.limits = limits;
            self.protocol.reload(limits);
        }
        true
    }

    /// A command arrives.
    pub(super) fn tell(&mut self, told: Told) -> Result<(), ProtocolError> {
        if self.closed {
            return Ok(());
        }
        self.inbox.push_back(told);
        self.take_up_extend()
    }

    fn take_up_extend(&mut self) -> Result<(), ProtocolError> {
        while self.inbox.front() == Some(&Told::Extend) {
            self.inbox.pop_front();
            self.protocol.send(&InputReaderCommand::Extend)?;
        }
        Ok(())
    }

    pub(super) fn can_announce(&self, records: u8) -> bool {
        !self.closed
            && self.is_running()
            && !self.has_ended()
            && self.announced < records
            && u64::from(self.held()) < self.limits.max_queued_records
    }

    pub(super) fn can_end(&self, records: u8) -> bool {
        !self.closed && self.is_running() && !self.has_ended() && self.announced == records
    }

    /// Not at a barrier: there it is still to say whether it has found a better place at the end. A `Queue` that it
    /// has not seen keeps it from nothing.
    pub(super) fn can_close(&self) -> bool {
        let drained = self.has_ended() && self.held() == 0 && !self.at_barrier;
        !self.closed && (drained || self.has_failed())
    }

    pub(super) fn announce(&mut self) -> Result<BufferSize, ProtocolError> {
        self.announced += 1;
        self.stopped_for_checkpoint = false;
        let amount = size(1);
        self.protocol.buffered(amount).map(|()| amount)
    }

    pub(super) fn end(&mut self) -> Result<(), ProtocolError> {
        self.protocol.eoi()
    }

    pub(super) fn close(&mut self) -> Result<(), ProtocolError> {
        self.closed = true;
        self.inbox.clear();
        self.protocol.closed()
    }

    pub(super) fn fail(&mut self) {
        self.protocol.fatal();
    }

    /// Every answer that it may give to the `Queue` it comes to next: how many records, and where it stands.
    pub(super) fn answers(&self, model: &CommandModel) -> Vec<(u8, Standing)> {
        let Some(Told::Queue { checkpoint_requested }) = self.inbox.front().copied() else {
            return Vec::new();
        };
        let held = self.held();
        let least = u8::from(held > 0 && !checkpoint_requested);
        let mut answers = Vec::new();
        for records in least..=held.min(MAX_BATCH_RECORDS) {
            if model.level == FaultTolerance::ExactlyOnce {
                answers.push((records, Standing::Replay));
                continue;
            }
            answers.push((records, Standing::Seek));
            let at_end = self.has_ended() && records == held;
            let nothing_of_some = records == 0 && held > 0;
            if !at_end && !nothing_of_some {
                answers.push((records, Standing::Barrier));
            }
        }
        answers
    }

    /// Answers the `Queue` it comes to next.
    pub(super) fn answer(
        &mut self,
        records: u8,
        standing: Standing,
    ) -> Result<(Cut, Resume), ProtocolError> {
        if let Some(Told::Queue { checkpoint_requested }) = self.inbox.pop_front() {
            self.protocol.send(&InputReaderCommand::Queue { checkpoint_requested })?;
        }
        self.stopped_for_checkpoint = records == 0 && self.held() > 0;
        let cut = Cut { from: self.next, to: self.next + records };
        self.next = cut.to;
        self.at_barrier = standing == Standing::Barrier;
        let seek = u64::from(cut.to).into();
        let resume = match standing {
            Standing::Barrier => Resume::Barrier,
            Standing::Seek => Resume::Seek { seek },
            Standing::Replay => Resume::Replay { seek, replay: encode(cut) },
        };
        self.protocol.extended(size(records), &resume)?;
        self.take_up_extend()?;
        Ok((cut, resume))
    }

    /// Replays the step that it is told to next.
    pub(super) fn replay(&mut self) -> Result<Option<Cut>, ProtocolError> {
        let Some(Told::Replay(cut)) = self.inbox.pop_front() else { return Ok(None) };
        let (metadata, data) = (cut.to.into(), encode(cut));
        self.protocol.send(&InputReaderCommand::Replay { metadata, data })?;
        (self.next, self.announced) = (cut.to, cut.to);
        let amount = size(cut.to - cut.from);
        self.protocol.buffered(amount)?;
        self.protocol.replayed(amount)?;
        self.take_up_extend()?;
        Ok(Some(cut))
    }

    /// Takes up the `Pause` or `Disconnect` that it comes to next.
    pub(super) fn take_up(&mut self) -> Result<(), ProtocolError> {
        match self.inbox.pop_front() {
            Some(Told::Pause) => self.protocol.send(&InputReaderCommand::Pause)?,
            Some(Told::Disconnect) => self.closed = true,
            _ => {}
        }
        self.take_up_extend()
    }
}

pub(super) fn size(records: u8) -> BufferSize {
    BufferSize { records: records.into(), bytes: records.into() }
}

/// What a reader stores to give a step again.
pub(super) fn encode(cut: Cut) -> rmpv::Value {
    (u64::from(cut.from) << 8 | u64::from(cut.to)).into()
}

pub(super) fn decode(replay: &rmpv::Value) -> Option<Cut> {
    let code = replay.as_u64()?;
    Some(Cut { from: u8::try_from(code >> 8).ok()?, to: u8::try_from(code & 0xff).ok()? })
}
