//! Errors of inputs, outputs and circuits, sorted by who has to act.

/// The cause of an error, of whatever type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What went wrong at an endpoint. The message names the thing, the value and what to do.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The pipeline asks for something that cannot be done.
    #[error("{0}")]
    Configuration(String),
    /// The data is not what it must be: damaged, or not what was journaled.
    #[error("{0}")]
    Data(String),
    /// The source or destination cannot be reached or opened.
    #[error("{what}: {source}")]
    Unavailable {
        /// What was tried, on what.
        what: String,
        /// Why it failed.
        source: BoxError,
    },
    /// The disk failed.
    #[error("{what}: {source}")]
    Storage {
        /// What was tried, on what.
        what: String,
        /// Why it failed.
        source: BoxError,
    },
    /// The disk is full. What was tried has been undone; trying again is safe.
    #[error("{what}: {source}")]
    StorageFull {
        /// What was tried, on what.
        what: String,
        /// Why it failed.
        source: BoxError,
    },
    /// Somebody else took over part of the work. What was not finished has been given up without a trace, and the
    /// pipeline can be opened again to go on with the rest.
    #[error("{what}: {source}")]
    Superseded {
        /// What was tried, on what.
        what: String,
        /// Why it failed.
        source: BoxError,
    },
    /// Our own fault.
    #[error("{0}; this is a bug")]
    Bug(String),
}

impl EndpointError {
    /// Its kind as one word, to count by.
    pub fn kind(&self) -> &'static str {
        match self {
            EndpointError::Configuration(_) => "configuration",
            EndpointError::Data(_) => "data",
            EndpointError::Unavailable { .. } => "unavailable",
            EndpointError::Storage { .. } => "storage",
            EndpointError::StorageFull { .. } => "storage_full",
            EndpointError::Superseded { .. } => "superseded",
            EndpointError::Bug(_) => "bug",
        }
    }
}
