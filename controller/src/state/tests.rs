use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};

use serde_json::json;
use tempfile::TempDir;

use super::*;

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_string()).collect()
}

fn open_as(dir: &Path, paths: &str, accept: bool) -> Result<State, StateError> {
    let settings = [setting("inputs.orders.file.paths", paths, ChangeClass::ResetsPosition)];
    open_with(dir, &["orders", "returns"], &settings, accept)
}

fn setting(path: &str, value: &str, class: ChangeClass) -> Setting {
    Setting { path: path.into(), value: value.into(), class }
}

fn open_with(
    dir: &Path,
    inputs: &[&str],
    settings: &[Setting],
    accept: bool,
) -> Result<State, StateError> {
    let (inputs, outputs) = (&names(inputs)[..], &names(&["copy"])[..]);
    let owner = Owner { pipeline: "shop", inputs, outputs, settings, keeps_journal: true };
    State::open(dir, owner, accept)
}

fn open(dir: &Path) -> State {
    open_as(dir, "in/*.log", false).unwrap()
}

fn refusal(dir: &Path) -> String {
    let error = open_as(dir, "in/*.log", false).unwrap_err().to_string();
    error.replace(&dir.display().to_string(), "DIR")
}

fn part(input: usize, records: u64) -> JournalPart {
    JournalPart {
        input,
        seek: json!({"offset": records}).into(),
        replay: rmpv::Value::Array(vec![1.into(), "a".into(), rmpv::Value::Nil]),
        digest: PartDigest { records, hash: u64::MAX - records },
    }
}

fn step(step: u64, parts: Vec<JournalPart>) -> JournaledStep {
    JournaledStep { step, parts }
}

fn checkpoint(step: u64) -> Checkpoint {
    Checkpoint {
        step,
        circuit: vec![1, 2, 3],
        seeks: vec![Some(json!({"offset": step})), None],
        positions: vec![json!({"length": 7})],
    }
}

#[test]
fn what_is_stored_comes_back_after_a_restart() {
    let dir = TempDir::new().unwrap();
    let mut state = open(dir.path());
    assert_eq!(state.checkpoint().unwrap(), None);
    state.store(&checkpoint(0), 5).unwrap();
    let steps = [
        step(1, vec![part(0, 3), part(1, 0)]),
        step(2, vec![part(1, 1)]),
        step(3, vec![JournalPart { seek: Position::Change(json!({"offset": 9})), ..part(0, 9) }]),
    ];
    state.append(&steps[..1]).unwrap();
    state.append(&steps[1..]).unwrap();
    drop(state);

    let mut state = open(dir.path());
    assert_eq!(state.journaled(0, 10).unwrap(), steps);
    assert_eq!(state.journaled(1, 1).unwrap(), steps[1..2]);
    state.store(&checkpoint(2), 6).unwrap();
    assert_eq!(state.journaled(2, 10).unwrap(), steps[2..]);
    let stored = state.checkpoint().unwrap().unwrap();
    assert_eq!((stored.step, stored.stored_at_ms, stored.circuit), (2, 6, vec![1, 2, 3]));
    let inputs = [("orders", Some(json!({"offset": 2}))), ("returns", None)];
    assert_eq!(stored.inputs, inputs.map(|(name, seek)| (name.into(), seek)).into());
    assert_eq!(stored.outputs, [("copy".into(), json!({"length": 7}))].into());
}

/// A zero-length state file once blocked the start, or restarted from nothing.
#[test]
fn an_empty_database_is_refused_not_taken_for_a_new_start() {
    let dir = TempDir::new().unwrap();
    drop(open(dir.path()));
    fs::write(dir.path().join(DATABASE), "").unwrap();
    insta::assert_snapshot!(refusal(dir.path()), @"state directory DIR: state.db is empty; nothing was changed: restore the directory from a copy, or remove it to start from the beginning");
    assert_eq!(fs::metadata(dir.path().join(DATABASE)).unwrap().len(), 0);
}

