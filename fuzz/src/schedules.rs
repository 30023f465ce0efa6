//! The state machines under any order of what may happen to them, and of what may not.

pub mod partitions;
pub mod reader;
pub mod sequence;
