//! Where a reader under test reports to: every answer is checked as it comes, and written down.
//!
//! Not here: whether the records are the known ones (`truth`), and whether answers come at all (`life`).

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use lockgate_core::{
    Batch, BufferSize, EndpointError, FaultTolerance, InputConsumer, InputReaderCommand,
    ProtocolError, QueueLimits, ReaderProtocol, ReaderState, Resume,
};

use crate::known::Seen;
use crate::report::{Counted, Fault};
use crate::rule::Rule;

/// What the protocol calls the reader.
const NAME: &str = "under test";

/// The answer to a Queue or a Replay.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) batches: Vec<Batch>,
    /// `None`: it answered a Replay.
    pub(crate) resume: Option<Resume>,
}

impl Answer {
    pub(crate) fn records(&self) -> Vec<Seen> {
        self.batches.iter().flat_map(Batch::iter).map(|record| Seen::of(&record)).collect()
    }
}

/// How far it is known that the reader has seen the last Pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Paused {
    /// It may read, or it may not know yet that it may not.
    Perhaps,
    /// A Queue was sent after the Pause and is unanswered.
    Asked,
    /// That Queue has been answered.
    Surely,
}

/// What a reader said during one operation.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// The number of the operation.
    pub(crate) during: usize,
    pub(crate) text: String,
    /// Announcements in a row are one line.
    buffered: Option<BufferSize>,
}

/// Everything known about one open reader.
pub(crate) struct Desk {
    pub(crate) protocol: ReaderProtocol,
    pub(crate) fault: Option<Fault>,
    pub(crate) answer: Option<Answer>,
    pub(crate) said: Vec<Said>,
    pub(crate) operation: usize,
    /// The text of a fatal error; a fault unless one is wanted.
    pub(crate) fatal: Option<String>,
    wants_failure: bool,
    is_endless: bool,
    max_batch: usize,
    limits: QueueLimits,
    paused: Paused,
    /// The reader was dropped; what its threads still say does not count.
    is_over: bool,
}

/// What a life demands of its reader, besides the protocol.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demands {
    pub(crate) wants_failure: bool,
    pub(crate) is_endless: bool,
}

/// The consumer of a reader under test.
pub(crate) struct Consumer {
    desk: Mutex<Desk>,
    pub(crate) changed: Condvar,
}

impl Consumer {
    pub(crate) fn new(
        level: FaultTolerance,
        limits: QueueLimits,
        demands: Demands,
        operation: usize,
    ) -> Arc<Self> {
        let Demands { wants_failure, is_endless } = demands;
        let desk = Desk {
            protocol: ReaderProtocol::new(NAME, level, limits),
            fault: None,
            answer: None,
            said: Vec::new(),
            operation,
            fatal: None,
            wants_failure,
            is_endless,
            max_batch: 1,
            limits,
            paused: Paused::Perhaps,
            is_over: false,
        };
        Arc::new(Self { desk: Mutex::new(desk), changed: Condvar::new() })
    }

    pub(crate) fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what the reader reports, unless it is gone.
    fn hear(&self, what: impl FnOnce(&mut Desk) -> Result<(), Fault>) {
        let mut desk = self.desk();
        if desk.is_over {
            return;
        }
        if let Err(fault) = what(&mut desk) {
            desk.fault.get_or_insert(fault);
        }
        drop(desk);
        self.changed.notify_all();
    }
}

impl Desk {
    /// Records that `command` is about to be sent.
    pub(crate) fn sending(&mut self, command: &InputReaderCommand) {
        self.protocol.send(command).expect("the kit sends only what may be sent");
        self.paused = match (command, self.protocol.state()) {
            // After Disconnect a reader may go on as long as it likes.
            (InputReaderCommand::Extend | InputReaderCommand::Disconnect, _) => Paused::Perhaps,
            (InputReaderCommand::Queue { .. }, ReaderState::Paused { .. }) => {
                if self.paused == Paused::Surely { Paused::Surely } else { Paused::Asked }
            }
            _ => self.paused,
        };
    }

    /// The reader has carried out a Pause.
    pub(crate) fn has_paused(&mut self) {
        self.paused = Paused::Surely;
    }

