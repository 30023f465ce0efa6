//! Pure code asks nobody: time, bytes and seeds come in as arguments.
//!
//! Single functions are banned by clippy, in the crate's own clippy.toml, with reasons. Here are banned the
//! parts of the standard library as a whole, which clippy cannot do, and here it is seen to that clippy's
//! list is in force.

use super::Finding;
use super::repository::Repository;
use super::source::rust_lines;

/// Where the code is pure.
const PURE: &[&str] = &[
    "controller/src/sequence",
    "core/src/",
    "file-adapter/src/input/frame.rs",
    "file-adapter/src/input/position.rs",
    "file-adapter/src/input/progress.rs",
    "file-adapter/src/input/queue.rs",
    "file-adapter/src/output/format.rs",
    "file-adapter/src/recording/check.rs",
    "file-adapter/src/recording/part.rs",
    "file-adapter/src/recording/rebuild.rs",
    "file-adapter/src/recording/row.rs",
    "file-adapter/src/recording/seal.rs",
    "kafka-adapter/src/input/plan.rs",
    "kafka-adapter/src/input/position.rs",
    "kafka-adapter/src/input/queue.rs",
    "kafka-adapter/src/output/offsets.rs",
    "kafka-adapter/src/output/position.rs",
    "kafka-adapter/src/output/route.rs",
];

/// What no pure code may name.
const BANNED: &[&str] = &[
    "Instant::now",
    "SystemTime",
    "std::env",
    "std::fs",
    "std::net",
    "std::process",
    "std::thread",
    "tokio::",
];

/// The list that clippy enforces on the core, and what must stand in it.
const CORE_LINTS: &str = "core/clippy.toml";
const CORE_LINTS_NAME: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime",
    "std::thread::spawn",
    "std::collections::HashMap::iter",
    "std::fs::File",
];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, lines) in rust_lines(repository) {
        if !PURE.iter().any(|pure| path.starts_with(pure)) {
            continue;
        }
        for line in lines.iter().filter(|line| !line.is_test) {
            for banned in BANNED.iter().filter(|banned| line.code().contains(**banned)) {
                findings.push(Finding::broken(format!(
                    "{path}:{}: `{banned}` in pure code: let the caller pass in what is needed",
                    line.number
                )));
            }
        }
    }
    findings.extend(check_lint_files(repository));
    findings
}

fn check_lint_files(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    let core_lints = repository.text(CORE_LINTS).unwrap_or_default();
    for name in CORE_LINTS_NAME {
        if !core_lints.contains(&format!("\"{name}\"")) {
            findings.push(Finding::broken(format!("{CORE_LINTS} does not ban `{name}`")));
        }
    }
    // The clippy.toml of a crate replaces the one at the top, it does not add to it.
    let shared = repository.text("clippy.toml").unwrap_or_default();
    let shared = shared.lines().filter(|line| line.contains('=') && !line.starts_with('#'));
    for setting in shared {
        for (path, text) in repository.files() {
            if path.ends_with("/clippy.toml") && !text.lines().any(|line| line == setting) {
                findings.push(Finding::broken(format!(
                    "{path} replaces the clippy.toml at the top and must repeat `{setting}`"
                )));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::expect_broken;
    use super::*;

    const SHARED: &str = "allow-unwrap-in-tests = true\n";

    fn core_lints() -> String {
        let banned: String = CORE_LINTS_NAME
            .iter()
            .map(|name| format!("  {{ path = \"{name}\", reason = \"r\" }},\n"))
            .collect();
        format!("{SHARED}disallowed-methods = [\n{banned}]\n")
    }

    fn code(path: &str, text: &str) -> Vec<Finding> {
        check(&Repository::sketch(&[(path, text), (CORE_LINTS, &core_lints())]))
    }

    fn lints(text: &str) -> Vec<Finding> {
        check(&Repository::sketch(&[("clippy.toml", SHARED), (CORE_LINTS, text)]))
    }

    #[test]
    fn each_banned_name_is_found() {
        for banned in BANNED {
            let line = format!("use {banned};\n");
            expect_broken(
                &code("core/src/a.rs", &line),
                &[&format!("core/src/a.rs:1: `{banned}`")],
            );
        }
    }

    #[test]
    fn comments_tests_and_other_crates_may_name_them() {
        expect_broken(
            &code("core/src/a.rs", "/// never Instant::now\nfn a() {} // not std::fs\n"),
            &[],
        );
        expect_broken(&code("core/src/a.rs", "#[cfg(test)]\nmod tests {\nuse std::fs;\n}\n"), &[]);
        expect_broken(&code("cli/src/main.rs", "use std::fs;\n"), &[]);
    }

    #[test]
    fn the_list_for_clippy_must_be_there_and_repeat_what_it_replaces() {
        expect_broken(&lints(&core_lints()), &[]);
        let without = core_lints().replace("std::thread::spawn", "std::thread::other");
        expect_broken(&lints(&without), &["does not ban `std::thread::spawn`"]);
        let not_repeated = core_lints().replace(SHARED, "");
        expect_broken(&lints(&not_repeated), &["must repeat `allow-unwrap-in-tests = true`"]);
        assert_eq!(check(&Repository::sketch(&[])).len(), CORE_LINTS_NAME.len());
    }
}
