//! The commands of the input-reader protocol. Names and meaning are Feldera's `InputReaderCommand`.
//!
//! Which command may follow which is decided in [`ReaderProtocol`](crate::ReaderProtocol).

use serde_json::Value as JsonValue;

/// A command for an [`InputReader`](crate::InputReader) to execute.
#[derive(Clone, Debug, PartialEq)]
pub enum InputReaderCommand {
    /// Give the step described by `metadata` and `data` again: read its records, report them by
    /// [`buffered`](crate::InputConsumer::buffered), hand them over by
    /// [`replayed`](crate::InputConsumer::replayed).
    ///
    /// Comes zero or more times, before any other command, one at a time, and only to readers that
    /// promised exactly once.
    Replay {
        /// The `seek` that the reader gave with the step, as it gave it, whole or not: where it stood after it.
        metadata: JsonValue,
        /// The `replay` that the reader gave with the step: what the step consists of.
        data: rmpv::Value,
    },
    /// Accept further input: from where the last replay ended, else from where the last pause stopped,
    /// else from the position given to [`open`](crate::InputEndpoint::open), else from the beginning.
    Extend,
    /// Stop reading. What is buffered stays and may still be queued.
    Pause,
    /// Hand over buffered records, at most [`max_batch_size`](crate::InputConsumer::max_batch_size), by
    /// [`extended`](crate::InputConsumer::extended). A reader that has ended with nothing left may close instead of
    /// answering; once it is closed it must not answer any more.
    Queue {
        /// A checkpoint is wanted: stop at the first position that is not a barrier, if one is near.
        checkpoint_requested: bool,
    },
    /// The reader will be dropped soon. Nothing comes after this.
    Disconnect,
}

impl InputReaderCommand {
    /// This command for a reader that is not fault tolerant, or `None` if only fault-tolerant readers
    /// understand it.
    pub fn as_nonft(&self) -> Option<NonFtInputReaderCommand> {
        match self {
            InputReaderCommand::Replay { .. } => None,
            InputReaderCommand::Extend => Some(NonFtInputReaderCommand::Extend),
            InputReaderCommand::Pause => Some(NonFtInputReaderCommand::Pause),
            InputReaderCommand::Queue { .. } => Some(NonFtInputReaderCommand::Queue),
            InputReaderCommand::Disconnect => Some(NonFtInputReaderCommand::Disconnect),
        }
    }
}

/// [`InputReaderCommand`] without what only fault-tolerant readers understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NonFtInputReaderCommand {
    /// See [`InputReaderCommand::Extend`].
    Extend,
    /// See [`InputReaderCommand::Pause`].
    Pause,
    /// See [`InputReaderCommand::Queue`].
    Queue,
    /// See [`InputReaderCommand::Disconnect`].
    Disconnect,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replay_is_for_fault_tolerant_readers_only() {
        let replay = InputReaderCommand::Replay { metadata: 1.into(), data: rmpv::Value::Nil };
        assert_eq!(replay.as_nonft(), None);
        let queue = InputReaderCommand::Queue { checkpoint_requested: true };
        assert_eq!(queue.as_nonft(), Some(NonFtInputReaderCommand::Queue));
    }
}