    pub(crate) fn set_max_batch(&mut self, max_batch: usize) {
        self.max_batch = max_batch;
    }

    pub(crate) fn end(&mut self) {
        self.is_over = true;
    }

    /// The reader was found closed.
    pub(crate) fn closed(&mut self) -> Result<(), Fault> {
        let held = self.protocol.held();
        let closed = self.protocol.closed();
        self.judge(closed, |rule| match rule {
            Rule::DrainsBeforeClosing => {
                format!("the reader stays open until it has handed over the {}", size(held))
            }
            Rule::FinishesItsAnswer => {
                "the answer, or a fatal error, before the reader closes".into()
            }
            _ => "the end of input, a fatal error or Disconnect before the reader closes".into(),
        })
    }

    fn judge(
        &self,
        result: Result<(), ProtocolError>,
        expected: impl FnOnce(Rule) -> String,
    ) -> Result<(), Fault> {
        result.map_err(|error| {
            let rule = Rule::broken_by(&error, self.protocol.ended());
            let text = error.to_string();
            // There is only one reader in a report.
            let came = text.strip_prefix(&format!("input {NAME}: ")).unwrap_or(&text);
            Fault::new(rule, expected(rule), came)
        })
    }

    fn write_down(&mut self, text: String) {
        self.said.push(Said { during: self.operation, text, buffered: None });
    }

    fn write_down_buffered(&mut self, amount: BufferSize) {
        let during = self.operation;
        let before = match self.said.last_mut() {
            Some(Said { during: before, buffered: Some(sum), .. }) if *before == during => {
                let sum = sum.plus(amount);
                self.said.pop();
                sum
            }
            _ => amount,
        };
        let text = format!("buffered {}", size(before));
        self.said.push(Said { during, text, buffered: Some(before) });
    }

    fn quiet_after_failure(&self, answer: &str) -> Result<(), Fault> {
        match &self.fatal {
            None => Ok(()),
            Some(fatal) => Err(Fault::new(
                Rule::QuietAfterFatalError,
                format!("nothing more after the fatal error \"{fatal}\""),
                format!("the reader reported `{answer}`"),
            )),
        }
    }

    /// Known data belongs to one reader alone: nobody else will read what it lets go of.
    fn discarded(&mut self, amount: BufferSize) -> Result<(), Fault> {
        self.write_down(format!("discarded {}", size(amount)));
        let result = self.protocol.discarded(amount);
        self.judge(result, |_| {
            "no more is discarded than was announced, by a reader that reads".into()
        })
    }

    fn buffered(&mut self, amount: BufferSize) -> Result<(), Fault> {
        self.write_down_buffered(amount);
        self.quiet_after_failure("buffered")?;
        if self.paused == Paused::Surely {
            return Err(Fault::new(
                Rule::StopsAtPause,
                "nothing more is announced after Pause",
                format!("the reader announced {} more", size(amount)),
            ));
        }
        let result = self.protocol.buffered(amount);
        self.judge(result, |rule| match rule {
            Rule::QuietUntilExtend => {
                "nothing is announced before the reader was told to read".into()
            }
            Rule::KeepsQueueLimits => "no more is held than the consumer's limits allow".into(),
            _ => "nothing more is announced after the end of input".into(),
        })
    }

    /// Whether an answer does not count any more, although it may come.
    fn is_gone(&self) -> bool {
        self.protocol.state() == ReaderState::Gone
    }

    fn replayed(&mut self, batches: Vec<Batch>) -> Result<(), Fault> {
        let given = lockgate_core::size(&batches);
        self.write_down(format!("replayed {}", size(given)));
        self.quiet_after_failure("replayed")?;
        let result = self.protocol.replayed(given);
        self.judge(result, |_| "a replay announces what it hands over, and answers once".into())
            .map_err(|fault| match fault.rule {
                Rule::AnnouncesWhatItBuffers => Fault { rule: Rule::AnnouncesReplays, ..fault },
                _ => fault,
            })?;
        if !self.is_gone() {
            self.answer = Some(Answer { batches, resume: None });
        }
        Ok(())
    }