#[test]
fn a_lost_database_beside_its_write_ahead_log_is_refused() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("state.db-wal"), "x").unwrap();
    insta::assert_snapshot!(refusal(dir.path()), @"state directory DIR: there is a state.db-wal but no state.db; nothing was changed: restore the directory from a copy, or remove it to start from the beginning");
}

#[test]
fn an_unfinished_database_of_a_crashed_first_start_is_made_anew() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("state.db.new"), "half").unwrap();
    assert_eq!(open(dir.path()).checkpoint().unwrap(), None);
}

#[test]
fn something_else_under_the_name_is_refused() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join(DATABASE), "this is not a database, whatever it is".repeat(200))
        .unwrap();
    insta::assert_snapshot!(refusal(dir.path()), @"state directory DIR: state.db is damaged: file is not a database; nothing was changed: restore the directory from a copy, or remove it to start from the beginning");
}

/// A damaged row is named, not believed.
#[test]
fn a_changed_byte_in_a_row_is_noticed() {
    let damage = |marker: &[u8]| {
        let dir = TempDir::new().unwrap();
        let mut state = open(dir.path());
        state.store(&checkpoint(3), 5).unwrap();
        state.append(&[step(4, vec![part(0, 77_777)])]).unwrap();
        drop(state);
        let path = dir.path().join(DATABASE);
        let mut file = File::options().read(true).write(true).open(path).unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        let places =
            bytes.windows(marker.len()).enumerate().filter(|(_, window)| *window == marker);
        let places: Vec<_> = places.map(|(place, _)| place).collect();
        assert!(!places.is_empty());
        for place in places {
            file.seek(SeekFrom::Start((place + marker.len() - 1) as u64)).unwrap();
            file.write_all(b"8").unwrap();
        }
        drop(file);
        let read = open_as(dir.path(), "in/*.log", false).and_then(|state| state.journaled(3, 9));
        read.unwrap_err().to_string().replace(&dir.path().display().to_string(), "DIR")
    };
    insta::assert_snapshot!(damage(br#"{"offset":7777"#), @"state directory DIR: the journal of step 4, input orders is damaged; nothing was changed: restore the directory from a copy, or remove it to start from the beginning");
    insta::assert_snapshot!(damage(br#"{"length":7"#), @"state directory DIR: the position of output copy is damaged; nothing was changed: restore the directory from a copy, or remove it to start from the beginning");
}

/// Two processes on one state directory: the second is told who the first is.
#[test]
fn a_second_opening_is_refused_by_name() {
    let dir = TempDir::new().unwrap();
    let first = open(dir.path());
    let holder = std::process::id().to_string();
    let error = refusal(dir.path());
    assert!(error.starts_with("state directory DIR is in use by process "), "{error}");
    assert!(error.contains(&holder), "{error}");
    drop(first);
    // A stale lock file does not block: the lock was the kernel's.
    assert!(dir.path().join("lock").exists());
    open(dir.path());
}

/// The checkpoint's configuration once replaced the new one in silence.
#[test]
fn changed_settings_are_shown_and_refused() {
    let dir = TempDir::new().unwrap();
    open(dir.path()).store(&checkpoint(0), 5).unwrap();
    let refused = open_as(dir.path(), "in/*.gz", false).unwrap_err().to_string();
    insta::assert_snapshot!(refused.replace(&dir.path().display().to_string(), "DIR"), @"
    the pipeline is not the one that state directory DIR belongs to:
      inputs.orders.file.paths: was in/*.log, is in/*.gz
    run the old pipeline to its end, give this one another --state-dir, or go on from the stored positions with --accept
    ");
    drop(open(dir.path()));
    // Accepted changes last from the next checkpoint on.
    drop(open_as(dir.path(), "in/*.gz", true).unwrap());
    drop(open(dir.path()));
    let mut accepted = open_as(dir.path(), "in/*.gz", true).unwrap();
    assert!(accepted.is_unsettled().unwrap());
    accepted.store(&checkpoint(0), 6).unwrap();
    drop(accepted);
    assert!(!open_as(dir.path(), "in/*.gz", false).unwrap().is_unsettled().unwrap());
}

fn open_set(dir: &Path, settings: &[Setting], accept: bool) -> Result<State, StateError> {
    open_with(dir, &["orders", "returns"], settings, accept)
}

#[test]
fn changes_that_keep_positions_are_noticed_once() {
    let dir = TempDir::new().unwrap();
    let settings = |interval: &str, brokers: &str| {
        [
            setting("checkpoint_interval", interval, ChangeClass::Live),
            setting("brokers", brokers, ChangeClass::KeepsPosition),
        ]
    };
    open_set(dir.path(), &settings("10s", "h:1"), false).unwrap().store(&checkpoint(0), 5).unwrap();
    assert!(!open_set(dir.path(), &settings("10s", "h:1"), false).unwrap().is_unsettled().unwrap());

    let mut state = open_set(dir.path(), &settings("3s", "i:1")[..], false).unwrap();
    let noticed = ["brokers: was h:1, is i:1", "checkpoint_interval: was 10s, is 3s"];
    assert_eq!(state.noticed_changes(), noticed);
    assert!(state.accepted_changes().is_empty());
    assert!(state.is_unsettled().unwrap());
    state.store(&checkpoint(0), 6).unwrap();
    assert!(!state.is_unsettled().unwrap());
    drop(state);

    // One that is not there any more, and one that was not there.
    let left =
        [setting("follow", "true", ChangeClass::KeepsPosition), settings("3s", "i:1")[0].clone()];
    let state = open_set(dir.path(), &left, false).unwrap();
    let noticed = ["brokers: was i:1, is not there any more", "follow: was not there, is true"];
    assert_eq!(state.noticed_changes(), noticed);
}

/// A replay once cut records in another way than the run that journaled them.
#[test]
fn what_a_replay_depends_on_changes_after_an_orderly_stop_only() {
    let dir = TempDir::new().unwrap();
    let open = |overlong: &str, accept| {
        let class = ChangeClass::KeepsPositionAfterStop;
        open_set(dir.path(), &[setting("inputs.orders.file.overlong", overlong, class)], accept)
    };
    let mut state = open("truncate", false).unwrap();
    state.store(&checkpoint(0), 5).unwrap();
    state.append(&[step(1, vec![part(1, 3)])]).unwrap();
    drop(state);
    let refused = open("skip", false).unwrap_err().to_string();
    insta::assert_snapshot!(refused.replace(&dir.path().display().to_string(), "DIR"), @"
    state directory DIR has steps that have to be run again as they were, and these settings changed meanwhile:
      inputs.orders.file.overlong: was truncate, is skip
    start once with the old settings and stop it in order, after which the change needs no consent; or go on from the stored positions with --accept
    ");
    let accepted = open("skip", true).unwrap();
    assert_eq!(accepted.accepted_changes(), ["inputs.orders.file.overlong: was truncate, is skip"]);
    drop(accepted);

    // As an orderly stop leaves it.
    let mut state = open("truncate", false).unwrap();
    state.store(&checkpoint(1), 6).unwrap();
    drop(state);
    let mut state = open("skip", false).unwrap();
    assert_eq!(state.noticed_changes(), ["inputs.orders.file.overlong: was truncate, is skip"]);
    // It lasts before any step is journaled with it: a crash after that must not look like a change.
    assert!(state.is_unsettled().unwrap());
    state.store(&checkpoint(1), 7).unwrap();
    state.append(&[step(2, vec![part(1, 3)])]).unwrap();
    drop(state);
    assert!(open("skip", false).unwrap().noticed_changes().is_empty());
}

#[test]
fn journaled_steps_of_a_removed_input_are_refused() {
    let dir = TempDir::new().unwrap();
    let mut state = open(dir.path());
    state.append(&[step(1, vec![part(1, 3)])]).unwrap();
    drop(state);
    let error = open_with(dir.path(), &["orders"], &[], true).unwrap_err().to_string();
    insta::assert_snapshot!(error.replace(&dir.path().display().to_string(), "DIR"), @r#"state directory DIR: journaled steps need the input "returns", which the pipeline does not have; run it once more with that input"#);
}

/// A renamed input once began again in silence.
#[test]
fn renamed_and_reordered_inputs_are_refused() {
    let dir = TempDir::new().unwrap();
    let settings = [setting("inputs.orders.file.paths", "in/*.log", ChangeClass::ResetsPosition)];
    open(dir.path()).store(&checkpoint(0), 5).unwrap();
    for inputs in [["orders", "refunds"], ["returns", "orders"]] {
        let refused = open_with(dir.path(), &inputs, &settings, false);
        assert!(matches!(refused, Err(StateError::Changed { .. })));
    }
}

/// A link to a volume that was not mounted once looked like a first start.
#[test]
fn a_link_that_leads_nowhere_is_not_a_new_start() {
    let dir = TempDir::new().unwrap();
    std::os::unix::fs::symlink("/nowhere/state.db", dir.path().join(DATABASE)).unwrap();
    assert!(matches!(open_as(dir.path(), "in/*.log", false), Err(StateError::Storage { .. })));
    assert!(fs::symlink_metadata(dir.path().join(DATABASE)).unwrap().is_symlink());
}

#[test]
fn inspection_works_beside_a_running_pipeline() {
    let dir = TempDir::new().unwrap();
    assert!(matches!(State::inspect(dir.path()), Err(StateError::Missing { .. })));
    let mut state = open(dir.path());
    state.store(&checkpoint(1), 5).unwrap();
    state.append(&[step(2, vec![part(1, 3)])]).unwrap();
    let inspection = State::inspect(dir.path()).unwrap();
    assert_eq!(inspection.pipeline, "shop");
    assert_eq!(inspection.checkpoint, state.checkpoint().unwrap());
    assert_eq!(inspection.journal[0].parts[0].input, "returns");
}

/// A checkpoint stored between two reads of an inspection once looked like damage.
#[test]
fn inspection_beside_a_storing_pipeline_never_sees_damage() {
    let dir = TempDir::new().unwrap();
    let mut state = open(dir.path());
    state.store(&checkpoint(0), 5).unwrap();
    let pipeline = std::thread::spawn(move || {
        for step in 1..=200 {
            state.store(&checkpoint(step), 5).unwrap();
        }
    });
    while !pipeline.is_finished() {
        State::inspect(dir.path()).unwrap();
    }
    pipeline.join().unwrap();
}

/// All of a first run once lay in the write-ahead log alone: without it the next start began from nothing.
#[test]
fn the_first_checkpoint_does_not_depend_on_the_write_ahead_log() {
    let dir = TempDir::new().unwrap();
    let mut state = open(dir.path());
    state.store(&checkpoint(0), 5).unwrap();
    // What a crash leaves, with a log that was lost.
    let copy = TempDir::new().unwrap();
    fs::copy(dir.path().join(DATABASE), copy.path().join(DATABASE)).unwrap();
    assert_eq!(open(copy.path()).checkpoint().unwrap().unwrap().stored_at_ms, 5);
}

/// A removed database was once taken for a first start, and everything was read again.
#[test]
fn a_removed_database_is_noticed_at_the_next_start_and_while_running() {
    let dir = TempDir::new().unwrap();
    let mut state = open(dir.path());
    state.store(&checkpoint(0), 5).unwrap();
    fs::remove_file(dir.path().join(DATABASE)).unwrap();
    let running = state.store(&checkpoint(1), 6).unwrap_err();
    assert!(running.to_string().contains("was removed or replaced while"), "{running}");
    drop(state);
    let _ = fs::remove_file(dir.path().join("state.db-wal"));
    let _ = fs::remove_file(dir.path().join("state.db-shm"));
    assert!(refusal(dir.path()).contains("is missing, but a pipeline has run on"));
}

/// A log that is damaged in its middle ends there for SQLite: a checkpoint that was only there was gone, and with it
/// the records that had been acknowledged to their source.
#[test]
fn no_checkpoint_depends_on_the_write_ahead_log() {
    let dir = TempDir::new().unwrap();
    let mut state = open(dir.path());
    state.store(&checkpoint(0), 5).unwrap();
    state.append(&[step(1, vec![part(1, 3)])]).unwrap();
    state.store(&checkpoint(1), 6).unwrap();
    assert_eq!(fs::metadata(dir.path().join("state.db-wal")).unwrap().len(), 0);
    let copy = TempDir::new().unwrap();
    fs::copy(dir.path().join(DATABASE), copy.path().join(DATABASE)).unwrap();
    assert_eq!(open(copy.path()).checkpoint().unwrap().unwrap().step, 1);
}

/// What a process had written when it was killed was there for the next one, and was gone when the power was: records
/// that had been written meanwhile came a second time.
#[test]
fn what_a_killed_process_left_in_the_log_is_made_durable_first() {
    let dir = TempDir::new().unwrap();
    let mut state = open(dir.path());
    state.store(&checkpoint(0), 5).unwrap();
    state.append(&[step(1, vec![part(1, 3)])]).unwrap();
    let killed = TempDir::new().unwrap();
    for file in [DATABASE, "state.db-wal"] {
        fs::copy(dir.path().join(file), killed.path().join(file)).unwrap();
    }
    let log = killed.path().join("state.db-wal");
    assert!(fs::metadata(&log).unwrap().len() > 0);
    let state = open(killed.path());
    assert_eq!(fs::metadata(&log).unwrap().len(), 0, "it is in the database now");
    assert_eq!(state.last_journaled().unwrap(), Some(1));
}

/// A letter that had changed in a stored fact looked like a changed pipeline, or like no fact at all: an input that
/// people had paused was read.
#[test]
fn a_damaged_fact_is_named() {
    let dir = TempDir::new().unwrap();
    for (change, fact) in [
        ("UPDATE meta SET key = 'pauseD' WHERE key = 'paused'", "pauseD"),
        ("UPDATE meta SET value = '[]' WHERE key = 'paused'", "paused"),
        ("UPDATE meta SET value = 'shoP' WHERE key = 'pipeline'", "pipeline"),
    ] {
        let dir = TempDir::new_in(dir.path()).unwrap();
        let mut state = open(dir.path());
        state.store(&checkpoint(0), 5).unwrap();
        state.keep_paused(&[0]).unwrap();
        assert_eq!(state.database.execute(change, []).unwrap(), 1);
        drop(state);
        assert!(refusal(dir.path()).contains(&format!("the fact {fact:?}")));
    }
}

/// What must be there cannot be missing: a start from nothing, or from the middle, would be silent.
#[test]
fn what_is_missing_is_damage() {
    let dir = TempDir::new().unwrap();
    for (change, what) in [
        ("DELETE FROM checkpoint", "the checkpoint is missing"),
        ("DELETE FROM journal WHERE step = 2", "step 2 is missing from the journal"),
        (
            "DELETE FROM journal WHERE step = 3 AND input = 'orders'",
            "step 3, input returns is damaged",
        ),
        ("DELETE FROM meta WHERE key LIKE 'settings%'", "the settings of the last run are missing"),
        ("DELETE FROM meta WHERE key = 'settings.live'", "some of the stored settings are missing"),
        ("DELETE FROM meta WHERE key = 'paused'", "the list of paused inputs is missing"),
        (
            "UPDATE journal SET step = 1 WHERE step = 4",
            "steps that the checkpoint at step 1 covers",
        ),
    ] {
        let dir = TempDir::new_in(dir.path()).unwrap();
        let mut state = open(dir.path());
        state.store(&checkpoint(1), 5).unwrap();
        let two = |number| step(number, vec![part(0, 3), part(1, 3)]);
        state.append(&[two(2), two(3), two(4)]).unwrap();
        assert!(state.database.execute(change, []).unwrap() > 0);
        drop(state);
        let error = match open_as(dir.path(), "in/*.log", false) {
            Ok(state) => match state.journaled(1, 10) {
                Ok(_) => state.paused_inputs().unwrap_err(),
                Err(error) => error,
            },
            Err(error) => error,
        };
        assert!(error.to_string().contains(what), "{error}");
    }
}
