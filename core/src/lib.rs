#![doc = include_str!("../README.md")]

mod batch;
mod circuit;
mod command;
mod digest;
mod error;
mod memory;
mod output;
mod partitions;
mod protocol;
mod reader;
mod record;
mod resume;
mod watch;

pub use batch::{ArenaFull, Batch, BatchBuilder, Framing, NewRecord, Records, count, size};
pub use circuit::{Circuit, Part, PassThrough, Step, StepOutput};
pub use command::{InputReaderCommand, NonFtInputReaderCommand};
pub use digest::{PartDigest, PartHasher};
pub use error::{BoxError, EndpointError};
pub use memory::{MemoryInput, MemoryOutput, MemoryRecord};
pub use output::{InputPosition, Output, OutputReporter};
pub use partitions::{
    AddError, Assigned, Commit, CommitOutcome, ContextAction, PartitionContexts, PartitionFault,
    PartitionId, Stage, Standing, Tickets,
};
pub use protocol::{ProtocolError, ReaderProtocol, ReaderState};
pub use reader::{InputConsumer, InputEndpoint, InputReader};
pub use record::{
    BufferSize, Header, Headers, Partition, QueueLimits, Record, Timestamp, TimestampKind,
};
pub use resume::{FaultTolerance, Position, Resume};
pub use watch::{InputWatch, PartitionStatus};
