//! Followed files: growth, rotation, truncation, replacement, and new files.

use std::time::Duration;

use lockgate_core::{Framing, InputReaderCommand as Command};
use lockgate_file_adapter::StartAt;

use crate::harness::{Rig, expect, gzip, numbered, texts, zstd};

fn follow(paths: &[&str]) -> Rig {
    let mut rig = Rig::new(paths);
    rig.config.follow = true;
    rig
}

const LONG: Duration = Duration::from_secs(3600);
const SHORT: Duration = Duration::from_millis(20);

#[test]
fn appended_lines_and_one_completed_later() {
    let rig = follow(&["a.log"]);
    rig.write("a.log", "one\n");
    let mut session = rig.start(None);
    expect(&mut session, &["one"]);
    rig.append("a.log", "two\nthr");
    expect(&mut session, &["two"]);
    rig.append("a.log", "ee");
    rig.append("a.log", "\nfour\n");
    expect(&mut session, &["three", "four"]);
}

#[test]
fn files_and_directories_that_appear() {
    let rig = follow(&["later.log", "in/**/*.log"]);
    let mut session = rig.start(None);
    rig.write("later.log", "a\n");
    expect(&mut session, &["a"]);
    rig.write("in/x/b.log", "b\n");
    expect(&mut session, &["b"]);
    rig.write("in/x/c.log", "");
    rig.append("in/x/c.log", "c\n");
    expect(&mut session, &["c"]);
}

/// The old file is finished through its open descriptor, its unfinished last line included, before the
/// new one of its name is begun.
#[test]
fn rotation_by_rename() {
    let rig = follow(&["app.log"]);
    rig.write("app.log", "one\ntwo");
    let mut session = rig.start(None);
    expect(&mut session, &["one"]);
    rig.rename("app.log", "app.log.1");
    rig.append("app.log.1", " and a half\nthree");
    rig.write("app.log", "new\n");
    let records = session.take(3);
    assert_eq!(texts(&records), ["two and a half", "three", "new"]);
    assert_eq!(records[2].1, 0);
    assert!(session.policies.is_empty(), "{:?}", session.policies);
}

/// The same where the pattern finds the renamed file as well: nothing twice.
#[test]
fn rotation_within_the_pattern() {
    let rig = follow(&["app.log*"]);
    rig.write("app.log", "one\n");
    let mut session = rig.start(None);
    expect(&mut session, &["one"]);
    rig.rename("app.log", "app.log.1");
    rig.append("app.log.1", "two\n");
    expect(&mut session, &["two"]);
    rig.write("app.log", "new\n");
    expect(&mut session, &["new"]);
    rig.rename("app.log.1", "app.log.2");
    rig.rename("app.log", "app.log.1");
    rig.write("app.log", "newer\n");
    expect(&mut session, &["newer"]);
    let step = session.queue();
    drop(session);
    rig.append("app.log", "newest\n");
    let mut session = rig.start(Some(step.seek()));
    expect(&mut session, &["newest"]);
    assert!(session.policies.is_empty(), "{:?}", session.policies);
}

/// F9 (vector#13193), while running: `app.log` → `app.log.1` → `app.log.1.gz`, all in the pattern.
#[test]
fn f9_rotated_and_compressed_while_running() {
    let mut rig = follow(&["app.log*"]);
    rig.timing = Some([SHORT, SHORT, LONG]);
    let content = numbered(0..100);
    rig.write("app.log", &content);
    let mut session = rig.start(None);
    session.take(100);
    rig.rename("app.log", "app.log.1");
    rig.write("app.log", "new\n");
    expect(&mut session, &["new"]);
    // gzip writes the copy first, not at once, and removes the original then.
    let compressed = gzip(&[content.as_bytes()]);
    rig.write("app.log.1.gz", &compressed[..compressed.len() / 2]);
    rig.append("app.log", "newer\n");
    expect(&mut session, &["newer"]);
    rig.append("app.log.1.gz", &compressed[compressed.len() / 2..]);
    rig.remove("app.log.1");
    rig.append("app.log", "newest\n");
    expect(&mut session, &["newest"]);
    // A file that is none of those shows that a look was taken.
    rig.write("app.log.0", "another\n");
    expect(&mut session, &["another"]);
    assert!(session.policies.is_empty(), "{:?}", session.policies);
}

