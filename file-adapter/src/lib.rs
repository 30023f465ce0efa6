//! Files as inputs and outputs of lockgate.

mod config;
mod input;
mod output;

pub use config::{
    Compression, FileInputConfig, FileOutputConfig, OutputFormat, Overlong, SegmentConfig, StartAt,
};
pub use input::FileInput;
pub use output::{NullOutput, StdoutOutput, file_output};
