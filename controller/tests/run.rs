//! The driver with its threads and a real state directory, over inputs and outputs in memory.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use lockgate_controller::{
    Controller, Delivery, Error, OnStall, Pipeline, Settings, State, Status, Tuning,
};
use lockgate_core::{
    Batch, BoxError, Circuit, EndpointError, FaultTolerance, InputConsumer, InputEndpoint,
    InputReader, InputReaderCommand, MemoryInput, MemoryOutput, MemoryRecord, Output, Step,
    StepOutput,
};
use serde_json::Value as JsonValue;
use tempfile::TempDir;

fn settings(state: &Path) -> Settings {
    settings_of(10, 30, state)
}

fn settings_of(min_batch_records: u64, max_batch_records: usize, state: &Path) -> Settings {
    let tuning = Tuning { min_batch_records, max_batch_records, ..Tuning::default() };
    Settings { tuning, ..Settings::new(state) }
}

fn numbers(n: u32) -> MemoryInput {
    let records = (0..n).map(|i| MemoryRecord::of(format!("{i},"))).collect();
    MemoryInput::new("numbers", records)
}

fn expected(n: u32) -> Vec<Vec<u8>> {
    (0..n).map(|i| format!("{i},").into_bytes()).collect()
}

fn run(pipeline: Pipeline) -> Result<Status, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let controller = Controller::open(pipeline)?;
        let run = controller.run();
        tokio::time::timeout(Duration::from_secs(60), run).await.expect("the run hangs")
    })
}

#[test]
fn all_input_reaches_the_output_in_order() {
    for delivery in [Delivery::ExactlyOnce, Delivery::AtLeastOnce, Delivery::None] {
        let dir = TempDir::new().unwrap();
        let output = MemoryOutput::default();
        let settings = Settings { delivery, ..settings(dir.path()) };
        let pipeline = Pipeline::new("p", settings)
            .input("numbers", numbers(1000).seek_every(7))
            .output("out", output.clone());
        let status = run(pipeline).unwrap();
        assert_eq!(output.values(), expected(1000));
        assert_eq!((status.inputs[0].records, status.outputs[0].records), (1000, 1000));
        assert_eq!(status.checkpointed_step, status.step);
        assert_eq!(dir.path().join("state.db").exists(), delivery != Delivery::None);
    }
}

#[test]
fn a_finished_pipeline_has_nothing_more_to_do() {
    let dir = TempDir::new().unwrap();
    let output = MemoryOutput::default();
    let pipeline = || {
        Pipeline::new("p", settings(dir.path()))
            .input("numbers", numbers(100))
            .output("out", output.clone())
    };
    let first = run(pipeline()).unwrap();
    let second = run(pipeline()).unwrap();
    assert_eq!((second.steps, second.step), (0, first.step));
    assert_eq!(output.values(), expected(100));
}

/// Sums what it reads; fails at a step if told to.
struct Sum {
    total: u64,
    fail_at: u64,
}

impl Circuit for Sum {
    fn step(&mut self, step: &Step, output: &mut StepOutput<'_>) -> Result<(), BoxError> {
        assert!(step.number != self.fail_at || self.fail_at.is_multiple_of(2), "as told");
        if step.number == self.fail_at {
            return Err("as told".into());
        }
        for part in &step.parts {
            self.total += part.batches.iter().map(|batch| batch.len() as u64).sum::<u64>();
            part.batches.iter().for_each(|batch| output.send_to_all(batch));
        }
        Ok(())
    }

    fn checkpoint(&mut self) -> Result<Vec<u8>, BoxError> {
        Ok(self.total.to_le_bytes().to_vec())
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), BoxError> {
        self.total = u64::from_le_bytes(state.try_into()?);
        Ok(())
    }
}

/// The circuit's state, the output and the position go back to the same step, whatever failed and when.
#[test]
fn a_failed_circuit_is_given_the_step_again() {
    for fail_at in 1..=7 {
        let dir = TempDir::new().unwrap();
        let output = MemoryOutput::default();
        let pipeline = |fail_at| {
            Pipeline::new("p", settings(dir.path()))
                .input("numbers", numbers(200))
                .output("out", output.clone())
                .circuit(Sum { total: 0, fail_at })
        };
        let error = run(pipeline(fail_at)).unwrap_err();
        match fail_at.is_multiple_of(2) {
            true => {
                assert!(matches!(error, Error::Circuit { step, .. } if step == fail_at), "{error}")
            }
            false => assert!(matches!(error, Error::Bug(_)), "{error}"),
        }
        run(pipeline(u64::MAX - 1)).unwrap();
        assert_eq!(output.values(), expected(200));
        let checkpoint = State::inspect(dir.path()).unwrap().checkpoint.unwrap();
        assert_eq!(checkpoint.circuit, 200u64.to_le_bytes());
    }
}