/// F3 (beats#39731): after copytruncate the whole file was sent again.
#[test]
fn f3_truncation() {
    let rig = follow(&["app.log"]);
    rig.write("app.log", "one\ntwo\n");
    let mut session = rig.start(None);
    expect(&mut session, &["one", "two"]);
    rig.truncate("app.log", 0);
    insta::assert_snapshot!(session.wait_for_policy("file_truncated"), @"DIR/app.log was read to byte 8 and holds 0 bytes now; whether more was written before it was truncated cannot be known. What it holds now is read from its beginning");
    rig.append("app.log", "new\n");
    assert_eq!(session.take(1), [("app.log".into(), 0, b"new".to_vec())]);

    // Truncated and longer again before anyone looked.
    rig.overwrite("app.log", "other lines\nthan before\n");
    expect(&mut session, &["other lines", "than before"]);
    insta::assert_snapshot!(session.wait_for_policy("file_replaced"), @"DIR/app.log was read to byte 4 and holds something else now; whether the old file held more cannot be known. The new one is read from its beginning");
}

/// F3, while down: new content is read from its beginning, and what cannot be known is counted.
#[test]
fn f3_truncated_or_replaced_while_down() {
    let rig = follow(&["app.log"]);
    rig.write("app.log", "one\ntwo\n");
    let mut session = rig.start(None);
    session.wait_for(2);
    let seek = session.queue().seek();
    drop(session);

    std::fs::write(rig.path("app.log"), "new\n").unwrap();
    let mut session = rig.start(Some(seek.clone()));
    expect(&mut session, &["new"]);
    assert_eq!(session.policy_names(), ["file_truncated"]);

    std::fs::write(rig.path("app.log"), "something else\n").unwrap();
    let mut session = rig.start(Some(seek.clone()));
    expect(&mut session, &["something else"]);
    assert_eq!(session.policy_names(), ["file_replaced"]);

    rig.remove("app.log");
    let mut session = rig.start(Some(seek));
    insta::assert_snapshot!(session.wait_for_policy("file_vanished"), @"DIR/app.log was read to byte 8 and is gone; whether it held more cannot be known");
    rig.write("app.log", "back\n");
    expect(&mut session, &["back"]);
}

/// A file that is replaced by renaming another over it.
#[test]
fn replacement() {
    let rig = follow(&["app.log"]);
    rig.write("app.log", "one\ntw");
    let mut session = rig.start(None);
    expect(&mut session, &["one"]);
    rig.write("tmp", "new\n");
    rig.rename("tmp", "app.log");
    expect(&mut session, &["tw", "new"]);
}

/// A crash after any step: what was read of growing, rotated files comes once.
#[test]
fn crashes_while_following() {
    let rig = follow(&["*.log*"]);
    rig.write("a.log", "a1\na2");
    rig.write("b.log", "b1\n");
    let mut session = rig.start(None);
    session.wait_for(2);
    let first = session.queue();
    assert_eq!(first.texts(), ["a1", "b1"]);
    drop(session);
    rig.append("a.log", "\na3\n");
    rig.rename("b.log", "b.log.1");
    rig.append("b.log.1", "b2\n");
    rig.write("b.log", "new b\n");
    let mut session = rig.open(None).unwrap();
    assert_eq!(session.replay(&first).records, first.records);
    session.send(Command::Extend);
    let mut values = texts(&session.take(4));
    values.sort();
    assert_eq!(values, ["a2", "a3", "b2", "new b"]);
    drop(session);
    let mut session = rig.start(Some(first.seek()));
    let mut values = texts(&session.take(4));
    values.sort();
    assert_eq!(values, ["a2", "a3", "b2", "new b"]);
}

#[test]
fn growing_compressed_files() {
    for compress in [gzip, zstd] {
        let rig = follow(&["a"]);
        let member = compress(&[b"two\nthree\n"]);
        rig.write("a", [&compress(&[b"one\n"]), &member[..12]].concat());
        let mut session = rig.start(None);
        expect(&mut session, &["one"]);
        let seek = session.queue().seek();
        rig.append("a", &member[12..]);
        expect(&mut session, &["two", "three"]);
        drop(session);
        expect(&mut rig.start(Some(seek)), &["two", "three"]);
    }
}

/// An empty file was taken for a plain one, whatever came into it later.
#[test]
fn an_empty_file_that_becomes_compressed() {
    let rig = follow(&["a", "b", "c"]);
    rig.write("a", "");
    rig.write("b", [0x1f]);
    rig.write("c", "");
    let mut session = rig.start(None);
    session.queue();
    rig.append("a", gzip(&[b"one\n"]));
    expect(&mut session, &["one"]);
    rig.append("b", &gzip(&[b"two\n"])[1..]);
    expect(&mut session, &["two"]);
    rig.append("c", "x");
    rig.append("c", "\n");
    expect(&mut session, &["x"]);
}

