//! Recordings: one Parquet file with everything that one input delivered, to be taken home, looked into with
//! any tool that reads Parquet, and replayed with proof that it is the same.
//!
//! Not here: which records are recorded and who replays them.
//!
//! # The file
//!
//! One row is one record; rows stand in the order of delivery. A *part* is what the input gave to one step;
//! where steps are not known, it is whatever block of records the writer was given. A part lies in one row
//! group, a row group holds many parts.
//!
//! | column | type | what it is |
//! |---|---|---|
//! | `step` | INT64, nullable | the step, where steps are known |
//! | `source` | STRING | the topic's name or the file's path |
//! | `partition` | INT32, nullable | the partition's number; null for files |
//! | `offset`, `end_offset` | INT64 | where the record begins, and the first offset after it |
//! | `declared_length` | INT64, nullable | for records whose file gives their length: that length, where it is not the value's (a truncated record) |
//! | `timestamp` | TIMESTAMP(MILLIS, UTC), nullable | when it was made or stored |
//! | `timestamp_kind` | STRING, nullable | who set it: `create` or `log_append` |
//! | `leader_epoch` | INT32, nullable | the epoch of the leader that stored it |
//! | `key`, `value` | BYTE_ARRAY, nullable | as they came |
//! | `headers` | LIST of (`name`, `value`) | in their order; names may repeat, values may be null |
//! | `check` | INT32 | see below |
//!
//! The framing of a file's records is not stored: it is what `end_offset - offset` has beyond the value.
//!
//! # Proof
//!
//! Each part has the [`PartDigest`](lockgate_core::PartDigest) that it had when it was delivered, and records
//! read from a recording must have the same. That is the proof. The column `check` only says where it fails:
//! it is the low half of a hash over the record and the `check` of the record before it in the part
//! (`recording/check.rs`). A changed record fails at itself, a missing one at the record after it, a swapped
//! pair at the first of both.
//!
//! # Metadata
//!
//! | key | what it is |
//! |---|---|
//! | `lockgate.format` | the version of all this: `1` |
//! | `lockgate.about` | [`About`], JSON |
//! | `lockgate.parts` | step, count and hash of each part (`recording/part.rs`), base64 |
//! | `lockgate.groups` | the xxh3 of the bytes of each row group, 16 hexadecimal digits each |
//! | `lockgate.before` | in inner footers only: where the inner footer before this one ends, or `none` |
//!
//! # Cut short
//!
//! After each row group stands a complete footer that describes this row group alone (an *inner* footer),
//! and the file is made durable. The first inner footer stands at the file's beginning and describes no row
//! group. Other readers pass over them: the last footer of a finished file describes all row groups. A file
//! that was cut anywhere is read from its last intact inner footer backwards. What is intact is known by a
//! *seal* before each footer: `lockgate` and the xxh3 of the footer, seeded with the seal's place.

mod about;
mod check;
mod column;
mod decode;
mod encode;
mod error;
mod fault;
mod footer;
mod group;
mod part;
mod read;
mod rebuild;
mod row;
mod schema;
mod seal;
#[cfg(test)]
mod tests;
mod values;
mod write;

pub use about::About;
pub use error::RecordingError;
pub use fault::{Fault, FaultKind};
pub use part::Part;
pub use read::{Parts, Recording};
pub use write::{RecordingWriter, Written};

/// The version of the format that is written and read.
const FORMAT: &str = "1";