/// The checkpoint after a replay once stored empty positions.
#[test]
fn crash_replay_checkpoint_crash_resume() {
    let dir = TempDir::new().unwrap();
    let output = MemoryOutput::default();
    let pipeline = |fail_at| {
        Pipeline::new("p", settings(dir.path()))
            .input("numbers", numbers(300))
            .output("out", output.clone())
            .circuit(Sum { total: 0, fail_at })
    };
    run(pipeline(4)).unwrap_err();
    let journaled = State::inspect(dir.path()).unwrap().journal.len();
    assert!(journaled > 0, "there must be something to replay");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let controller = Controller::open(pipeline(u64::MAX - 1)).unwrap();
        controller.handle().stop();
        controller.run().await.unwrap();
    });
    let seek = State::inspect(dir.path()).unwrap().checkpoint.unwrap().inputs["numbers"].clone();
    let seek = seek.map(|seek| seek.as_u64().unwrap());
    assert_eq!(seek.unwrap_or(0), output.values().len() as u64);

    run(pipeline(6)).unwrap_err();
    run(pipeline(u64::MAX - 1)).unwrap();
    assert_eq!(output.values(), expected(300));
}

/// Journaled steps that at-least-once had read again in other cuts once came back with exactly-once.
#[test]
fn a_journal_from_before_a_change_of_delivery_is_not_replayed() {
    let dir = TempDir::new().unwrap();
    let output = MemoryOutput::default();
    let pipeline = |delivery, max_batch_records, fail_at| {
        let settings = Settings {
            delivery,
            accept_changes: true,
            ..settings_of(max_batch_records as u64, max_batch_records, dir.path())
        };
        Pipeline::new("p", settings)
            .input("numbers", numbers(100))
            .output("out", output.clone())
            .circuit(Sum { total: 0, fail_at })
    };
    run(pipeline(Delivery::ExactlyOnce, 1, 20)).unwrap_err();
    let journal = State::inspect(dir.path()).unwrap().journal;
    let status = run(pipeline(Delivery::AtLeastOnce, 100, u64::MAX - 1)).unwrap();
    let last = journal.last().map(|last| last.step);
    assert!(last > Some(status.step), "a step must be left that no checkpoint covers: {last:?}");
    assert_eq!(output.values(), expected(100));
    run(pipeline(Delivery::ExactlyOnce, 100, u64::MAX - 1)).unwrap();
    assert_eq!(output.values(), expected(100));
}

/// A full disk is waited for, said, and leaves no trace in the output.
#[derive(Clone)]
struct FullAtFirst {
    inner: MemoryOutput,
    refusals: Arc<AtomicU32>,
}

impl FullAtFirst {
    fn room(&self) -> Result<(), EndpointError> {
        let left = |n: u32| n.checked_sub(1);
        match self.refusals.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
            Ok(_) => {
                let source = std::io::Error::from(std::io::ErrorKind::StorageFull).into();
                Err(EndpointError::StorageFull { what: "writing out.log".into(), source })
            }
            Err(_) => Ok(()),
        }
    }
}

impl Output for FullAtFirst {
    fn recover(&mut self, position: Option<&JsonValue>) -> Result<JsonValue, EndpointError> {
        self.inner.recover(position)
    }
    fn write(&mut self, step: u64, batches: &[Batch]) -> Result<(), EndpointError> {
        self.room()?;
        self.inner.write(step, batches)
    }
    fn prepare(&mut self) -> Result<JsonValue, EndpointError> {
        self.inner.prepare()
    }
    fn checkpointed(&mut self) -> Result<(), EndpointError> {
        self.inner.checkpointed()
    }
}

