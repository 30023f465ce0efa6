//! Files that change under the reader: truncated, replaced or moved while it is behind, and written to after
//! they were taken for finished.

use std::time::{Duration, Instant};

use lockgate_core::{Framing, InputReaderCommand as Command};
use lockgate_file_adapter::StartAt;

use crate::harness::{Rig, Session, expect, gzip, numbered, texts};

const LONG: Duration = Duration::from_secs(3600);
const TINY: Duration = Duration::from_millis(1);
/// A file is truncated within this time after it was copied, even on a busy machine.
const PATIENT: Duration = Duration::from_millis(500);
const SHORT: Duration = Duration::from_millis(20);

/// Follows, and takes rotated files for finished soon.
fn hasty(paths: &[&str]) -> Rig {
    let mut rig = Rig::new(paths);
    rig.config.follow = true;
    rig.timing = Some([SHORT, SHORT, LONG]);
    rig
}

/// With a queue that a file of many lines does not fit into.
fn behind(mut rig: Rig) -> Rig {
    rig.limits.max_queued_bytes = 64 << 10;
    rig
}

fn lines(name: &str, n: usize) -> String {
    (0..n).map(|i| format!("{name} {i:07}\n")).collect()
}

/// Truncated and refilled while the reader was behind: a record was glued of both contents, and the new
/// content began where the old one had been read to.
#[test]
fn a_file_refilled_while_the_reader_is_behind() {
    let rig = behind(hasty(&["app.log"]));
    rig.write("app.log", lines("old", 300_000));
    let mut session = rig.start(None);
    session.wait_for(10);
    session.send(Command::Pause);
    let mut taken = session.queue().texts();
    rig.write("app.log", lines("a new one", 400_000));
    session.send(Command::Extend);
    taken.extend(session.take_until("a new one 0399999"));
    let old = taken.iter().take_while(|line| line.starts_with("old")).count();
    assert!(old < 300_000);
    assert!(taken[..old].join("\n") + "\n" == lines("old", old));
    assert!(taken[old..].join("\n") + "\n" == lines("a new one", 400_000));
    assert_eq!(session.policy_names().len(), 1, "{:?}", session.policies);
}

/// Truncated while it was read, and not followed: the input ended as if all had been read.
#[test]
fn a_file_truncated_while_it_is_read() {
    let rig = behind(Rig::new(&["a.log"]));
    rig.write("a.log", lines("a", 300_000));
    let mut session = rig.start(None);
    session.wait_for(10);
    rig.truncate("a.log", 0);
    let error = session.queue_until_failure();
    insta::assert_snapshot!(error, @"DIR/a.log was read to byte 1048570, and it holds 0 bytes now: it was truncated; the rest of it cannot be read. Put the file back, or start over without the stored state");
}

/// What has the path when a file is opened need not be what was found there.
#[test]
fn a_file_replaced_before_it_is_opened() {
    let rig = behind(Rig::new(&["a.log", "b.log"]));
    rig.write("a.log", lines("a", 100_000));
    rig.write("b.log", "what was found\n");
    let mut session = rig.start(None);
    session.wait_for(10);
    rig.rename("b.log", "b.log.1");
    rig.write("b.log", "another\n");
    let error = session.queue_until_failure();
    insta::assert_snapshot!(error, @"DIR/b.log was replaced after it was found and before it was read; start again");
}

/// The same when following: both are read, the one that was found first.
#[test]
fn a_followed_file_rotated_before_it_is_opened() {
    let rig = behind(hasty(&["a.log", "b.log"]));
    rig.write("a.log", lines("a", 100_000));
    rig.write("b.log", "what was found\n");
    let mut session = rig.start(None);
    session.wait_for(10);
    rig.rename("b.log", "b.log.1");
    rig.write("b.log", "another\n");
    let taken = session.take_until("another");
    assert_eq!(taken[100_000..], ["what was found", "another"]);
    assert!(session.policies.is_empty(), "{:?}", session.policies);
}

/// An empty file has nothing that tells how it will be compressed; it was taken for plain.
#[test]
fn from_the_end_of_an_empty_file_that_becomes_compressed() {
    let mut rig = hasty(&["a"]);
    rig.config.start_at = StartAt::End;
    rig.write("a", "");
    let mut session = rig.start(None);
    let start = session.start_position();
    session.queue();
    rig.append("a", gzip(&[b"one\n"]));
    expect(&mut session, &["one"]);
    drop(session);
    expect(&mut rig.start(start), &["one"]);
}

