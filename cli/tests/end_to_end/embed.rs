//! The embedding example: a circuit with state, killed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::data::Seeded;
use crate::site::Site;

fn example() -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_BIN_EXE_lockgate"));
    let example = folder.parent().unwrap().join("examples/embed");
    assert!(example.exists(), "cargo builds examples with the tests: {}", example.display());
    example
}

#[test]
fn the_word_count_survives_kills() {
    let site = Site::new("");
    let mut random = Seeded(7);
    let (mut text, mut counts) = (String::new(), BTreeMap::new());
    for _ in 0..2_000_000 {
        let word = random.below(500);
        *counts.entry(format!("w{word}")).or_insert(0u64) += 1;
        writeln!(text, "w{word}").unwrap();
    }
    site.write("words.txt", &text);
    let mut command = Command::new(example());
    command.args([site.path("run"), site.path("words.txt")]);
    command.stdout(Stdio::null()).stderr(Stdio::piped());
    let mut kills = 0;
    for target in [1, 40_000, 90_000] {
        let mut child = command.spawn().unwrap();
        let begun = std::time::Instant::now();
        while site.size("run") < target && child.try_wait().unwrap().is_none() {
            assert!(begun.elapsed() < crate::site::DEADLINE);
            std::thread::yield_now();
        }
        kills += u64::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(kills > 0, "the run was too short to be killed");
    let ended = command.output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));

    // The last count of each word is its total, and no count comes twice.
    let output = String::from_utf8(site.read("run/counts.txt")).unwrap();
    let mut last = BTreeMap::new();
    for line in output.lines() {
        let (word, count) = line.split_once(' ').unwrap();
        let count: u64 = count.parse().unwrap();
        let before = last.insert(word.to_string(), count);
        assert!(
            before.is_none_or(|before| before < count),
            "{word} went from {before:?} to {count}"
        );
    }
    assert_eq!(last, counts);
}
