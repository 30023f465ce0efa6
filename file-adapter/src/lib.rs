//! Files as inputs and outputs of lockgate, and recordings of what inputs delivered.

mod config;
mod input;
mod output;
pub mod recording;
mod sync;
pub mod tape;

pub use config::{
    Compression, FileInputConfig, FileOutputConfig, OutputFormat, Overlong, SegmentConfig, StartAt,
};
pub use input::FileInput;
#[cfg(fuzzing)]
pub use input::fuzzing;
pub use output::{NullOutput, StdoutOutput, file_output};
