//! Positions and replays: crashes at every step, files that moved, changed or vanished meanwhile.

use lockgate_core::{FaultTolerance, Framing, InputReaderCommand as Command, Resume};
use lockgate_file_adapter::{Overlong, StartAt};

use crate::harness::{Rec, Rig, Step, gzip, numbered, texts, zstd};

/// The steps of an undisturbed run with at most `records` each.
fn steps_of(rig: &Rig, records: usize) -> Vec<Step> {
    let mut session = rig.start(None);
    session.wait_for_end();
    session.set_max_batch(records);
    let steps = session.steps();
    steps.into_iter().chain([session.queue()]).collect()
}

fn records(steps: &[Step]) -> Vec<Rec> {
    steps.iter().flat_map(|step| step.records.clone()).collect()
}

/// Crashes after every step, goes on from its position, and after replaying it.
fn check_every_boundary(rig: &Rig, records_per_step: usize) {
    let steps = steps_of(rig, records_per_step);
    let all = records(&steps);
    for crash in 0..steps.len() {
        let before = records(&steps[..=crash]);
        let rest = rig.start(Some(steps[crash].seek())).drain();
        assert!([before, rest].concat() == all, "crash after step {crash}");
    }
    // Everything replayed from the beginning, then on.
    for crash in [0, steps.len() / 2, steps.len() - 1] {
        let mut session = rig.open(None).unwrap();
        for step in &steps[..=crash] {
            let again = session.replay(step);
            assert_eq!(again.digest, step.digest);
            assert_eq!(again.records, step.records);
        }
        session.send(Command::Extend);
        let rest = session.drain();
        assert!([records(&steps[..=crash]), rest].concat() == all, "replay up to step {crash}");
    }
}

#[test]
fn a_crash_at_every_step_of_plain_files() {
    let rig = Rig::new(&["*.log"]);
    rig.write("a.log", numbered(0..100));
    rig.write("b.log", "\u{feff}b1\nb2");
    rig.write("c.log", "");
    rig.write("d.log", numbered(100..150));
    for records_per_step in [1, 7, 1000] {
        check_every_boundary(&rig, records_per_step);
    }
}

#[test]
fn a_crash_at_every_step_of_compressed_files() {
    let rig = Rig::new(&["*"]);
    let text = numbered(0..90);
    let bytes = text.as_bytes();
    // Members end at and inside lines, and may be empty.
    rig.write("a.gz", gzip(&[&bytes[..700], b"", &bytes[700..]]));
    rig.write("b.zst", zstd(&[&bytes[..333], &bytes[333..1000], b"", &bytes[1000..], b"last"]));
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(rig.values(), [lines.clone(), lines, vec!["last"]].concat());
    for records_per_step in [1, 13] {
        check_every_boundary(&rig, records_per_step);
    }
}

/// A position behind an overlong record is past all of it, and a replay applies the same policy.
#[test]
fn a_crash_at_every_step_with_overlong_lines() {
    for overlong in [Overlong::Truncate, Overlong::Skip] {
        let mut rig = Rig::new(&["*"]);
        rig.config.max_record_bytes = 20;
        rig.config.overlong = overlong;
        let text = numbered(0..60);
        rig.write("a.log", &text);
        rig.write("b.gz", gzip(&[&text.as_bytes()[..801], &text.as_bytes()[801..]]));
        // The last line is overlong and has no end; one is larger than a block.
        let (long, last) = ("x".repeat(3 << 20), "y".repeat(30));
        rig.write("c.log", format!("first\n{long}\nsecond\n{last}"));
        for records_per_step in [1, 4] {
            check_every_boundary(&rig, records_per_step);
        }
    }
}

#[test]
fn a_crash_at_every_step_of_length_delimited_files() {
    let mut rig = Rig::new(&["*"]);
    rig.config.framing = Framing::Length32;
    rig.config.max_record_bytes = 30;
    rig.config.overlong = Overlong::Truncate;
    let record = |i: usize| [&(i as u32).to_be_bytes()[..], &vec![b'0' + i as u8; i]].concat();
    let bytes: Vec<u8> = (0..40).flat_map(record).collect();
    rig.write("a", &bytes);
    rig.write("b.zst", zstd(&[&bytes[..301], &bytes[301..]]));
    for records_per_step in [1, 7] {
        check_every_boundary(&rig, records_per_step);
    }
}

