//! Tests are neither left out nor wait for time to pass.
//!
//! A wait between two looks at another process is allowed where the line says so: `// polls: ` and for what.

use super::Finding;
use super::repository::Repository;
use super::source::{Line, rust_lines};

/// Taken apart so that this file itself keeps the rule.
const SLEEP: &str = concat!("thread::", "sleep");

const POLLS: &str = "// polls";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, lines) in rust_lines(repository) {
        for (index, line) in lines.iter().enumerate() {
            let place = format!("{path}:{}", line.number);
            if leaves_out(line.text.trim()) {
                findings.push(Finding::broken(format!(
                    "{place}: a test that is left out: let it run, or delete it"
                )));
            }
            let line_before = index.checked_sub(1).map(|before| &lines[before]);
            let polls = says_polls(line) || line_before.is_some_and(says_polls);
            if line.is_test && line.code().contains(SLEEP) && !polls {
                findings.push(Finding::broken(format!(
                    "{place}: `{SLEEP}` in a test: wait for the event itself, or say what is looked at \
                     between two waits with `{POLLS}: ...`"
                )));
            }
        }
    }
    findings
}

/// Whether the line keeps a test or a documentation test from running.
fn leaves_out(line: &str) -> bool {
    let attribute = line.starts_with("#[ignore")
        || (line.starts_with("#[cfg_attr(") && line.contains("ignore"));
    let doc = line
        .strip_prefix("///")
        .or_else(|| line.strip_prefix("//!"))
        .is_some_and(|text| text.trim_start().starts_with("```ignore"));
    attribute || doc
}

fn says_polls(line: &Line<'_>) -> bool {
    line.text
        .split_once(POLLS)
        .is_some_and(|(_, reason)| !reason.trim_matches([':', ' ']).is_empty())
}

#[cfg(test)]
mod tests {
    use super::super::expect_broken;
    use super::*;

    fn test_file(text: &str) -> Vec<Finding> {
        check(&Repository::sketch(&[("cli/tests/kill.rs", text)]))
    }

    #[test]
    fn a_test_that_is_left_out_is_found() {
        for line in [
            "#[ignore]",
            "    #[ignore = \"slow\"]",
            "#[cfg_attr(unix, ignore)]",
            "/// ```ignore",
            "//! ```ignore,foo",
        ] {
            expect_broken(&test_file(line), &["cli/tests/kill.rs:1: a test that is left out"]);
        }
        expect_broken(&test_file("// #[ignore] is not used\nlet ignored = 1;"), &[]);
    }

    #[test]
    fn sleeping_in_a_test_is_found() {
        let sleep = format!("std::{SLEEP}(pause);\n");
        expect_broken(&test_file(&sleep), &["cli/tests/kill.rs:1: `thread::"]);
        expect_broken(&test_file(&format!("use std::{SLEEP};\n")), &["kill.rs:1"]);
        expect_broken(&test_file(&format!("{SLEEP}(pause); // polls:\n")), &["kill.rs:1"]);
        let in_module = format!("#[cfg(test)]\nmod tests {{\n    {SLEEP}(pause);\n}}\n");
        let repository = Repository::sketch(&[("core/src/a.rs", &in_module)]);
        expect_broken(&check(&repository), &["core/src/a.rs:3"]);
    }

    #[test]
    fn polling_with_a_reason_and_sleeping_outside_tests_is_fine() {
        expect_broken(&test_file(&format!("{SLEEP}(p); // polls: the file's length\n")), &[]);
        expect_broken(&test_file(&format!("// polls: the file's length\n{SLEEP}(p);\n")), &[]);
        let repository = Repository::sketch(&[("cli/src/main.rs", &format!("{SLEEP}(p);\n"))]);
        expect_broken(&check(&repository), &[]);
    }
}
