//! What is done with a step: the circuit between inputs and outputs.

use std::sync::Arc;

use crate::batch::{Batch, count};
use crate::error::BoxError;
use crate::resume::Position;

/// One step: a value that can be logged, hashed, compared and replayed.
#[derive(Clone, Debug)]
pub struct Step {
    /// Its number; the first is 1, and no number is left out.
    pub number: u64,
    /// What each input gave, in the order of the inputs; inputs that had nothing are left out.
    pub parts: Vec<Part>,
}

impl Step {
    /// Number of records of all parts.
    pub fn records(&self) -> u64 {
        self.parts.iter().map(|part| count(&part.batches)).sum()
    }
}

/// One input's part of a step.
#[derive(Clone, Debug)]
pub struct Part {
    /// The input's place in the pipeline, from 0.
    pub input: usize,
    /// The records, in order.
    pub batches: Vec<Batch>,
    /// Where the input stands after them, as its reader says it, whole or what changed; `None` at a barrier.
    pub seek: Option<Arc<Position>>,
}

/// What a circuit sends to the outputs in one step.
#[derive(Debug)]
pub struct StepOutput<'a> {
    names: &'a [String],
    batches: Vec<Vec<Batch>>,
}

impl<'a> StepOutput<'a> {
    /// Nothing yet, for the outputs called `names`.
    pub fn new(names: &'a [String]) -> Self {
        Self { names, batches: vec![Vec::new(); names.len()] }
    }

    /// Sends `batch` to every output.
    pub fn send_to_all(&mut self, batch: &Batch) {
        self.batches.iter_mut().for_each(|output| output.push(batch.clone()));
    }

    /// Sends `batch` to the output called `name`.
    ///
    /// # Errors
    /// If there is no output of that name.
    pub fn send(&mut self, name: &str, batch: Batch) -> Result<(), BoxError> {
        let place = self.names.iter().position(|known| known == name);
        let place = place.ok_or_else(|| {
            format!("there is no output {name:?}; the outputs are {}", self.names.join(", "))
        })?;
        self.batches[place].push(batch);
        Ok(())
    }

    /// What was sent, by output.
    pub fn into_batches(self) -> Vec<Vec<Batch>> {
        self.batches
    }
}

/// A deterministic function from steps to outputs, with state that can be stored.
///
/// The same steps from the same state must give the same output: that is what makes a replay after a
/// crash equal to the first run.
pub trait Circuit: Send {
    /// Works on one step.
    ///
    /// # Errors
    /// An error stops the pipeline; the step is not written and will be given again at the next start.
    fn step(&mut self, step: &Step, output: &mut StepOutput<'_>) -> Result<(), BoxError>;

    /// The state after the last step, to be stored in a checkpoint.
    ///
    /// # Errors
    /// An error keeps the checkpoint from being taken and stops the pipeline.
    fn checkpoint(&mut self) -> Result<Vec<u8>, BoxError>;

    /// Goes back to a state from [`checkpoint`](Self::checkpoint).
    ///
    /// # Errors
    /// If the bytes are not such a state.
    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError>;
}

/// The circuit that sends every record to every output unchanged.
#[derive(Clone, Copy, Debug, Default)]
pub struct PassThrough;

impl Circuit for PassThrough {
    fn step(&mut self, step: &Step, output: &mut StepOutput<'_>) -> Result<(), BoxError> {
        let batches = step.parts.iter().flat_map(|part| &part.batches);
        batches.for_each(|batch| output.send_to_all(batch));
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<Vec<u8>, BoxError> {
        Ok(Vec::new())
    }

    fn restore(&mut self, _state: &[u8]) -> Result<(), BoxError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{BatchBuilder, NewRecord};
    use crate::record::Partition;

    fn batch(records: u64) -> Batch {
        let mut batch = BatchBuilder::new(Arc::new(Partition { source: "s".into(), number: None }));
        for offset in 0..records {
            batch.push(NewRecord { offset, ..NewRecord::default() }).unwrap();
        }
        batch.build()
    }

    fn counts(output: StepOutput<'_>) -> Vec<u64> {
        output.into_batches().iter().map(|batches| count(batches)).collect()
    }

    #[test]
    fn a_batch_goes_where_it_is_sent() {
        let names = ["all".to_owned(), "some".to_owned()];
        let mut output = StepOutput::new(&names);
        output.send("some", batch(2)).unwrap();
        let error = output.send("none", batch(1)).unwrap_err().to_string();
        assert_eq!(error, "there is no output \"none\"; the outputs are all, some");
        output.send_to_all(&batch(3));
        assert_eq!(counts(output), [3, 5]);
    }

    #[test]
    fn every_record_passes_through() {
        let part = |input, records: [u64; 2]| Part {
            input,
            batches: records.map(batch).to_vec(),
            seek: None,
        };
        let step = Step { number: 1, parts: vec![part(0, [1, 2]), part(2, [0, 4])] };
        assert_eq!(step.records(), 7);
        let names = ["one".to_owned(), "two".to_owned()];
        let mut output = StepOutput::new(&names);
        PassThrough.step(&step, &mut output).unwrap();
        assert_eq!(counts(output), [7, 7]);
        assert!(PassThrough.checkpoint().unwrap().is_empty());
        PassThrough.restore(&[]).unwrap();
    }
}