/// A file without content could not be finished, and the next one of its name waited for it for ever.
#[test]
fn an_empty_file_that_is_rotated() {
    for content in ["", "("] {
        let rig = hasty(&["app.log*"]);
        rig.write("app.log", content);
        let mut session = rig.start(None);
        session.queue();
        rig.rename("app.log", "app.log.1");
        rig.write("app.log", "new\n");
        let taken = session.take_until("new");
        assert_eq!(taken.concat(), format!("{content}new"));
        // It was not finished for good.
        rig.append("app.log.1", "late\n");
        expect(&mut session, &["late"]);
        assert!(session.policies.is_empty(), "{:?}", session.policies);
    }
}

/// What a writer that does not know of the rotation writes late was passed over in silence.
#[test]
fn a_late_line_in_a_rotated_file() {
    for paths in [&["app.log*"], &["app.log"]] {
        let rig = hasty(paths);
        rig.write("app.log", "one\ntw");
        let mut session = rig.start(None);
        expect(&mut session, &["one"]);
        rig.rename("app.log", "app.log.1");
        rig.write("app.log", "new\n");
        // The next one is begun when the first was taken for finished, with its unfinished line.
        expect(&mut session, &["tw", "new"]);
        rig.append("app.log.1", "late\n");
        assert_eq!(session.take(1), [("app.log.1".into(), 6, b"late".to_vec())]);
        let step = session.queue();
        rig.append("app.log.1", "later\n");
        expect(&mut session, &["later"]);
        drop(session);
        // And it goes on from the position.
        expect(&mut rig.start(Some(step.seek())), &["later"]);
        let mut session = rig.start(Some(step.seek()));
        expect(&mut session, &["later"]);
        assert!(session.policies.is_empty(), "{:?}", session.policies);
    }
}

/// The same where no name leads to the file any more.
#[test]
fn a_late_line_in_a_removed_file() {
    use std::io::Write;
    let rig = hasty(&["app.log"]);
    rig.write("app.log", "one\n");
    let mut writer = std::fs::OpenOptions::new().append(true).open(rig.path("app.log")).unwrap();
    let mut session = rig.start(None);
    expect(&mut session, &["one"]);
    rig.remove("app.log");
    rig.write("app.log", "new\n");
    expect(&mut session, &["new"]);
    writer.write_all(b"late\n").unwrap();
    expect(&mut session, &["late"]);
}

/// A file that was read to its end, and then written to while the input was down, was passed over.
#[test]
fn a_finished_file_that_grew_while_down() {
    for follow in [false, true] {
        let mut rig = Rig::new(&["*"]);
        rig.write("a", "one\n");
        rig.write("b", gzip(&[b"two\n"]));
        // Garbage is not growth.
        rig.write("c", [gzip(&[b"three\n"]), b"garbage".to_vec()].concat());
        let mut session = rig.start(None);
        let first = session.steps().pop().unwrap();
        drop(session);
        rig.append("a", "four\n");
        rig.append("b", gzip(&[b"five\n"]));
        rig.config.follow = follow;
        let mut session = rig.start(Some(first.seek()));
        let step = session.take(2);
        let expected = [("a".into(), 4, b"four".to_vec()), ("b".into(), 4, b"five".to_vec())];
        assert_eq!(step, expected);
        let last = session.queue();
        drop(session);
        rig.append("a", "six\n");
        let mut session = rig.start(Some(last.seek()));
        expect(&mut session, &["six"]);
        assert!(session.queue().records.is_empty());
        assert_eq!(session.policy_names(), [""; 0]);
    }
}

/// Renamed while the input was down to where no pattern finds it: what was unread was lost, or a replay
/// refused, although the file lay beside.
#[test]
fn rotated_out_of_the_pattern_while_down() {
    for follow in [false, true] {
        let mut rig = hasty(&["app.log"]);
        rig.config.follow = follow;
        rig.max_batch = 1;
        rig.write("app.log", "one\ntwo\nthree\n");
        let mut session = rig.start(None);
        session.wait_for(3);
        let first = session.queue();
        drop(session);
        rig.rename("app.log", "app.log.1");
        rig.write("app.log", "new\n");
        let mut session = rig.open(None).unwrap();
        assert_eq!(session.replay(&first).records, first.records);
        session.send(Command::Extend);
        expect(&mut session, &["two", "three", "new"]);
        drop(session);
        let mut session = rig.start(Some(first.seek()));
        expect(&mut session, &["two", "three", "new"]);
        assert!(session.policies.is_empty(), "{:?}", session.policies);
    }
}

