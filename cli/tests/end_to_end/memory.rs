//! Memory follows the limits, not the input.

use std::fs::{self, File};
use std::io::Write;

use crate::crowd::Crowd;
use crate::data;
use crate::site::{Running, Site};

const MIB: usize = 1 << 20;

/// The most memory that the process ever had, in bytes, as the kernel counts it.
fn peak_memory(running: &mut Running) -> u64 {
    let status = format!("/proc/{}/status", running.child.id());
    let mut peak = 0;
    running.until(|| {
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("VmHWM:"));
        let kib =
            line.and_then(|line| line.split_whitespace().nth(1)).map(|kib| kib.parse::<u64>());
        if let Some(Ok(kib)) = kib {
            peak = peak.max(kib * 1024);
        }
        false
    });
    assert!(peak > 0, "the process was never seen");
    peak
}

fn check(pipeline: &str, write_input: impl FnOnce(&mut File)) {
    let site = Site::new(pipeline);
    write_input(&mut File::create(site.path("in.log")).unwrap());
    let mut running = site.start();
    let peak = peak_memory(&mut running);
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(peak < 100_000_000, "{} MB at most were resident", peak / 1_000_000);
}

#[test]
fn two_gigabytes_stay_under_a_hundred_megabytes() {
    let block = data::lines("x", 16 * MIB, 1);
    let pipeline = "name: big\ninputs: {all: {file: {paths: in.log}}}\n\
                    outputs: {out: {file: {path: out.log}}, none: {null: }}\n";
    check(pipeline, |file| (0..120).for_each(|_| file.write_all(&block).unwrap()));
}

fn long_line(file: &mut File) {
    file.write_all(b"before\n").unwrap();
    (0..64).for_each(|_| file.write_all(&[b'x'; MIB]).unwrap());
    file.write_all(b"\nafter\n").unwrap();
}

/// One overlong line once stopped the file, or took all memory.
#[test]
fn a_line_of_64_megabytes_stays_under_a_hundred_megabytes() {
    let pipeline = "name: long\ninputs: {all: {file: {paths: in.log}}}\n\
                    outputs: {out: {file: {path: out.log}}}\n";
    check(pipeline, long_line);
    let whole = pipeline.replace("paths: in.log", "paths: in.log, max_record_bytes: 64MiB");
    check(&whole, long_line);
}

/// Two hundred clients ask greedily, slowly, hugely and senselessly, and take no answers.
#[test]
fn a_crowd_at_the_control_server_costs_little_memory_and_stops_nothing() {
    let site = Site::new(
        "name: crowded\ncontrol: {listen: \"127.0.0.1:0\"}\n\
         inputs: {all: {file: {paths: in.log, max_records_per_second: 100000}}}\noutputs: {none: {null: }}\n",
    );
    // Four seconds at that rate.
    site.write("in.log", "0123456789\n".repeat(400_000));
    let mut running = site.start();
    let listens = |running: &Running| {
        let said = running.stderr();
        let (_, rest) = said.split_once("control: http://")?;
        rest.split_once("/\n")?.0.parse().ok()
    };
    let mut address = None;
    let log = running.log();
    assert!(running.until(|| log.exists()));
    while address.is_none() {
        assert!(running.child.try_wait().unwrap().is_none(), "{}", running.stderr());
        address = listens(&running);
    }
    let crowd = Crowd::of(200, address.unwrap());
    let peak = peak_memory(&mut running);
    let answers = crowd.end();
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert!(answers > 0, "nobody was answered");
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    assert!(peak < 120_000_000, "{} MB at most were resident", peak / 1_000_000);
}
