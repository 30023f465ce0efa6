//! A state directory with bytes changed: what opens gives what was stored, or an error; never anything else.
#![no_main]

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use lockgate_controller::{
    ChangeClass, Checkpoint, Inspection, JournalPart, JournaledStep, Owner, Setting, State,
    StateError,
};
use lockgate_core::{PartDigest, Position};
use lockgate_fuzz::{Harm, folder};
use serde_json::json;

#[derive(Arbitrary, Debug)]
struct Input {
    /// Which of the moments of a run is taken.
    moment: u8,
    database: Vec<Harm>,
    log: Vec<Harm>,
    lock: Vec<Harm>,
    has_database: bool,
    has_log: bool,
}

fuzz_target!(|input: Input| {
    let moments = moments();
    let number = usize::from(input.moment) % moments.len();
    let Moment { files, inspection } = &moments[number];
    let dir = folder().join("state");
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir).expect("a folder");
    let mut is_same = input.has_database && input.has_log;
    for (name, bytes) in files {
        let (harms, is_there) = match name.as_str() {
            "state.db" => (&input.database, input.has_database),
            "state.db-wal" => (&input.log, input.has_log),
            "lock" => (&input.lock, true),
            _ => continue,
        };
        let mut harmed = bytes.clone();
        harms.iter().for_each(|harm| harm.apply(&mut harmed));
        is_same &= harmed == *bytes;
        if is_there {
            fs::write(dir.join(name), harmed).expect("a file");
        }
    }
    let may_be_new = !input.has_database;

    // With the log damaged or gone, what the database holds of an earlier moment is good, too.
    let earlier: Vec<&Inspection> =
        moments[..=number].iter().map(|moment| &moment.inspection).collect();
    match State::inspect(&dir) {
        Ok(found) => expect_known(&found, &earlier),
        Err(error) => {
            assert!(!is_same, "an unharmed directory is refused: {error}");
            assert!(!error.to_string().is_empty());
        }
    }
    let opened = open(&dir).and_then(|state| {
        let checkpoint = state.checkpoint()?;
        let journal = state.journaled(0, u32::MAX)?;
        let (first, last) = (state.journaled(0, 1)?, state.last_journaled()?);
        assert_eq!(journal.first(), first.first());
        assert_eq!(journal.last().map(|step| step.step), last);
        state.journal_size()?;
        state.is_unsettled()?;
        Ok((checkpoint, journal))
    });
    match opened {
        Ok((checkpoint, journal)) => {
            let is_known = earlier
                .iter()
                .any(|known| checkpoint == known.checkpoint && is_front(&journal, &known.journal));
            let is_new = may_be_new && checkpoint.is_none() && journal.is_empty();
            assert!(is_known || is_new, "never stored: {checkpoint:?} {journal:?}");
            if is_same {
                assert_eq!(journal.len(), inspection.journal.len());
                assert_eq!(checkpoint, inspection.checkpoint);
            }
        }
        Err(error) => assert!(!is_same, "an unharmed directory is refused: {error}"),
    }
});

fn expect_known(found: &Inspection, known: &[&Inspection]) {
    let is_known = known.iter().any(|known| {
        found.checkpoint == known.checkpoint && known.journal.starts_with(&found.journal)
    });
    assert!(is_known, "never stored: {found:?}");
}

fn is_front(journal: &[JournaledStep], known: &[lockgate_controller::NamedStep]) -> bool {
    let inputs = inputs();
    let is_same = |(step, known): (&JournaledStep, &lockgate_controller::NamedStep)| {
        let same_part = |part: &JournalPart| {
            known.parts.iter().any(|known| {
                known.input == inputs[part.input]
                    && known.seek == part.seek
                    && known.replay == part.replay
                    && known.digest == part.digest
            })
        };
        step.step == known.step
            && step.parts.len() == known.parts.len()
            && step.parts.iter().all(same_part)
    };
    journal.len() <= known.len() && journal.iter().zip(known).all(is_same)
}

fn inputs() -> [String; 2] {
    ["orders".into(), "returns".into()]
}

fn open(dir: &Path) -> Result<State, StateError> {
    let (inputs, outputs) = (inputs(), ["copy".to_owned()]);
    let class = ChangeClass::ResetsPosition;
    let settings = [Setting { path: "paths".into(), value: "in/*.log".into(), class }];
    let owner = Owner {
        pipeline: "shop",
        inputs: &inputs,
        outputs: &outputs,
        settings: &settings,
        keeps_journal: true,
    };
    State::open(dir, owner, false)
}

/// The files at a moment of a run, as a crash would leave them, and what they hold.
struct Moment {
    files: Vec<(String, Vec<u8>)>,
    inspection: Inspection,
}

fn moments() -> &'static [Moment] {
    static MOMENTS: OnceLock<Vec<Moment>> = OnceLock::new();
    MOMENTS.get_or_init(|| {
        let dir = folder().join("valid");
        let mut state = open(&dir).expect("a state directory");
        let mut moments = Vec::new();
        let mut keep = || {
            let entries = fs::read_dir(&dir).expect("a folder").map(|entry| entry.expect("a file"));
            let files = entries.map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, fs::read(entry.path()).expect("a file"))
            });
            let files = files.collect();
            moments.push(Moment { files, inspection: State::inspect(&dir).expect("it is good") });
        };
        keep();
        let mut last = 0;
        for round in 0..3 {
            state.store(&checkpoint(last), 5 + round).expect("it is stored");
            keep();
            for _ in 0..3 {
                last += 1;
                state.append(&[step(last)]).expect("it is journaled");
                keep();
            }
        }
        drop(state);
        // As an orderly end leaves it.
        keep();
        moments
    })
}

fn step(step: u64) -> JournaledStep {
    let part = |input: usize| JournalPart {
        input,
        seek: if step % 3 == 0 {
            Position::Change(json!({ "offset": step }))
        } else {
            Position::Whole(json!({ "offset": step, "name": "in.log" }))
        },
        replay: rmpv::Value::Array(vec![step.into(), "a".into(), rmpv::Value::Nil]),
        digest: PartDigest { records: step, hash: u64::MAX - step },
    };
    let inputs = if step % 2 == 0 { vec![0, 1] } else { vec![1] };
    JournaledStep { step, parts: inputs.into_iter().map(part).collect() }
}

fn checkpoint(step: u64) -> Checkpoint {
    Checkpoint {
        step,
        circuit: vec![step as u8; 40],
        seeks: vec![Some(json!({ "offset": step })), None],
        positions: vec![json!({ "length": step * 7 })],
    }
}
