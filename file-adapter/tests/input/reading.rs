//! What is read from files: framing, order, links, limits, and what is refused.

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;

use lockgate_core::{FaultTolerance, Framing, InputReaderCommand as Command, QueueLimits};
use lockgate_file_adapter::Overlong;

use crate::harness::{Rec, Rig, numbered, texts};

/// F6 (vector#18341): the last line without a newline was never emitted.
#[test]
fn f6_the_last_line_needs_no_newline() {
    let rig = Rig::new(&["a.log"]);
    rig.write("a.log", "foo\nbar");
    let expected: [Rec; 2] =
        [("a.log".into(), 0, b"foo".to_vec()), ("a.log".into(), 4, b"bar".to_vec())];
    assert_eq!(rig.read_all(), expected);
}

/// F10 (dataprof#497): a byte-order mark spoiled the first record.
#[test]
fn f10_byte_order_marks() {
    let rig = Rig::new(&["a.log"]);
    rig.write("a.log", "\u{feff}foo\n\u{feff}bar\n");
    let records = rig.read_all();
    assert_eq!(records[0], ("a.log".into(), 3, b"foo".to_vec()));
    assert_eq!(records[1].2, "\u{feff}bar".as_bytes());

    rig.write("a.log", b"\xff\xfef\0o\0o\0\n\0");
    let error = rig.start(None).failure();
    insta::assert_snapshot!(error, @"DIR/a.log: the file begins with a byte-order mark of UTF-16; convert it first, for example with `iconv -f UTF-16 -t UTF-8`");
}

/// F12 (wazuh#38561): one bad byte ended the stream.
#[test]
fn f12_bytes_pass_unchanged() {
    let rig = Rig::new(&["a.log"]);
    rig.write("a.log", b"a\0b\n\xff\xfe\xfd\n\r\n\r\r\n\xc3\n");
    let values: Vec<_> = rig.read_all().into_iter().map(|(_, _, value)| value).collect();
    assert_eq!(values, [&b"a\0b"[..], b"\xff\xfe\xfd", b"", b"\r", b"\xc3"]);
}

/// F14 (beats#1686, otel-contrib#50258): files were read once for each link, and a loop of links for ever.
#[test]
fn f14_links_and_loops() {
    let rig = Rig::new(&["in/**/*.log", "in/x/a.log"]);
    rig.write("in/x/a.log", "a\n");
    rig.write("in/y/b.log", "b\n");
    std::fs::hard_link(rig.path("in/x/a.log"), rig.path("in/y/hard.log")).unwrap();
    symlink(rig.path("in/y/b.log"), rig.path("in/x/soft.log")).unwrap();
    symlink(rig.path("in"), rig.path("in/y/loop")).unwrap();
    let names: Vec<_> = rig.read_all().into_iter().map(|(name, _, _)| name).collect();
    assert_eq!(names, ["in/x/a.log", "in/x/soft.log"]);
}

/// F7 (fluent-bit#370, vector#7229): one overlong line stopped the file. The line passes through one
/// block at a time; what is kept of it never exceeds the cap.
#[test]
fn f7_a_line_of_64_mb() {
    let mut rig = Rig::new(&["a.log"]);
    rig.config.max_record_bytes = 1000;
    let long = 64 << 20;
    let mut content = b"first\n".to_vec();
    content.resize(6 + long, b'x');
    content.extend(b"\r\nlast\n");
    rig.write("a.log", &content);

    rig.config.overlong = Overlong::Truncate;
    let mut session = rig.start(None);
    let records = session.drain();
    assert_eq!(records.len(), 3);
    assert_eq!(records[1], ("a.log".into(), 6, vec![b'x'; 1000]));
    assert_eq!(records[2], ("a.log".into(), (6 + long + 2) as u64, b"last".to_vec()));
    insta::assert_snapshot!(session.policies[0].1, @"DIR/a.log: the record at byte 6 has 67108864 bytes, more than max_record_bytes 1000; it was cut short");
    assert_eq!(session.policy_names(), ["overlong_truncated"]);

    rig.config.overlong = Overlong::Skip;
    let mut session = rig.start(None);
    assert_eq!(texts(&session.drain()), ["first", "last"]);
    assert_eq!(session.policy_names(), ["overlong_skipped"]);

    rig.config.overlong = Overlong::Stop;
    let error = rig.start(None).failure();
    insta::assert_snapshot!(error, @"DIR/a.log: the record at byte 6 has 1048570 bytes or more, more than max_record_bytes 1000; raise it, or set overlong to truncate or skip");
}

/// The end of an overlong last line is found at the file's end.
#[test]
fn an_overlong_last_line() {
    let mut rig = Rig::new(&["a.log"]);
    rig.config.max_record_bytes = 3;
    rig.config.overlong = Overlong::Truncate;
    rig.write("a.log", "abcdef");
    let mut session = rig.start(None);
    assert_eq!(texts(&session.drain()), ["abc"]);
    assert_eq!(session.policy_names(), ["overlong_truncated"]);
}

#[test]
fn length_delimited_records() {
    let mut rig = Rig::new(&["a.bin"]);
    rig.config.framing = Framing::Length32;
    rig.write("a.bin", b"\0\0\0\x01a\0\0\0\0\0\0\0\x05line\n");
    let values: Vec<_> = rig.read_all().into_iter().map(|(_, at, value)| (at, value)).collect();
    assert_eq!(values, [(0, b"a".to_vec()), (5, b"".to_vec()), (9, b"line\n".to_vec())]);

    rig.config.max_record_bytes = 4;
    rig.config.overlong = Overlong::Truncate;
    assert_eq!(rig.values(), ["a", "", "line"]);
    rig.config.overlong = Overlong::Skip;
    assert_eq!(rig.values(), ["a", ""]);
}