#[test]
fn a_full_disk_is_waited_for() {
    let dir = TempDir::new().unwrap();
    let output = FullAtFirst { inner: MemoryOutput::default(), refusals: Arc::new(2.into()) };
    let pipeline = Pipeline::new("p", settings(dir.path()))
        .input("numbers", numbers(100))
        .output("out", output.clone());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let status = runtime.block_on(async {
        let controller = Controller::open(pipeline).unwrap();
        let mut status = controller.handle().status().clone();
        let blocked = async move {
            let blocked = status.wait_for(|status| status.blocked.is_some()).await.unwrap();
            blocked.blocked.clone()
        };
        let (ended, blocked) = tokio::join!(controller.run(), blocked);
        assert_eq!(blocked.as_deref(), Some("writing out.log: no storage space"));
        ended.unwrap()
    });
    assert_eq!(status.blocked, None);
    assert_eq!(output.inner.values(), expected(100));
}

/// A reader that never answers.
struct Silent(Arc<dyn InputConsumer>);

struct SilentInput;

impl InputEndpoint for SilentInput {
    fn fault_tolerance(&self) -> FaultTolerance {
        FaultTolerance::ExactlyOnce
    }
    fn open(
        self: Box<Self>,
        _level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        _resume: Option<JsonValue>,
    ) -> Result<Box<dyn InputReader>, EndpointError> {
        Ok(Box::new(Silent(consumer)))
    }
}

impl InputReader for Silent {
    fn request(&self, command: InputReaderCommand) {
        if command == InputReaderCommand::Extend {
            self.0.buffered(lockgate_core::BufferSize { records: 1, bytes: 1 });
        }
    }
    fn is_closed(&self) -> bool {
        false
    }
}

#[test]
fn a_reader_that_never_answers_is_named_and_stops_the_run_if_told_so() {
    let dir = TempDir::new().unwrap();
    let mut settings = settings(dir.path());
    settings.tuning.stall_timeout = Duration::from_millis(50);
    settings.tuning.on_stall = OnStall::Stop;
    let pipeline = Pipeline::new("p", settings)
        .input("numbers", numbers(10))
        .input("silent", SilentInput)
        .output("out", MemoryOutput::default());
    let error = run(pipeline).unwrap_err();
    assert!(matches!(&error, Error::Stalled { input, .. } if input == "silent"), "{error}");
}

#[test]
fn a_source_that_cannot_keep_the_promise_is_refused() {
    struct Weak;
    impl InputEndpoint for Weak {
        fn fault_tolerance(&self) -> FaultTolerance {
            FaultTolerance::AtLeastOnce
        }
        fn open(
            self: Box<Self>,
            _level: FaultTolerance,
            _consumer: Arc<dyn InputConsumer>,
            _resume: Option<JsonValue>,
        ) -> Result<Box<dyn InputReader>, EndpointError> {
            unreachable!("it must not be opened")
        }
    }
    let dir = TempDir::new().unwrap();
    let pipeline = Pipeline::new("p", settings(dir.path())).input("weak", Weak);
    let error = run(pipeline).unwrap_err().to_string();
    insta::assert_snapshot!(error, @"input weak: its source keeps AtLeastOnce at most, but the pipeline's delivery needs ExactlyOnce");
}

/// An output that waits for an asynchronous client of its own, as most do that have one.
struct Blocking {
    runtime: tokio::runtime::Runtime,
    kept: MemoryOutput,
}

impl Output for Blocking {
    fn recover(&mut self, position: Option<&JsonValue>) -> Result<JsonValue, EndpointError> {
        self.kept.recover(position)
    }

    fn write(&mut self, step: u64, batches: &[Batch]) -> Result<(), EndpointError> {
        self.runtime.block_on(async { self.kept.write(step, batches) })
    }

    fn prepare(&mut self) -> Result<JsonValue, EndpointError> {
        self.runtime.block_on(async { self.kept.prepare() })
    }

    fn checkpointed(&mut self) -> Result<(), EndpointError> {
        self.kept.checkpointed()
    }
}

/// The thread of the outputs once ran them inside a runtime, in which nobody may wait for another.
#[test]
fn an_output_may_block_on_a_runtime_of_its_own() {
    let dir = TempDir::new().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let kept = MemoryOutput::default();
    let output = Blocking { runtime, kept: kept.clone() };
    let pipeline = Pipeline::new("p", settings(dir.path())).input("numbers", numbers(100));
    run(pipeline.output("out", output)).unwrap();
    assert_eq!(kept.values(), expected(100));
}
