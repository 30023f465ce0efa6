//! Outputs of the simulation: one like a file, one like a topic that is written in transactions.

use std::sync::Arc;

use lockgate_core::{Batch, EndpointError, Output, OutputReporter, Record};
use serde_json::{Value as JsonValue, json};

use crate::disk;
use crate::plan::OutputPlan;
use crate::world::{Row, Shared, World};

pub(crate) struct SimulatedOutput {
    world: Shared,
    place: usize,
    /// The last step that the pipeline knows.
    known: u64,
    /// Steps of the open transaction.
    open: Vec<(u64, Vec<Row>)>,
    /// The last step that was written.
    written: Option<u64>,
}

impl SimulatedOutput {
    pub(crate) fn new(world: Shared, place: usize) -> Self {
        Self { world, place, known: 0, open: Vec::new(), written: None }
    }

    /// # Errors
    /// If something is wrong with the output at the moment. Whether what it was doing happens all the same.
    fn trouble(&self, world: &mut World, what: &str) -> Result<(), (EndpointError, bool)> {
        if disk::is_gone() {
            return Err((failed(what, "there is no machine any more"), false));
        }
        let trouble = &mut world.output_troubles[self.place];
        if trouble.is_full {
            let source = "no space".into();
            world.coverage.count("an output that waits for space");
            return Err((EndpointError::StorageFull { what: what.into(), source }, false));
        }
        if let Some(done) = trouble.fails.take() {
            world.coverage.count("an output that failed");
            return Err((failed(what, "it failed"), done));
        }
        Ok(())
    }

    /// Makes the open transaction visible.
    fn commit(&mut self, world: &mut World) -> Result<(), EndpointError> {
        let trouble = self.trouble(world, "committing");
        if trouble.as_ref().map_or_else(|(_, done)| *done, |()| true) {
            let destination = &mut world.destinations[self.place];
            for (step, rows) in self.open.drain(..) {
                destination.rows.extend(rows);
                destination.last_step = step;
            }
        }
        trouble.map_err(|(error, _)| error)
    }
}

fn failed(what: &str, why: &str) -> EndpointError {
    EndpointError::Storage { what: what.into(), source: why.into() }
}

fn row(record: &Record<'_>) -> Option<Row> {
    let value = record.value?;
    let (value, tally) = (value.first_chunk::<8>()?, value.last_chunk::<8>()?);
    Some(Row {
        input: record.partition.source.strip_prefix('s')?.parse().ok()?,
        partition: record.partition.number.unwrap_or(0),
        n: crate::world::Upstream::number(record.offset)?,
        value: *value,
        tally: u64::from_le_bytes(*tally),
    })
}

impl Output for SimulatedOutput {
    fn attach(&mut self, last_step: u64, _reporter: Arc<dyn OutputReporter>) {
        self.known = last_step;
    }

    fn recover(&mut self, position: Option<&JsonValue>) -> Result<JsonValue, EndpointError> {
        let world = &mut *self.world.lock();
        let destination = &mut world.destinations[self.place];
        let rows = destination.rows.len() as u64;
        match destination.plan {
            OutputPlan::File => {
                let wanted = position.map_or(Some(rows), JsonValue::as_u64);
                let Some(wanted) = wanted.filter(|wanted| *wanted <= rows) else {
                    let text = format!("the output has {rows} rows, not {position:?}");
                    world.breach_unless_rotten(&text);
                    return Err(EndpointError::Data(text));
                };
                if wanted < rows {
                    world.coverage.count("an output that was cut back");
                }
                let destination = &mut world.destinations[self.place];
                destination.rows.truncate(wanted as usize);
                destination.synced = destination.rows.len();
                Ok(json!(wanted))
            }
            OutputPlan::Transactions { .. } => {
                let last = destination.last_step;
                if last > self.known {
                    let text =
                        format!("the output has step {last}, the state knows {}", self.known);
                    world.breach_unless_rotten(&text);
                    return Err(EndpointError::Data(text));
                }
                Ok(json!(last))
            }
        }
    }

    fn write(&mut self, step: u64, batches: &[Batch]) -> Result<(), EndpointError> {
        let rows: Option<Vec<Row>> =
            batches.iter().flat_map(Batch::iter).map(|record| row(&record)).collect();
        let shared = self.world.clone();
        let world = &mut *shared.lock();
        let Some(rows) = rows else {
            world.breach(format!("step {step} has a record that is none of ours"));
            return Err(EndpointError::Bug("a foreign record".into()));
        };
        let trouble = self.trouble(world, "writing");
        let full = matches!(trouble, Err((EndpointError::StorageFull { .. }, _)));
        if !full && !disk::is_gone() {
            world.step_written(self.place, step, self.written, &rows);
            self.written = Some(step);
        }
        let done = trouble.as_ref().map_or_else(|(_, done)| *done, |()| true);
        let mut commits = false;
        let destination = &mut world.destinations[self.place];
        match destination.plan {
            OutputPlan::File if done => destination.rows.extend(&rows),
            OutputPlan::Transactions { steps } => {
                if step <= destination.last_step {
                    world.coverage.count("a step that the output had");
                } else if trouble.is_ok() {
                    self.open.push((step, rows));
                    commits = self.open.len() >= steps as usize;
                }
            }
            OutputPlan::File => {}
        }
        trouble.map_err(|(error, _)| error)?;
        if commits { self.commit(world) } else { Ok(()) }
    }

    fn prepare(&mut self) -> Result<JsonValue, EndpointError> {
        let shared = self.world.clone();
        let world = &mut *shared.lock();
        self.commit(world)?;
        let destination = &mut world.destinations[self.place];
        match destination.plan {
            OutputPlan::File => {
                destination.synced = destination.rows.len();
                Ok(json!(destination.rows.len()))
            }
            OutputPlan::Transactions { .. } => Ok(json!(destination.last_step)),
        }
    }

    fn checkpointed(&mut self) -> Result<(), EndpointError> {
        self.world.lock().happened("a checkpoint");
        Ok(())
    }
}
