//! Exit codes, and which failure has which.

use lockgate_controller::{Error, StateError};
use lockgate_core::EndpointError;
use lockgate_file_adapter::recording::RecordingError;

use crate::pipeline::PipelineError;

/// The exit codes, from `sysexits.h`, and that of `diff`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    Done = 0,
    Different = 1,
    Usage = 64,
    Data = 65,
    Unavailable = 69,
    Bug = 70,
    Storage = 74,
    Temporary = 75,
    Configuration = 78,
}

impl Code {
    /// Ends the process.
    pub(crate) fn exit(self) -> ! {
        std::process::exit(self as i32)
    }
}

/// A failure as the user meets it.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Failed {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The disk failed while doing `what`.
    pub(crate) fn storage(what: impl std::fmt::Display, error: &std::io::Error) -> Self {
        Self::new(Code::Storage, format!("{what}: {error}"))
    }
}

impl From<PipelineError> for Failed {
    fn from(error: PipelineError) -> Self {
        let mut message = error.to_string();
        if let Some(source) = std::error::Error::source(&error) {
            message += &format!(": {source}");
        }
        Self::new(Code::Configuration, message)
    }
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::new(code_of(&error), error.to_string())
    }
}

impl From<StateError> for Failed {
    fn from(error: StateError) -> Self {
        Error::from(error).into()
    }
}

impl From<RecordingError> for Failed {
    fn from(error: RecordingError) -> Self {
        let code = match &error {
            RecordingError::Exists { .. } | RecordingError::Format { .. } => Code::Configuration,
            RecordingError::Storage { source, .. }
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Code::Usage
            }
            RecordingError::Storage { .. }
            | RecordingError::StorageFull { .. }
            | RecordingError::Broken { .. } => Code::Storage,
            RecordingError::NotARecording { .. }
            | RecordingError::Damaged { .. }
            | RecordingError::Refused { .. } => Code::Data,
            RecordingError::Bug { .. } => Code::Bug,
        };
        Self::new(code, error.to_string())
    }
}

impl From<EndpointError> for Failed {
    fn from(error: EndpointError) -> Self {
        Self::new(code_of_endpoint(&error), error.to_string())
    }
}

fn code_of_endpoint(error: &EndpointError) -> Code {
    match error {
        EndpointError::Configuration(_) => Code::Configuration,
        EndpointError::Data(_) => Code::Data,
        EndpointError::Unavailable { .. } => Code::Unavailable,
        EndpointError::Storage { .. } | EndpointError::StorageFull { .. } => Code::Storage,
        EndpointError::Superseded { .. } => Code::Temporary,
        EndpointError::Bug(_) => Code::Bug,
    }
}

fn code_of(error: &Error) -> Code {
    match error {
        Error::State(error) => match error {
            StateError::InUse { .. } => Code::Temporary,
            StateError::Missing { .. } => Code::Usage,
            StateError::Damaged { .. } => Code::Data,
            StateError::Format { .. }
            | StateError::Changed { .. }
            | StateError::ChangedBeforeReplay { .. }
            | StateError::InputGone { .. } => Code::Configuration,
            StateError::Full { .. } | StateError::Storage { .. } => Code::Storage,
        },
        Error::Input { error, .. } | Error::Output { error, .. } => code_of_endpoint(error),
        Error::Diverged(_) => Code::Data,
        Error::Stalled { .. } => Code::Unavailable,
        Error::StoppedLate { .. } => Code::Temporary,
        Error::Protocol(_) | Error::Circuit { .. } | Error::Bug(_) => Code::Bug,
    }
}