#[test]
fn length_delimited_files_must_be_whole() {
    let mut rig = Rig::new(&["a.bin"]);
    rig.config.framing = Framing::Length32;
    rig.write("a.bin", b"\0\0\0\x01a\0\0\0\x09b");
    insta::assert_snapshot!(rig.start(None).failure(), @"DIR/a.bin: the file ends inside a record that began at byte 5 and declared 9 bytes");
    rig.write("a.bin", b"\0\0\0\x01a\0\0");
    insta::assert_snapshot!(rig.start(None).failure(), @"DIR/a.bin: the file ends inside the length of the record that begins at byte 5");
}

#[test]
fn what_is_missing_is_refused() {
    let mut rig = Rig::new(&["in/a.log"]);
    insta::assert_snapshot!(rig.refused(None), @"cannot read DIR/in/a.log: there is no such file; check the path, or set `follow: true` to wait for it");
    rig.config.paths[0] = rig.config.paths[0].replace("a.log", "*.log");
    insta::assert_snapshot!(rig.refused(None), @"no file matches DIR/in/*.log: check the pattern, or set `follow: true` to wait for files");
    rig.write("in/dir.log/x", "x");
    insta::assert_snapshot!(rig.refused(None), @"no file matches DIR/in/*.log: check the pattern, or set `follow: true` to wait for files");
    rig.config.paths[0] = rig.config.paths[0].replace("*.log", "dir.log");
    insta::assert_snapshot!(rig.refused(None), @"DIR/in/dir.log is a directory; name its files, for example DIR/in/dir.log/*");
}

#[test]
fn the_order_is_that_of_the_entries_and_names() {
    let rig = Rig::new(&["z.log", "in/*.log"]);
    rig.write("z.log", "z\n");
    rig.write("in/b.log", "b\n");
    rig.write("in/a.log", "a1\na2");
    rig.write("in/empty.log", "");
    assert_eq!(rig.values(), ["z", "a1", "a2", "b"]);
}

#[test]
fn names_that_are_not_utf8() {
    let rig = Rig::new(&["in/*"]);
    let name = rig.path("in").join(std::ffi::OsStr::from_bytes(b"\xff.log"));
    std::fs::create_dir(rig.path("in")).unwrap();
    std::fs::write(&name, "a\nb\nc\n").unwrap();
    let mut session = rig.start(None);
    session.wait_for_end();
    session.set_max_batch(1);
    let first = session.queue();
    assert_eq!(first.records, [("in/\\xFF.log".into(), 0, b"a".to_vec())]);
    drop(session);
    let mut session = rig.open(None).unwrap();
    assert_eq!(session.replay(&first).digest, first.digest);
    session.send(Command::Extend);
    assert_eq!(texts(&session.drain()), ["b", "c"]);
}

#[test]
fn a_thousand_files() {
    let rig = Rig::new(&["in/*.log"]);
    for i in 0..1000 {
        rig.write(&format!("in/{i:04}.log"), format!("{i}a\n{i}b"));
    }
    let expected: Vec<_> = (0..1000).flat_map(|i| [format!("{i}a"), format!("{i}b")]).collect();
    let mut session = rig.start(None);
    session.wait_for_end();
    session.set_max_batch(1001);
    let step = session.queue();
    drop(session);
    let mut session = rig.start(Some(step.seek()));
    let rest = session.drain();
    let all: Vec<_> = step.texts().into_iter().chain(texts(&rest)).collect();
    assert_eq!(all, expected);
}

/// The protocol machine behind the harness checks the limits; here that progress is made under them.
#[test]
fn tiny_limits() {
    let content = numbered(0..200);
    let expected: Vec<_> = content.lines().collect();
    for (records, bytes) in [(1, 1 << 20), (1 << 20, 1), (3, 100), (1 << 20, 200)] {
        let mut rig = Rig::new(&["a.log"]);
        rig.write("a.log", &content);
        rig.limits = QueueLimits { max_queued_records: records, max_queued_bytes: bytes };
        assert_eq!(rig.values(), expected, "{records} records, {bytes} bytes");
    }
}

#[test]
fn a_pause_keeps_what_is_buffered() {
    let mut rig = Rig::new(&["a.log"]);
    rig.limits.max_queued_records = 4;
    rig.write("a.log", numbered(0..10));
    let mut session = rig.start(None);
    session.wait_for(4);
    session.send(Command::Pause);
    assert_eq!(session.queue().records.len(), 4);
    assert!(session.queue().records.is_empty(), "a paused reader reads nothing");
    session.send(Command::Extend);
    assert_eq!(session.drain().len(), 6);
}

#[test]
fn every_level_reads_the_same() {
    let mut rig = Rig::new(&["a.log"]);
    rig.write("a.log", numbered(0..1000));
    let all = rig.read_all();
    for level in [FaultTolerance::None, FaultTolerance::AtLeastOnce] {
        rig.level = level;
        assert_eq!(rig.read_all(), all);
    }
}

#[test]
fn disconnect_closes_and_so_does_dropping() {
    let rig = Rig::new(&["a.log"]);
    rig.write("a.log", numbered(0..10));
    let mut session = rig.start(None);
    session.send(Command::Disconnect);
    session.wait_closed();
    drop(rig.start(None));
    drop(rig.open(None).unwrap());
}

/// Lines longer than a block are put together from several.
#[test]
fn lines_of_many_blocks() {
    let mut rig = Rig::new(&["a.log"]);
    rig.config.max_record_bytes = 16 << 20;
    let lines = [3 << 20, 10, 5 << 20, 1].map(|len| "y".repeat(len));
    rig.write("a.log", lines.join("\n"));
    assert!(rig.values() == lines);
}