/// At least once: from any position that is no barrier everything after it comes again, nothing twice.
#[test]
fn a_crash_at_every_step_at_least_once() {
    let mut rig = Rig::new(&["*"]);
    rig.level = FaultTolerance::AtLeastOnce;
    let lines: Vec<_> = (0..30).map(|i| format!("line {i}\n")).collect();
    let members: Vec<_> = lines.chunks(10).map(|lines| lines.concat().into_bytes()).collect();
    let members: Vec<_> = members.iter().map(Vec::as_slice).collect();
    rig.write("a.gz", gzip(&members));
    rig.write("b.log", numbered(0..20));
    rig.write("c.zst", zstd(&members));
    let steps = steps_of(&rig, 3);
    let all = records(&steps);
    let mut barriers = 0;
    for crash in 0..steps.len() {
        match &steps[crash].resume {
            Resume::Seek { seek } => {
                let rest = rig.start(Some(seek.json().clone())).drain();
                assert!([records(&steps[..=crash]), rest].concat() == all, "step {crash}");
            }
            Resume::Barrier => barriers += 1,
            Resume::Replay { .. } => panic!("more than was promised"),
        }
    }
    assert!(barriers > 10);
    assert!(!steps.last().unwrap().resume.is_barrier(), "the end of everything is no barrier");
}

/// A checkpoint that is wanted makes the reader stop at the end of the member, where it can go on.
#[test]
fn a_barrier_is_cleared_at_the_end_of_a_member() {
    let mut rig = Rig::new(&["a.gz"]);
    rig.level = FaultTolerance::AtLeastOnce;
    let members: Vec<_> = (0..3).map(|i| numbered(i * 10..i * 10 + 10)).collect();
    let members: Vec<_> = members.iter().map(|member| member.as_bytes()).collect();
    rig.write("a.gz", gzip(&members));
    let mut session = rig.start(None);
    session.wait_for_end();
    session.set_max_batch(4);
    assert_eq!(session.queue().resume, Resume::Barrier);
    // Four more are not enough.
    let step = session.queue_for_checkpoint();
    assert_eq!((step.records.len(), step.resume), (4, Resume::Barrier));
    let step = session.queue_for_checkpoint();
    assert_eq!(step.records.len(), 2);
    let rest = rig.start(Some(step.seek())).drain();
    assert_eq!(rest.len(), 20);
    // Already at a good place, and none near: it stays.
    let step = session.queue_for_checkpoint();
    assert_eq!((step.records.len(), step.resume.is_barrier()), (0, false));
    session.set_max_batch(100);
    assert_eq!(session.queue_for_checkpoint().records.len(), 10);
    // The rest, and then the end: asked again with nothing buffered, the reader is at a good place.
    session.set_max_batch(9);
    assert!(session.queue().resume.is_barrier());
    let step = session.queue();
    assert_eq!((step.records.len(), step.resume.is_barrier()), (1, false));
}

/// The end of a file is only found after its last record was handed over: then a `Queue` with nothing
/// buffered clears the barrier.
#[test]
fn a_barrier_at_the_end_is_cleared_by_an_empty_step() {
    let mut rig = Rig::new(&["a.gz"]);
    rig.level = FaultTolerance::AtLeastOnce;
    rig.write("a.gz", gzip(&[numbered(0..1000).as_bytes(), b"end\n"]));
    rig.limits.max_queued_records = 1;
    let mut session = rig.start(None);
    let mut last = None;
    while !session.is_ended() || session.held().records > 0 {
        session.wait_for(1);
        if session.held().records > 0 {
            last = Some(session.queue());
        }
    }
    let resume = last.unwrap().resume;
    let resume = if resume.is_barrier() { session.queue().resume } else { resume };
    assert!(!resume.is_barrier());
    assert!(rig.start(resume.seek().map(|seek| seek.json().clone())).drain().is_empty());
}

/// C8 (feldera#4037): a checkpoint right after a replay stored empty positions.
#[test]
fn c8_the_position_after_a_replay() {
    let rig = Rig::new(&["*"]);
    rig.write("a.log", numbered(0..50));
    rig.write("b.gz", gzip(&[numbered(50..100).as_bytes()]));
    let steps = steps_of(&rig, 30);
    let all = records(&steps);
    for crash in 0..3 {
        let mut session = rig.open(None).unwrap();
        for step in &steps[..=crash] {
            session.replay(step);
        }
        session.send(Command::Extend);
        session.set_max_batch(0);
        let position = session.queue_for_checkpoint();
        assert_eq!(position.seek(), steps[crash].seek());
        drop(session);
        let rest = rig.start(Some(position.seek())).drain();
        assert!([records(&steps[..=crash]), rest].concat() == all);
    }
}