/// The end of the original waits to be handed over: its compressed copy was read as a file of its own.
#[test]
fn a_copy_of_a_file_whose_end_is_queued() {
    let mut rig = hasty(&["app.log*", "mark*"]);
    rig.timing = Some([TINY, TINY, TINY]);
    let content = numbered(0..100);
    rig.write("app.log", &content);
    for i in 0..20 {
        rig.write(&format!("mark{i}"), "mark\n");
    }
    let mut session = rig.start(None);
    session.take(120);
    session.send(Command::Pause);
    // Every truncation that is noticed shows that a look was taken.
    let mut marks = 0..20;
    let mut looks = |session: &mut Session| {
        for i in marks.by_ref().take(10) {
            rig.truncate(&format!("mark{i}"), 0);
            session.wait_for_policies(i + 1);
        }
    };
    rig.rename("app.log", "app.log.1");
    rig.write("app.log", "new\n");
    looks(&mut session);
    rig.write("app.log.1.gz", gzip(&[content.as_bytes()]));
    rig.remove("app.log.1");
    looks(&mut session);
    session.send(Command::Extend);
    expect(&mut session, &["new"]);
    rig.write("mark_last", "last\n");
    expect(&mut session, &["last"]);
}

/// A copy that was not complete for a second was read as a file of its own, and all records came again.
#[test]
fn a_copy_that_is_made_slowly() {
    let mut rig = hasty(&["app.log*", "mark*"]);
    rig.timing = Some([TINY, TINY, LONG]);
    let content = numbered(0..2000);
    rig.write("app.log.1", &content);
    let mut session = rig.start(None);
    session.take(2000);
    let copy = gzip(&[content.as_bytes()]);
    rig.write("app.log.1.gz", &copy[..copy.len() / 2]);
    let looks = |session: &mut Session, prefix: &str| {
        for i in 0..10 {
            rig.write(&format!("mark {prefix} {i}"), "mark\n");
            expect(session, &["mark"]);
        }
    };
    looks(&mut session, "half");
    let seek = session.queue().seek();
    rig.append("app.log.1.gz", &copy[copy.len() / 2..]);
    looks(&mut session, "whole");
    rig.remove("app.log.1");
    looks(&mut session, "only");
    // The same across a restart: the original was not removed yet.
    drop(session);
    rig.write("app.log.1", &content);
    let mut session = rig.start(Some(seek));
    assert_eq!(texts(&session.take(20)), ["mark"; 20]);
    looks(&mut session, "again");
}

/// What only begins like another file is read when it stays as it is.
#[test]
fn a_growing_compressed_file_that_begins_like_another() {
    let mut rig = hasty(&["*"]);
    rig.timing = Some([TINY, TINY, TINY]);
    rig.write("a", "one\n");
    let mut session = rig.start(None);
    expect(&mut session, &["one"]);
    rig.write("b", [gzip(&[b"one\n"]), gzip(&[b"two\n"])[..12].to_vec()].concat());
    expect(&mut session, &["one"]);
}

/// gzip had not removed the original yet when the input was started again.
#[test]
fn a_restart_while_a_file_is_compressed() {
    for batch in [20, 50] {
        let rig = hasty(&["app.log*", "mark*"]);
        let content = numbered(0..50);
        rig.write("app.log.1", &content);
        let mut session = rig.start(None);
        session.wait_for(50);
        session.set_max_batch(batch);
        let step = session.queue();
        drop(session);
        rig.write("app.log.1.gz", gzip(&[content.as_bytes()]));
        let mut session = rig.start(Some(step.seek()));
        assert_eq!(session.take(50 - batch).len(), 50 - batch);
        rig.write("mark", "mark\n");
        expect(&mut session, &["mark"]);
        // And when the original is gone.
        rig.remove("app.log.1");
        rig.write("mark2", "mark\n");
        expect(&mut session, &["mark"]);
    }
}