#[test]
fn growing_length_delimited_files() {
    let mut rig = follow(&["a"]);
    rig.config.framing = Framing::Length32;
    rig.write("a", b"\0\0\0\x01a\0\0\0\x02b");
    let mut session = rig.start(None);
    expect(&mut session, &["a"]);
    rig.append("a", b"b\0\0");
    expect(&mut session, &["bb"]);
    rig.append("a", b"\0\0");
    rig.append("a", b"\0\0\0\x01c");
    expect(&mut session, &["", "c"]);
}

/// More files than are kept open: those that were closed are opened again where they were.
#[test]
fn more_files_than_descriptors() {
    let rig = follow(&["in/*"]);
    for i in 0..100 {
        rig.write(&format!("in/{i:03}"), format!("{i} one\n{i} t"));
    }
    let mut session = rig.start(None);
    session.take(100);
    for i in 0..100 {
        rig.append(&format!("in/{i:03}"), "wo\n");
    }
    let mut values = texts(&session.take(100));
    values.sort_by_key(|value| value.split(' ').next().unwrap().parse::<u32>().unwrap());
    assert_eq!(values, (0..100).map(|i| format!("{i} two")).collect::<Vec<_>>());
    assert!(session.policies.is_empty(), "{:?}", session.policies);
}

/// F16: the end counts for the files that exist at the very first start.
#[test]
fn f16_from_the_end_on() {
    let mut rig = follow(&["*.log"]);
    rig.config.start_at = StartAt::End;
    rig.write("a.log", "old\nunfin");
    let mut session = rig.start(None);
    rig.append("a.log", "ished\n");
    rig.write("b.log", "b\n");
    let mut values = texts(&session.take(2));
    values.sort();
    assert_eq!(values, ["b", "unfinished"]);
}

#[test]
fn a_pause_stops_reading_and_not_looking() {
    let mut rig = follow(&["a.log", "mark*"]);
    rig.timing = Some([SHORT, SHORT, LONG]);
    rig.write("a.log", "one\n");
    rig.write("mark1", "mark\n");
    rig.write("mark2", "mark\n");
    let mut session = rig.start(None);
    expect(&mut session, &["one", "mark", "mark"]);
    session.send(Command::Pause);
    rig.append("a.log", "two\n");
    rig.rename("a.log", "b.log");
    rig.write("a.log", "three\n");
    // A truncation that is noticed shows that a look was taken, and what is noticed in the first one would
    // have been read before the second.
    for (looks, name) in [(1, "mark1"), (2, "mark2")] {
        rig.truncate(name, 0);
        session.wait_for_policies(looks);
        assert!(session.queue().records.is_empty());
    }
    session.send(Command::Extend);
    expect(&mut session, &["two", "three"]);
}

/// Nothing failed when changes were not reported: each was found by polling.
#[test]
fn changes_are_reported() {
    let mut rig = follow(&["a.log", "in/**/*.log"]);
    rig.timing = Some([LONG, SHORT, LONG]);
    rig.write("a.log", "one\n");
    rig.write("in/x/b.log", "b\n");
    let mut session = rig.start(None);
    expect(&mut session, &["one", "b"]);
    for _ in 0..20 {
        rig.append("a.log", "two\n");
        expect(&mut session, &["two"]);
    }
    rig.append("in/x/b.log", "b2\n");
    expect(&mut session, &["b2"]);
    rig.write("in/x/y.log", "new\n");
    expect(&mut session, &["new"]);
}

/// Where the reader stands in each file, and how long the file is by now, whatever it is called by now.
#[test]
fn where_it_stands_is_seen_by_those_who_watch() {
    let rig = follow(&["*.log"]);
    rig.write("a.log", "one\ntwo\n");
    rig.write("b.log", "three\n");
    let mut session = rig.open(None).unwrap();
    assert_eq!(session.stands(), [("a.log".into(), 0, Some(8)), ("b.log".into(), 0, Some(6))]);
    session.send(Command::Extend);
    session.wait_for(3);
    session.queue();
    assert_eq!(session.stands(), [("a.log".into(), 8, Some(8)), ("b.log".into(), 6, Some(6))]);
    session.send(Command::Pause);
    rig.append("a.log", "four\n");
    assert_eq!(session.stands(), [("a.log".into(), 8, Some(13)), ("b.log".into(), 6, Some(6))]);
}

/// A file that was read to its end is nothing to watch any more.
#[test]
fn what_is_finished_is_seen_no_more() {
    let rig = Rig::new(&["*.log"]);
    rig.write("a.log", "one\n");
    rig.write("b.log.gz", "not of the pattern\n");
    let mut session = rig.open(None).unwrap();
    session.send(Command::Extend);
    session.wait_for_end();
    session.drain();
    assert_eq!(session.stands(), []);
}