/// C9 (feldera ce5089b4d): empty steps were read as "from 0".
#[test]
fn c9_empty_steps() {
    let mut rig = Rig::new(&["a.log"]);
    rig.config.follow = true;
    let mut session = rig.start(None);
    let mut steps = Vec::new();
    for content in ["", "a\nb\n", "", "c\nd\n", ""] {
        if !content.is_empty() {
            rig.append("a.log", content);
            session.wait_for(2);
        }
        steps.push(session.queue());
    }
    let counts: Vec<_> = steps.iter().map(|step| step.records.len()).collect();
    assert_eq!(counts, [0, 2, 0, 2, 0]);
    drop(session);
    rig.append("a.log", "end\n");
    let all = texts(&records(&steps));
    for crash in 0..steps.len() {
        let mut replayed = rig.open(None).unwrap();
        for step in &steps[..=crash] {
            assert_eq!(replayed.replay(step).digest, step.digest);
        }
        replayed.send(Command::Extend);
        for mut session in [replayed, rig.start(Some(steps[crash].seek()))] {
            let before = texts(&records(&steps[..=crash]));
            let rest = texts(&session.take(all.len() - before.len() + 1));
            assert_eq!([before, rest].concat(), ["a", "b", "c", "d", "end"]);
        }
    }
}

/// C11 (feldera 1638f5255): a changed source must not pass as the same step.
#[test]
fn c11_a_changed_source() {
    let rig = Rig::new(&["a.log"]);
    let content = numbered(0..200);
    rig.write("a.log", &content);
    let steps = steps_of(&rig, 150);

    let mut changed = content.clone().into_bytes();
    changed[2000] ^= 1;
    std::fs::write(rig.path("a.log"), &changed).unwrap();
    let mut session = rig.open(None).unwrap();
    let again = session.replay(&steps[0]);
    assert_eq!(again.digest.records, steps[0].digest.records);
    assert_ne!(again.digest, steps[0].digest);
    drop(session);

    // A newline more, a newline less: another number of records.
    changed[2000] = b'\n';
    std::fs::write(rig.path("a.log"), &changed).unwrap();
    let error = rig.open(None).unwrap().try_replay(&steps[0]).unwrap_err();
    insta::assert_snapshot!(error, @"DIR/a.log: a journaled step consists of bytes 0 to 5065, which cannot be read again: it holds 151 records now, not 150");

    std::fs::write(rig.path("a.log"), &content[..2000]).unwrap();
    let error = rig.open(None).unwrap().try_replay(&steps[0]).unwrap_err();
    insta::assert_snapshot!(error, @"DIR/a.log: the file ends at byte 2000 now, but had been read to byte 5065");

    // The beginning is part of what the file is known by.
    changed[0] ^= 1;
    std::fs::write(rig.path("a.log"), &changed).unwrap();
    let error = rig.open(None).unwrap().try_replay(&steps[0]).unwrap_err();
    insta::assert_snapshot!(error, @"DIR/a.log: a journaled step consists of bytes 0 to 5065, which cannot be read again: the file was replaced or changed");
}

/// F1 (vector#23076, fluent-bit#8025): a new file with a reused inode inherited the old offset. Here the
/// inode is certainly the same, and the new file is long enough.
#[test]
fn f1_a_reused_inode() {
    let rig = Rig::new(&["a.log"]);
    rig.write("a.log", numbered(0..100));
    let steps = steps_of(&rig, 50);
    std::fs::write(rig.path("a.log"), numbered(1000..1300)).unwrap();
    insta::assert_snapshot!(rig.refused(Some(steps[0].seek())), @"DIR/a.log was read to byte 1665, and it holds something else now: it was replaced; the rest of it cannot be read. Put the file back, or start over without the stored state");
    // The same beginning, but other bytes before the position.
    let content = format!("{}{}", &numbered(0..100)[..1100], numbered(1000..1300));
    std::fs::write(rig.path("a.log"), content).unwrap();
    insta::assert_snapshot!(rig.refused(Some(steps[0].seek())), @"DIR/a.log was read to byte 1665, and it holds something else now: it was replaced; the rest of it cannot be read. Put the file back, or start over without the stored state");
    // A file that was read to its end and is another now is new.
    assert_eq!(rig.start(Some(steps[1].seek())).drain(), rig.read_all());
    std::fs::write(rig.path("a.log"), "new\n").unwrap();
    assert_eq!(texts(&rig.start(Some(steps[1].seek())).drain()), ["new"]);
}

#[test]
fn a_file_that_shrank_or_vanished() {
    let rig = Rig::new(&["*.log"]);
    rig.write("a.log", numbered(0..100));
    let steps = steps_of(&rig, 50);
    std::fs::write(rig.path("a.log"), &numbered(0..100)[..1500]).unwrap();
    insta::assert_snapshot!(rig.refused(Some(steps[0].seek())), @"DIR/a.log was read to byte 1665, and it holds 1500 bytes now: it was truncated; the rest of it cannot be read. Put the file back, or start over without the stored state");
    rig.remove("a.log");
    insta::assert_snapshot!(rig.refused(Some(steps[0].seek())), @"DIR/a.log was read to byte 1665, and there is no such file now; the rest of it cannot be read. Put the file back, or start over without the stored state");
}