/// The new file of the name waited without bound for one that did not stop growing.
#[test]
fn a_writer_that_keeps_the_rotated_file() {
    for paths in [&["app.log*"], &["app.log"]] {
        let rig = hasty(paths);
        rig.write("app.log", "one\n");
        let mut session = rig.start(None);
        expect(&mut session, &["one"]);
        rig.rename("app.log", "app.log.1");
        rig.write("app.log", "new\n");
        let deadline = Instant::now() + Duration::from_secs(30);
        let (mut taken, mut written) = (Vec::new(), 0);
        while !taken.iter().any(|value| value == "new") {
            assert!(Instant::now() < deadline, "waited too long");
            rig.append("app.log.1", format!("{written} unf"));
            rig.append("app.log.1", "inished\n");
            written += 1;
            taken.extend(session.queue().texts());
        }
        while taken.len() < written + 1 {
            taken.extend(texts(&session.take(1)));
        }
        taken.retain(|value| value != "new");
        assert_eq!(taken, (0..written).map(|i| format!("{i} unfinished")).collect::<Vec<_>>());
        assert!(session.policies.is_empty(), "{:?}", session.policies);
    }
}

/// One file that was rotated or removed before it was complete ended the whole input.
#[test]
fn an_incomplete_file_that_is_rotated_or_removed() {
    let content = numbered(0..20_000);
    let whole = gzip(&[content.as_bytes()]);
    for remove in [false, true] {
        let rig = hasty(&["a*"]);
        rig.write("a", &whole[..whole.len() - 100]);
        let mut session = rig.start(None);
        let mut taken = session.take(19_000).len();
        rig.rename("a", "a.1");
        rig.write("a", "new\n");
        if remove {
            rig.remove("a.1");
        }
        let rest = session.take_until("new");
        taken += rest.len() - 1;
        assert_eq!(session.policy_names(), ["file_incomplete"]);
        let text = session.wait_for_policy("file_incomplete");
        assert!(text.contains("inside the gzip member that begins at byte 0"), "{text}");
        if !remove {
            // It goes on where it was if it is completed.
            rig.append("a.1", &whole[whole.len() - 100..]);
            assert_eq!(
                session.take(20_000 - taken).last().unwrap().2,
                content.lines().last().unwrap().as_bytes()
            );
        }
        rig.append("a", "newer\n");
        expect(&mut session, &["newer"]);
    }
    let mut rig = hasty(&["a*"]);
    rig.config.framing = Framing::Length32;
    rig.write("a", b"\0\0\0\x01a\0\0\0\x02b");
    let mut session = rig.start(None);
    expect(&mut session, &["a"]);
    rig.rename("a", "a.1");
    rig.write("a", b"\0\0\0\x01n");
    expect(&mut session, &["n"]);
    insta::assert_snapshot!(session.wait_for_policy("file_incomplete"), @"DIR/a: the file ends inside a record that began at byte 5 and declared 2 bytes; it was rotated away, and is left at byte 5");
}

/// One new file that cannot be read ended the whole input.
#[test]
fn an_unreadable_file() {
    let rig = hasty(&["*"]);
    // It is a regular file, but not even the superuser can read at its beginning.
    std::os::unix::fs::symlink("/proc/self/mem", rig.path("a")).unwrap();
    rig.write("b", "b\n");
    let mut session = rig.start(None);
    expect(&mut session, &["b"]);
    assert_eq!(session.policy_names(), ["file_unreadable"]);
}

/// F3 with the copy in the pattern: every record of the file came again with the copy.
#[test]
fn f3_copytruncate_within_the_pattern() {
    let mut rig = hasty(&["app.log*"]);
    rig.timing = Some([SHORT, PATIENT, LONG]);
    rig.write("app.log", numbered(0..50));
    let mut session = rig.start(None);
    session.take(50);
    for i in 1..=3 {
        // What was not read before the truncation is in the copy.
        rig.append("app.log", format!("late {i}\nunfinished"));
        std::fs::copy(rig.path("app.log"), rig.path(&format!("app.log.{i}"))).unwrap();
        rig.truncate("app.log", 0);
        rig.append("app.log", format!("new {i}\n"));
        let expected = [format!("late {i}"), "unfinished".to_owned(), format!("new {i}")];
        assert_eq!(texts(&session.take(3)), expected);
    }
    assert!(session.policies.is_empty(), "{:?}", session.policies);
    let seek = session.queue().seek();
    drop(session);
    rig.append("app.log", "end\n");
    expect(&mut rig.start(Some(seek)), &["end"]);
}

