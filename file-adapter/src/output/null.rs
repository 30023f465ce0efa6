//! The output that throws everything away: for measuring what comes before it.

use lockgate_core::{Batch, EndpointError, Output};
use serde_json::{Value as JsonValue, json};

/// Throws everything away. Its position is the empty object.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullOutput;

impl Output for NullOutput {
    fn recover(&mut self, _position: Option<&JsonValue>) -> Result<JsonValue, EndpointError> {
        Ok(json!({}))
    }

    fn write(&mut self, _step: u64, _batches: &[Batch]) -> Result<(), EndpointError> {
        Ok(())
    }

    fn prepare(&mut self) -> Result<JsonValue, EndpointError> {
        Ok(json!({}))
    }

    fn checkpointed(&mut self) -> Result<(), EndpointError> {
        Ok(())
    }
}
