//! What is rendered, in several states of a pipeline.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use lockgate_controller::{
    CheckpointStatus, CheckpointSummary, Histogram, JournalStatus, StepDurations,
};
use lockgate_core::{BufferSize, Partition, QueueLimits};

use super::lint::{Sample, lint, parse};
use super::table::{Kind, Unit};
use super::*;

/// All states begin here.
const STARTED: u64 = 1_796_040_000;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(STARTED + seconds)
}

fn facts(inputs: &[(&str, &'static str)], outputs: &[(&str, &'static str)]) -> Facts {
    let endpoints = |all: &[(&str, &'static str)]| {
        let endpoint =
            |(name, kind): &(&str, &'static str)| Endpoint { name: (*name).into(), kind };
        all.iter().map(endpoint).collect()
    };
    Facts {
        pipeline: "orders".into(),
        file: PathBuf::from("pipeline.yaml"),
        delivery: "exactly_once",
        inputs: endpoints(inputs),
        outputs: endpoints(outputs),
        started_at: at(0),
    }
}

fn usual_facts() -> Facts {
    facts(&[("orders", "kafka"), ("old", "file")], &[("copy", "file")])
}

fn snapshot<'a>(facts: &'a Facts, status: Option<&'a Status>) -> Snapshot<'a> {
    Snapshot {
        facts,
        status,
        partitions: Vec::new(),
        last_reload: None,
        process: Process::default(),
        now: at(100),
    }
}

fn spread(durations: &[(u64, u64)]) -> Histogram {
    let mut histogram = Histogram::default();
    for (us, times) in durations {
        histogram.observe(Duration::from_micros(*us), *times);
    }
    histogram
}

fn topic(number: u32, position: u64, end: Option<u64>) -> PartitionStatus {
    let partition = Arc::new(Partition { source: "orders".into(), number: Some(number) });
    PartitionStatus { partition, position, end }
}

fn file(path: &str, position: u64, end: u64) -> PartitionStatus {
    let partition = Arc::new(Partition { source: path.into(), number: None });
    PartitionStatus { partition, position, end: Some(end) }
}

/// A run in which everything has happened that can.
fn running() -> Status {
    let orders = InputStatus {
        name: "orders".into(),
        records: 2_000_000,
        bytes: 400_000_000,
        held: BufferSize { records: 12, bytes: 2_400 },
        limits: QueueLimits { max_queued_records: 1_000_000, max_queued_bytes: 16 << 20 },
        at_barrier: true,
        stalled: true,
        stalled_for: Duration::from_millis(61_500),
        paused: vec![PauseReason::User, PauseReason::Backpressure],
        policies: BTreeMap::from([("expired_skipped", 2)]),
        errors: BTreeMap::from([("unavailable", 3), ("another", 1)]),
        last_error: Some("broker is gone".into()),
        latency: spread(&[(900, 1_999_000), (40_000, 999), (400_000_000, 1)]),
        ..InputStatus::default()
    };
    let old = InputStatus { name: "old".into(), ended: true, ..InputStatus::default() };
    Status {
        phase: Phase::Running,
        step: 141,
        steps: 42,
        replayed_steps: 2,
        steps_to_replay: 2,
        steps_in_flight: 3,
        checkpointed_step: 130,
        checkpoints: 4,
        checkpoint: CheckpointStatus {
            stage: CheckpointStage::ClearingBarriers,
            recent: [(100, None), (130, Some(Duration::from_millis(12)))]
                .map(|(step, took)| CheckpointSummary {
                    step,
                    stored_at: at(step - 50),
                    took,
                    bytes: took.map(|_| 4_096),
                })
                .into(),
        },
        journal: JournalStatus { steps: 11, bytes: 12_345 },
        durations: StepDurations {
            queue: spread(&[(700, 40), (3_000, 2)]),
            journal: spread(&[(400, 42)]),
            circuit: spread(&[(90, 42)]),
            output: spread(&[(1_200, 39)]),
        },
        reloading: true,
        reloads: 1,
        elapsed: Duration::from_millis(98_250),
        blocked: Some("out/orders.log: No space left on device".into()),
        inputs: vec![orders, old],
        outputs: vec![OutputStatus {
            name: "copy".into(),
            records: 1_999_988,
            bytes: 399_997_600,
            trouble: Some("No space left on device".into()),
            retries: 7,
            policies: BTreeMap::from([("refused_skipped", 1)]),
        }],
    }
}

fn refused_reload() -> LastReload {
    LastReload { at: at(90).into(), changes: Vec::new(), error: Some("name cannot change".into()) }
}

fn a_process() -> Process {
    Process {
        cpu: Some(Duration::from_millis(12_340)),
        resident_bytes: Some(64 << 20),
        virtual_bytes: Some(512 << 20),
        open_fds: Some(23),
        max_fds: Some(1024),
        threads: Some(9),
        started: Some(Duration::from_secs(STARTED - 1)),
    }
}

/// The text, which has nothing against it, without the version, which changes.
#[track_caller]
fn rendered(snapshot: &Snapshot<'_>) -> String {
    let text = render(snapshot);
    assert_eq!(lint(&text), [""; 0]);
    text.replace(concat!("\"", env!("CARGO_PKG_VERSION"), "\""), "\"VERSION\"")
}

#[track_caller]
fn samples(text: &str, name: &str) -> Vec<Sample> {
    let families = parse(text).unwrap();
    families.into_iter().flat_map(|family| family.samples).filter(|one| one.name == name).collect()
}

#[test]
fn while_the_pipeline_is_being_opened_there_is_nothing_of_a_run() {
    let facts = usual_facts();
    insta::assert_snapshot!("opening", rendered(&snapshot(&facts, None)));
}

#[test]
fn a_run_in_which_everything_has_happened() {
    let (facts, status) = (usual_facts(), running());
    let text = rendered(&Snapshot {
        partitions: vec![
            vec![topic(0, 10, Some(17)), topic(1, 5, Some(5)), topic(2, 0, None)],
            vec![file("in/old.log", 512, 512)],
        ],
        last_reload: Some(refused_reload()),
        process: a_process(),
        ..snapshot(&facts, Some(&status))
    });
    let present: Vec<_> = parse(&text).unwrap().into_iter().map(|family| family.name).collect();
    let all: Vec<_> = Metric::ALL.iter().map(|metric| metric.description().name).collect();
    assert_eq!(present, all, "each metric of the table, in its order");
    insta::assert_snapshot!("running", text);
}

#[test]
fn a_run_that_has_ended() {
    let facts = facts(&[("orders", "file")], &[("copy", "null")]);
    let input = InputStatus { name: "orders".into(), ended: true, ..InputStatus::default() };
    let output = OutputStatus { name: "copy".into(), ..OutputStatus::default() };
    let status = Status {
        phase: Phase::Ended,
        inputs: vec![input],
        outputs: vec![output],
        ..Status::default()
    };
    insta::assert_snapshot!("ended", rendered(&snapshot(&facts, Some(&status))));
}

#[test]
fn names_may_hold_anything() {
    let hostile =
        ["a\"} 1\nlockgate_x 2", "back\\slash\\", "\\n", "naïve 注文 \u{1f6a2}", "\t \r#", ""];
    for name in hostile {
        let facts = facts(&[(name, "file")], &[(name, "file")]);
        let mut status = running();
        status.inputs.truncate(1);
        let path = format!("in/{name}/x.log");
        let text = rendered(&Snapshot {
            partitions: vec![vec![file(&path, 1, 3)]],
            ..snapshot(&facts, Some(&status))
        });
        let lags = samples(&text, "lockgate_partition_lag");
        assert_eq!(lags.len(), 1);
        assert_eq!(lags[0].label("input"), Some(name));
        assert_eq!(lags[0].label("partition"), Some(path.as_str()));
        assert_eq!(lags[0].number, 2.0);
        assert_eq!(samples(&text, "lockgate_output_retries_total")[0].label("output"), Some(name));
    }
}

#[test]
fn what_looks_the_same_comes_once() {
    let (facts, status) = (usual_facts(), running());
    let partitions = vec![vec![file("a\u{fffd}", 1, 3), file("a\u{fffd}", 2, 9)]];
    let text = rendered(&Snapshot { partitions, ..snapshot(&facts, Some(&status)) });
    assert_eq!(samples(&text, "lockgate_partition_lag").len(), 1);
    assert_eq!(samples(&text, "lockgate_input_lag")[0].number, 9.0);
}

#[test]
fn partitions_that_are_gone_leave_no_series() {
    let (facts, status) = (usual_facts(), running());
    let partitions = vec![vec![topic(0, 10, Some(17)), topic(1, 0, Some(1))]];
    let before = Snapshot { partitions, ..snapshot(&facts, Some(&status)) };
    assert_eq!(samples(&render(&before), "lockgate_partition_position").len(), 2);
    let after = Snapshot { partitions: vec![vec![topic(1, 0, Some(1))]], ..before };
    assert_eq!(samples(&render(&after), "lockgate_partition_position").len(), 1);
}

#[test]
fn ten_thousand_partitions_are_few_lines() {
    let (facts, status) = (usual_facts(), running());
    let many: Vec<_> = (0..10_000).map(|n| topic(n, 5, Some(5 + u64::from(n)))).collect();
    let text = rendered(&Snapshot { partitions: vec![many], ..snapshot(&facts, Some(&status)) });
    assert!(text.len() < 64 << 10, "{} bytes", text.len());
    assert_eq!(samples(&text, "lockgate_input_partitions")[0].number, 10_000.0);
    assert_eq!(samples(&text, "lockgate_input_lag")[0].number, 49_995_000.0);
    assert_eq!(samples(&text, "lockgate_input_lag_max")[0].number, 9_999.0);
    assert_eq!(samples(&text, "lockgate_input_lagging_partitions")[0].number, 9_999.0);
    let lags = samples(&text, "lockgate_partition_lag");
    assert_eq!(lags.len(), partitions::MOST_LAGGING);
    assert!(lags.iter().all(|sample| sample.number >= 9_900.0));
}

#[test]
fn a_board_without_a_run_can_be_looked_at() {
    let (board, _wishes) = Board::new(usual_facts());
    let text = metrics(&board);
    assert_eq!(lint(&text), [""; 0]);
    let opening = samples(&text, "lockgate_phase").into_iter().find(|phase| phase.number == 1.0);
    assert_eq!(opening.unwrap().label("phase"), Some("opening"));
    assert_eq!(samples(&text, "lockgate_config_last_reload_successful")[0].number, 1.0);

    board.reloaded(&Err(crate::control::ReloadError::Invalid("no".into())));
    let text = metrics(&board);
    assert_eq!(samples(&text, "lockgate_config_last_reload_successful")[0].number, 0.0);
    assert_eq!(samples(&text, "lockgate_config_last_reload_timestamp_seconds").len(), 1);
}

#[test]
fn the_table_names_units_as_it_says() {
    for metric in Metric::ALL {
        let about = metric.description();
        let name = about.name.trim_end_matches("_total");
        assert_eq!(name.ends_with("_seconds"), about.unit == Unit::Seconds, "{name}");
        assert_eq!(name.ends_with("_bytes"), about.unit == Unit::Bytes, "{name}");
        assert_eq!(name.ends_with("_info"), about.unit == Unit::One, "{name}");
        assert_eq!(about.name.ends_with("_total"), about.kind == Kind::Counter, "{name}");
        assert!(about.help.ends_with('.') && !about.help.contains('\n'), "{name}");
    }
}

#[test]
fn limits_in_the_help_are_those_in_force() {
    let help = Metric::PartitionLag.description().help;
    for limit in [partitions::ALL_SHOWN, partitions::MOST_LAGGING] {
        assert!(help.contains(&format!(" {limit} ")), "{limit}: {help}");
    }
}

#[test]
fn each_kind_of_error_has_a_series_from_the_start() {
    use lockgate_core::EndpointError::{
        Bug, Configuration, Data, Storage, StorageFull, Superseded, Unavailable,
    };

    let what = || String::from("reading");
    let source = || "it failed".into();
    let errors = [
        Bug(what()),
        Configuration(what()),
        Data(what()),
        Storage { what: what(), source: source() },
        StorageFull { what: what(), source: source() },
        Superseded { what: what(), source: source() },
        Unavailable { what: what(), source: source() },
    ];
    // A new variant wants a place in the list above.
    for error in &errors {
        match error {
            Bug(_) | Configuration(_) | Data(_) => {}
            Storage { .. } | StorageFull { .. } | Superseded { .. } | Unavailable { .. } => {}
        }
    }
    assert_eq!(errors.map(|error| error.kind()), ERROR_KINDS);
}
