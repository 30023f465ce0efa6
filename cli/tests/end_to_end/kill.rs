//! `kill -9` at random moments: the output is that of an undisturbed run, byte for byte.

use std::fs;

use lockgate_controller::State;

use crate::data::{self, Seeded};
use crate::site::Site;

const MIB: usize = 1 << 20;

/// What the three files hold, decompressed, in the order in which they are read.
fn three_files(site: &Site, scale: usize) -> Vec<u8> {
    fs::create_dir_all(site.path("in")).unwrap();
    let plain = data::lines("plain", 60 * scale, 1);
    let gzip = data::lines("gzip", 30 * scale, 2);
    let zstd = data::lines("zstd", 30 * scale, 3);
    fs::write(site.path("in/a.log"), &plain).unwrap();
    data::gzip(&site.path("in/b.log.gz"), &gzip, 7);
    data::zstd(&site.path("in/c.log.zst"), &zstd, 5);
    [plain, gzip, zstd].concat()
}

fn pipeline(checkpoint_interval: &str, output: &str) -> String {
    format!(
        "name: killed\ncheckpoint_interval: {checkpoint_interval}\n\
         inputs: {{all: {{file: {{paths: \"in/*\"}}}}}}\n\
         outputs: {{out: {{file: {output}}}}}\n"
    )
}

/// Kills the run `kills` times, spread over its length, then lets it end.
fn run_with_kills(site: &Site, total: u64, kills: u64, seed: u64) {
    let mut random = Seeded(seed);
    for kill in 0..kills {
        let target = (total * kill + random.below(total)) / (kills + 1);
        let mut running = site.start();
        let mut delay = random.below(8);
        let reached = running.until(|| {
            let there = site.size("out") >= target;
            delay = delay.saturating_sub(u64::from(there));
            there && delay == 0
        });
        assert!(reached, "kill {kill}: the run ended before: {}", running.stderr());
        assert!(running.kill(), "kill {kill}: the run ended just before");
    }
    site.run();
}

/// The data is 300 MB on the disk, which holds for 350 MB of lines that hardly compress.
const BIG: usize = 3 * MIB;

#[test]
fn twenty_kills_do_not_show_in_an_appended_file() {
    let site = Site::new(&pipeline("50ms", "{path: out/all.log}"));
    let expected = three_files(&site, BIG);
    assert!(site.size("in") > 300_000_000, "{}", site.size("in"));
    run_with_kills(&site, expected.len() as u64, 20, 11);
    assert!(site.read("out/all.log") == expected, "the output differs");
}

#[test]
fn twenty_kills_do_not_show_in_segments() {
    let output = "{path: \"out/{segment}.log\", segment_bytes: 8MiB}";
    let site = Site::new(&pipeline("50ms", output));
    let expected = three_files(&site, BIG);
    run_with_kills(&site, expected.len() as u64, 20, 12);
    let killed = site.files("out");
    assert!(killed.len() > 20, "{} segments", killed.len());
    let joined: Vec<u8> = killed.iter().flat_map(|(_, content)| content).copied().collect();
    assert!(joined == expected, "the segments together differ");

    fs::remove_dir_all(site.path("out")).unwrap();
    fs::remove_dir_all(site.path(".lockgate")).unwrap();
    site.run();
    assert!(site.files("out") == killed, "the segments differ from those of an undisturbed run");
}

/// With a checkpoint after every step nearly every kill falls into one.
#[test]
fn kills_during_checkpoints_do_not_show() {
    for (output, seed) in [
        ("{path: out/all.log}", 21),
        ("{path: \"out/{segment}\", segment_records: 9000, compression: zstd}", 22),
    ] {
        let site = Site::new(&pipeline("1ms", output));
        three_files(&site, MIB / 2);
        site.run();
        let undisturbed = site.files("out");
        let total = site.size("out");
        fs::remove_dir_all(site.path("out")).unwrap();
        fs::remove_dir_all(site.path(".lockgate")).unwrap();
        run_with_kills(&site, total, 20, seed);
        assert!(site.files("out") == undisturbed, "{output}: the output differs");
    }
}

/// A second kill that comes before anything new was done: recovery itself can be repeated.
#[test]
fn two_kills_in_a_row_before_any_new_step_do_not_show() {
    let site = Site::new(&pipeline("10s", "{path: out/all.log}"));
    let expected = three_files(&site, MIB);
    let last_step = || {
        let inspection = State::inspect(&site.path(".lockgate/killed")).unwrap();
        inspection.journal.last().map(|last| last.step).or(inspection.checkpoint.map(|c| c.step))
    };
    let mut random = Seeded(31);
    let (mut doubles, mut round) = (0, 0);
    while doubles < 5 {
        round += 1;
        assert!(round < 40, "only {doubles} times of {round} was the second kill early enough");
        let target = expected.len() as u64 * round.min(9) / 12;
        let mut running = site.start();
        assert!(running.until(|| site.size("out") >= target), "{}", running.stderr());
        running.kill();
        let before = last_step();
        // The output is cut back and grows again: somewhere in there is the second kill.
        let mut running = site.start();
        let looks = random.below(40);
        let mut looked = 0;
        running.until(|| {
            looked += 1;
            looked > looks
        });
        running.kill();
        doubles += u64::from(last_step() == before);
    }
    site.run();
    assert!(site.read("out/all.log") == expected, "the output differs");
}

#[test]
fn two_inputs_merged_keep_each_record_once_and_in_order() {
    let site = Site::new(
        "name: merged\ncheckpoint_interval: 30ms\n\
         inputs:\n  one: {file: {paths: one.log}}\n  two: {file: {paths: two.log.gz}}\n\
         outputs: {out: {file: {path: out/merged.log}}}\n",
    );
    let one = data::lines("one", 60 * MIB, 5);
    let two = data::lines("two", 30 * MIB, 6);
    site.write("one.log", &one);
    data::gzip(&site.path("two.log.gz"), &two, 4);
    run_with_kills(&site, (one.len() + two.len()) as u64, 12, 41);
    let merged = site.read("out/merged.log");
    let of = |tag: &[u8]| {
        let lines = merged.split_inclusive(|byte| *byte == b'\n');
        lines.filter(|line| line.starts_with(tag)).flatten().copied().collect::<Vec<u8>>()
    };
    assert!(of(b"one ") == one, "input one differs");
    assert!(of(b"two ") == two, "input two differs");
    assert_eq!(merged.len(), one.len() + two.len());
}
