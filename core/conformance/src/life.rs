//! One open reader, from opening to dropping: sends commands and waits for answers, never for long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockgate_core::{
    BufferSize, EndpointError, FaultTolerance, InputConsumer, InputEndpoint, InputReader,
    InputReaderCommand, QueueLimits, ReaderState,
};
use serde_json::Value as JsonValue;

use crate::desk::{Consumer, Demands, Desk, Said};
use crate::report::Fault;
use crate::rule::Rule;
use crate::schedule::Ask;

/// How long answers may take.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// The reader does everything inside `request`.
    None,
    /// The reader has threads.
    Until(Duration),
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Came,
    /// The reader closed, with a reason; what was waited for will not come.
    Closed,
    TooLong,
}

/// A reader with threads may close without a word, so it is looked at: soon at first, then this often.
const LOOK: Duration = Duration::from_millis(20);
const FIRST_LOOK: Duration = Duration::from_micros(50);

/// How a reader is opened and treated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) level: FaultTolerance,
    pub(crate) limits: QueueLimits,
    pub(crate) patience: Patience,
    pub(crate) demands: Demands,
}

pub(crate) struct Life {
    reader: Box<dyn InputReader>,
    consumer: Arc<Consumer>,
    patience: Patience,
}

impl Life {
    /// Opens a reader during the given operation.
    pub(crate) fn open(
        endpoint: Box<dyn InputEndpoint>,
        terms: Terms,
        resume: Option<JsonValue>,
        operation: usize,
    ) -> Result<Self, EndpointError> {
        let Terms { level, limits, patience, demands } = terms;
        let consumer = Consumer::new(level, limits, demands, operation);
        let reader = endpoint.open(level, consumer.clone() as Arc<dyn InputConsumer>, resume)?;
        Ok(Self { reader, consumer, patience })
    }

    pub(crate) fn start(&self) -> Option<JsonValue> {
        self.reader.start()
    }

    pub(crate) fn state(&self) -> ReaderState {
        self.consumer.desk().protocol.state()
    }

    pub(crate) fn held(&self) -> BufferSize {
        self.consumer.desk().protocol.held()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.consumer.desk().protocol.ended()
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.consumer.desk().fatal.is_some()
    }

    /// Whether a Queue or a Replay was sent whose answer was not taken.
    pub(crate) fn is_owed(&self) -> bool {
        let desk = self.consumer.desk();
        desk.protocol.unanswered() || desk.answer.is_some()
    }

    pub(crate) fn take_answer(&self) -> Option<crate::desk::Answer> {
        self.consumer.desk().answer.take()
    }

    /// From now on, what the reader says belongs to this operation.
    pub(crate) fn begin(&self, operation: usize) {
        self.consumer.desk().operation = operation;
    }

    pub(crate) fn said(&self) -> Vec<Said> {
        std::mem::take(&mut self.consumer.desk().said)
    }

    /// Sends a command that may be sent now.
    pub(crate) fn send(&self, command: InputReaderCommand) -> Result<(), Fault> {
        let is_pause = command == InputReaderCommand::Pause;
        self.consumer.desk().sending(&command);
        self.reader.request(command);
        if is_pause && matches!(self.patience, Patience::None) {
            self.consumer.desk().has_paused();
        }
        self.check()
    }

    pub(crate) fn send_queue(&self, ask: Ask) -> Result<(), Fault> {
        self.consumer.desk().set_max_batch(ask.max_batch);
        let checkpoint_requested = ask.checkpoint_requested;
        self.send(InputReaderCommand::Queue { checkpoint_requested })
    }

    /// Whether all is well until now.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        self.wait_with(Patience::None, |_| false).map(|_| ())
    }

    /// Waits until the condition holds.
    pub(crate) fn wait(&self, until: impl Fn(&Desk) -> bool) -> Result<Waited, Fault> {
        self.wait_with(self.patience, until)
    }

    /// Waits for the answer to a Queue or a Replay.
    pub(crate) fn wait_for_answer(&self) -> Result<Waited, Fault> {
        self.wait(|desk| desk.answer.is_some() || desk.fatal.is_some())
    }

    fn wait_with(
        &self,
        patience: Patience,
        until: impl Fn(&Desk) -> bool,
    ) -> Result<Waited, Fault> {
        let deadline = match patience {
            Patience::None => None,
            Patience::Until(time) => Some(Instant::now() + time),
        };
        let mut look = FIRST_LOOK;
        loop {
            // Before the desk: what the reader said before it closed counts. Without the desk's lock: the
            // reader may hold one of its own while it reports.
            let is_closed = self.reader.is_closed();
            let mut desk = self.consumer.desk();
            if let Some(fault) = &desk.fault {
                return Err(fault.clone());
            }
            if until(&desk) {
                return Ok(Waited::Came);
            }
            if is_closed {
                desk.closed()?;
                return Ok(Waited::Closed);
            }
            let Some(left) = deadline.and_then(|at| at.checked_duration_since(Instant::now()))
            else {
                return Ok(Waited::TooLong);
            };
            drop(self.consumer.changed.wait_timeout(desk, left.min(look)));
            look = LOOK.min(look * 2);
        }
    }

    /// Sends Disconnect and waits until the reader is closed.
    pub(crate) fn disconnect(&self) -> Result<(), Fault> {
        if self.state() != ReaderState::Gone {
            self.send(InputReaderCommand::Disconnect)?;
        }
        match self.wait(|_| false)? {
            Waited::Closed => Ok(()),
            Waited::Came | Waited::TooLong => Err(Fault::new(
                Rule::ClosesAfterDisconnect,
                "`is_closed` is true after Disconnect",
                self.in_vain("the reader is still open"),
            )),
        }
    }

    /// What came instead of an answer.
    pub(crate) fn in_vain(&self, what: &str) -> String {
        match self.patience {
            Patience::None => {
                format!(
                    "{what} when `request` returned (the test says that the reader answers at once)"
                )
            }
            Patience::Until(time) => format!("{what} after {time:?}"),
        }
    }

    /// Drops the reader as it is. Gives what it said.
    pub(crate) fn crash(self) -> Vec<Said> {
        let Self { reader, consumer, .. } = self;
        consumer.desk().end();
        drop(reader);
        std::mem::take(&mut consumer.desk().said)
    }
}