/// The same while the reader is behind.
#[test]
fn f3_copytruncate_within_the_pattern_while_the_reader_is_behind() {
    let mut rig = behind(hasty(&["app.log*"]));
    rig.timing = Some([SHORT, PATIENT, LONG]);
    let new = lines("a new one", 400_000);
    rig.write("app.log", lines("old", 300_000));
    let mut session = rig.start(None);
    session.wait_for(10);
    session.send(Command::Pause);
    let mut taken = session.queue().texts();
    std::fs::copy(rig.path("app.log"), rig.path("app.log.1")).unwrap();
    rig.write("app.log", &new);
    session.send(Command::Extend);
    taken.extend(session.take_until("a new one 0399999"));
    let expected = lines("old", 300_000) + &new;
    assert!(taken.join("\n") + "\n" == expected);
    assert!(session.policies.is_empty(), "{:?}", session.policies);
}

/// Two files with the same content are two files as long as none of them is truncated.
#[test]
fn a_new_file_with_the_content_of_another() {
    let rig = hasty(&["*"]);
    rig.write("a", "started\n");
    let mut session = rig.start(None);
    expect(&mut session, &["started"]);
    rig.write("b", "started\n");
    assert_eq!(session.take(1), [("b".into(), 0, b"started".to_vec())]);
}

/// One directory that cannot be looked into hid whatever else there was to see.
#[test]
fn an_unreadable_directory() {
    // No file system has such names.
    let rig = hasty(&["*.log", &format!("*/{}", "x".repeat(300))]);
    rig.write("a.log", "one\n");
    let mut session = rig.start(None);
    expect(&mut session, &["one"]);
    rig.write("directory/file", "");
    session.wait_for_policy("file_unreadable");
    rig.append("a.log", "two\n");
    expect(&mut session, &["two"]);
    rig.write("b.log", "new\n");
    expect(&mut session, &["new"]);
    assert_eq!(session.policy_names(), ["file_unreadable"]);
}

/// A read file that was compressed was read again as soon as its inode belonged to another read file.
#[test]
fn a_compressed_copy_of_a_file_whose_inode_was_used_again() {
    let rig = Rig::new(&["*"]);
    rig.write("a", "one\ntwo\n");
    let mut session = rig.start(None);
    let first = session.steps().pop().unwrap();
    drop(session);
    std::fs::remove_file(rig.path("a")).unwrap();
    rig.write("c", "three\n");
    rig.write("a.gz", gzip(&[b"one\ntwo\n"]));
    let mut seek = first.seek();
    for expected in [&["three"][..], &[]] {
        let mut session = rig.start(Some(seek));
        expect(&mut session, expected);
        let last = session.queue();
        assert!(last.records.is_empty());
        seek = last.seek();
    }
}

/// In a folder where files of the same content come and go, all but the first were taken for it.
#[test]
fn equal_files_that_come_and_go() {
    let rig = Rig::new(&["*"]);
    rig.write("always", "here\n");
    let mut seek = None;
    for job in 0..4 {
        let name = format!("job{job}");
        rig.write(&name, "OK\n");
        let mut session = rig.start(seek);
        expect(&mut session, if job == 0 { &["here", "OK"] } else { &["OK"] });
        seek = Some(session.queue().seek());
        drop(session);
        std::fs::remove_file(rig.path(&name)).unwrap();
    }
}

/// At every restart the wait for a rotated file began anew, and where restarts came faster than it lasted,
/// the files that had been begun meanwhile were rotated away unseen.
#[test]
fn a_file_rotated_long_ago_is_not_waited_for_after_a_restart() {
    let mut rig = hasty(&["app.log"]);
    rig.timing = Some([SHORT, LONG, LONG]);
    rig.write("app.log", "one\n");
    let mut session = rig.start(None);
    session.wait_for(1);
    let first = session.queue();
    drop(session);
    rig.rename("app.log", "app.log.1");
    let rotated = std::fs::File::options().append(true).open(rig.path("app.log.1")).unwrap();
    rotated.set_modified(std::time::SystemTime::now() - 2 * LONG).unwrap();
    rig.write("app.log", "two\n");
    let mut session = rig.start(Some(first.seek()));
    expect(&mut session, &["two"]);
}