/// A file that was copied back, to the same path or another, is the same content.
#[test]
fn a_copy_of_a_begun_file_is_gone_on_with() {
    let rig = Rig::new(&["*.log"]);
    rig.write("a.log", numbered(0..100));
    let steps = steps_of(&rig, 50);
    for name in ["a.log", "b.log"] {
        std::fs::copy(rig.path("a.log"), rig.path("copy")).unwrap();
        rig.remove("a.log");
        rig.rename("copy", name);
        let rest = rig.start(Some(steps[0].seek())).drain();
        assert_eq!(rest, steps[1].records);
    }
}

/// A file that was read to its end may be removed.
#[test]
fn a_finished_file_may_go() {
    let rig = Rig::new(&["a.log", "b.log", "c*.log"]);
    rig.write("a.log", numbered(0..10));
    rig.write("b.log", numbered(10..20));
    rig.write("c1.log", numbered(20..30));
    let steps = steps_of(&rig, 15);
    rig.remove("a.log");
    rig.remove("c1.log");
    rig.write("c2.log", "new\n");
    let values = texts(&rig.start(Some(steps[0].seek())).drain());
    assert_eq!(values.len(), 6);
    assert_eq!(values[5], "new");
}

/// F5 (fluent-bit#11265): a restart lost the unfinished last line. Followed, it is not handed over before
/// it is finished; its start is the position.
#[test]
fn f5_an_unfinished_last_line() {
    let mut rig = Rig::new(&["a.log"]);
    rig.config.follow = true;
    rig.write("a.log", "one\ntw");
    let mut session = rig.start(None);
    session.wait_for(1);
    let step = session.queue();
    assert_eq!(step.texts(), ["one"]);
    drop(session);
    rig.append("a.log", "o\nthree\n");
    let mut session = rig.start(Some(step.seek()));
    assert_eq!(
        session.take(2),
        [("a.log".into(), 4, b"two".to_vec()), ("a.log".into(), 8, b"three".to_vec())]
    );
}

/// F9 (vector#13193): a rotated and compressed file was read twice.
#[test]
fn f9_rotated_and_compressed_while_down() {
    let rig = Rig::new(&["app.log*"]);
    rig.write("app.log", numbered(0..100));
    let steps = steps_of(&rig, 60);
    let all = records(&steps);

    // Renamed; a new file took its name.
    rig.rename("app.log", "app.log.1");
    rig.write("app.log", "new\n");
    let rest = rig.start(Some(steps[0].seek())).drain();
    assert_eq!(rest[..40], all[60..], "read on under the first name");
    assert_eq!(texts(&rest[40..]), ["new"]);
    assert_eq!(texts(&rig.start(Some(steps[1].seek())).drain()), ["new"]);
    let mut session = rig.open(None).unwrap();
    assert_eq!(session.replay(&steps[0]).records, steps[0].records);
    drop(session);

    // Compressed as well.
    let content = std::fs::read(rig.path("app.log.1")).unwrap();
    rig.write("app.log.1.gz", gzip(&[&content]));
    rig.remove("app.log.1");
    let rest = rig.start(Some(steps[0].seek())).drain();
    assert_eq!(rest[..40], all[60..]);
    assert_eq!(texts(&rest[40..]), ["new"]);
    assert_eq!(texts(&rig.start(Some(steps[1].seek())).drain()), ["new"]);
    let mut session = rig.open(None).unwrap();
    for step in &steps {
        assert_eq!(session.replay(step).digest, step.digest);
    }
    session.send(Command::Extend);
    assert_eq!(texts(&session.drain()), ["new"]);
}

/// F16 (otel-contrib#12769): `start at end` was applied again on resume.
#[test]
fn f16_start_at_end_counts_once() {
    let mut rig = Rig::new(&["*"]);
    rig.config.start_at = StartAt::End;
    rig.write("a.log", "old\nunfin");
    rig.write("b.gz", gzip(&[b"old\n"]));
    let session = rig.start(None);
    let start = session.start_position().unwrap();
    drop(session);
    // What came while the input was down is read, and new files from their beginning.
    rig.append("a.log", "ished\nnew\n");
    rig.append("b.gz", gzip(&[b"more\n"]));
    rig.write("c.log", "c\n");
    let values = texts(&rig.start(Some(start.clone())).drain());
    assert_eq!(values, ["unfinished", "new", "more", "c"]);
    // A start is where the reader stands before its first step.
    let session = rig.open(Some(start.clone())).unwrap();
    assert_eq!(session.start_position(), Some(start));
    rig.config.start_at = StartAt::Beginning;
    assert_eq!(rig.open(None).unwrap().start_position(), None);
}

#[test]
fn a_damaged_position_is_refused() {
    let rig = Rig::new(&["a.log"]);
    rig.write("a.log", "a\n");
    insta::assert_snapshot!(rig.refused(Some(serde_json::json!({"version": 1}))), @"the stored position of a file input is damaged: missing field `begun`");
}