    fn extended(&mut self, batches: Vec<Batch>, resume: Resume) -> Result<(), Fault> {
        let given = lockgate_core::size(&batches);
        self.write_down(format!("extended {}, {}", size(given), position(&resume)));
        self.quiet_after_failure("extended")?;
        let (held, promised) = (self.protocol.held(), resume.level());
        let result = self.protocol.extended(given, &resume);
        self.judge(result, |rule| match rule {
            Rule::AnnouncesWhatItBuffers => {
                format!("at most the {} that were announced and not handed over", size(held))
            }
            Rule::HandsOverWhatItHolds => {
                format!("some of the {} that the reader holds", size(held))
            }
            Rule::KeepsItsPromise => {
                format!("a position for ExactlyOnce, not one for {promised:?}")
            }
            Rule::ClearsBarrierAtEnd => "a position at which a checkpoint can be taken".into(),
            Rule::GivesWholePositionFirst => "a whole position, or a barrier".into(),
            _ => "one answer to each Queue, and none without a Queue".into(),
        })?;
        if self.is_gone() {
            return Ok(());
        }
        if given.records > self.max_batch as u64 {
            return Err(Fault::new(
                Rule::KeepsMaxBatchSize,
                format!("at most {}", Counted(self.max_batch as u64)),
                Counted(given.records).to_string(),
            ));
        }
        if self.paused == Paused::Asked {
            self.paused = Paused::Surely;
        }
        self.answer = Some(Answer { batches, resume: Some(resume) });
        Ok(())
    }

    fn eoi(&mut self) -> Result<(), Fault> {
        self.write_down("end of input".into());
        self.quiet_after_failure("eoi")?;
        if self.is_endless {
            let expected = "no end of input: the reader waits for more";
            return Err(Fault::new(Rule::ReportsEnd, expected, "the end of input"));
        }
        let result = self.protocol.eoi();
        self.judge(result, |_| "the end of input is reported once, by a reader that reads".into())
    }

    fn error(&mut self, is_fatal: bool, error: &EndpointError) -> Result<(), Fault> {
        let kind = if is_fatal { "fatal error" } else { "error" };
        self.write_down(format!("{kind}: {error}"));
        if !is_fatal {
            return Ok(());
        }
        self.quiet_after_failure("error")?;
        self.protocol.fatal();
        self.fatal = Some(error.to_string());
        if self.wants_failure {
            return Ok(());
        }
        let expected = "the known data is read without a fatal error";
        Err(Fault::new(Rule::ReadsGoodData, expected, format!("the fatal error \"{error}\"")))
    }
}

impl InputConsumer for Consumer {
    fn max_batch_size(&self) -> usize {
        self.desk().max_batch
    }

    fn limits(&self) -> QueueLimits {
        self.desk().limits
    }

    fn buffered(&self, amount: BufferSize) {
        self.hear(|desk| desk.buffered(amount));
    }

    fn discarded(&self, amount: BufferSize) {
        self.hear(|desk| desk.discarded(amount));
    }

    fn replayed(&self, batches: Vec<Batch>) {
        self.hear(|desk| desk.replayed(batches));
    }

    fn extended(&self, batches: Vec<Batch>, resume: Resume) {
        self.hear(|desk| desk.extended(batches, resume));
    }

    fn eoi(&self) {
        self.hear(Desk::eoi);
    }

    fn error(&self, fatal: bool, error: EndpointError) {
        self.hear(|desk| desk.error(fatal, &error));
    }

    fn policy_applied(&self, policy: &'static str, text: String) {
        self.hear(|desk| {
            desk.write_down(format!("policy {policy}: {text}"));
            Ok(())
        });
    }
}

fn size(amount: BufferSize) -> String {
    format!("{} ({} bytes)", Counted(amount.records), amount.bytes)
}

/// A position may be long; its beginning tells enough.
const SHOWN_CHARS: usize = 60;

fn position(resume: &Resume) -> String {
    let Some(seek) = resume.seek() else { return "barrier".into() };
    let text = seek.to_string();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((cut, _)) => format!("seek {}...", &text[..cut]),
        None => format!("seek {text}"),
    }
}
