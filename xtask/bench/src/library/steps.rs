//! What a step costs by itself: one record without bytes, so that nearly nothing but the step is left.

use std::time::Instant;

use anyhow::{Result, ensure};
use lockgate_controller::{Controller, Delivery, Pipeline, Settings};
use lockgate_core::{MemoryInput, MemoryRecord};
use lockgate_file_adapter::NullOutput;
use tokio::runtime::Builder;

/// Nanoseconds for each of so many steps, opening and the last checkpoint included.
pub(super) fn run(exactly_once: bool, steps: u64) -> Result<f64> {
    let folder = tempfile::tempdir_in(".")?;
    let mut settings = Settings::new(folder.path().join("state"));
    settings.delivery = if exactly_once { Delivery::ExactlyOnce } else { Delivery::None };
    settings.tuning.min_batch_records = 1;
    settings.tuning.max_batch_records = 1;
    let records = vec![MemoryRecord::of([]); usize::try_from(steps)?];
    let mut pipeline = Pipeline::new("steps", settings)
        .input("in", MemoryInput::new("memory", records))
        .output("out", NullOutput);
    // The input in memory adds up what it holds again and again, which is not what is measured.
    for input in &mut pipeline.inputs {
        input.tuning.limits.max_queued_records = 4;
    }
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let begun = Instant::now();
    let status = runtime.block_on(async { Controller::open(pipeline)?.run().await })?;
    let elapsed = begun.elapsed();
    ensure!(status.steps >= steps, "there were {} steps", status.steps);
    Ok(elapsed.as_nanos() as f64 / status.steps as f64)
}
