//! The circuit of the simulation: it counts the records of each partition and writes the count beside each record, so
//! that a state that was restored wrongly can be seen in the output.

use std::collections::BTreeMap;
use std::sync::Arc;

use lockgate_core::{BatchBuilder, BoxError, Circuit, NewRecord, Partition, Step, StepOutput};

#[derive(Debug, Default)]
pub(crate) struct Tally {
    counts: BTreeMap<String, u64>,
}

impl Circuit for Tally {
    fn step(&mut self, step: &Step, output: &mut StepOutput<'_>) -> Result<(), BoxError> {
        for batch in step.parts.iter().flat_map(|part| &part.batches) {
            let Partition { source, number } = batch.partition().as_ref();
            let count = self.counts.entry(format!("{source}/{number:?}")).or_default();
            let mut counted = BatchBuilder::new(Arc::clone(batch.partition()));
            for record in batch.iter() {
                *count += 1;
                let mut value = record.value.unwrap_or_default().to_vec();
                value.extend(count.to_le_bytes());
                let value = Some(value.as_slice());
                counted.push(NewRecord { offset: record.offset, value, ..NewRecord::default() })?;
            }
            output.send_to_all(&counted.build());
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<Vec<u8>, BoxError> {
        Ok(serde_json::to_vec(&self.counts)?)
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        self.counts = serde_json::from_slice(state)?;
        Ok(())
    }
}
