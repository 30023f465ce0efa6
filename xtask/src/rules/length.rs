//! A file holds one idea: most have less than 400 lines of code, and one of more than 800 says why.
//!
//! Counted are lines of code outside tests; blank lines and comments are free.

use super::Finding;
use super::repository::Repository;
use super::source::{Line, rust_lines};

/// From here on a file is mentioned.
const NOTICED: usize = 400;

/// From here on it must have a reason.
const LIMIT: usize = 800;

/// The reason stands in a line that starts like this.
const REASON: &str = "// Long because: ";

/// It stands within this many lines from the top.
const REASON_WITHIN: usize = 40;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    rust_lines(repository).filter_map(|(path, lines)| check_file(path, &lines)).collect()
}

fn check_file(path: &str, lines: &[Line<'_>]) -> Option<Finding> {
    let is_counted = |line: &&Line<'_>| !line.is_test && !line.code().is_empty();
    let length = lines.iter().filter(is_counted).count();
    let has_reason = lines
        .iter()
        .take(REASON_WITHIN)
        .filter_map(|line| line.text.trim().strip_prefix(REASON))
        .any(|reason| !reason.trim().is_empty());
    if has_reason || length <= NOTICED {
        None
    } else if length <= LIMIT {
        Some(Finding::notice(format!("{path} has {length} lines of code; is it one idea?")))
    } else {
        Some(Finding::broken(format!(
            "{path} has {length} lines of code, over {LIMIT}: split it, or say why near its top with \
             `{REASON}...`"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Weight, expect_broken};
    use super::*;

    fn file(text: &str) -> Vec<Finding> {
        check(&Repository::sketch(&[("core/src/a.rs", text)]))
    }

    fn code(lines: usize) -> String {
        "let a = 1;\n".repeat(lines)
    }

    #[test]
    fn over_the_limit_is_refused_unless_it_says_why() {
        expect_broken(&file(&code(LIMIT + 1)), &["core/src/a.rs has 801 lines"]);
        expect_broken(&file(&format!("// Long because: \n{}", code(LIMIT + 1))), &["801"]);
        let late = format!("{}// Long because: one table\n", code(LIMIT + 1));
        expect_broken(&file(&late), &["801"]);
        let said = format!("//! A table.\n// Long because: one table\n{}", code(LIMIT + 1));
        assert!(file(&said).is_empty());
    }

    #[test]
    fn between_the_limits_is_noticed() {
        for lines in [NOTICED + 1, LIMIT] {
            assert_eq!(file(&code(lines))[0].weight, Weight::Notice);
        }
        assert!(file(&code(NOTICED)).is_empty());
    }

    #[test]
    fn comments_blank_lines_and_tests_are_free() {
        let text = format!(
            "{}{}\n#[cfg(test)]\nmod tests {{\n{}}}\n",
            "// comment\n\n".repeat(LIMIT),
            code(NOTICED - 1),
            code(LIMIT)
        );
        assert!(file(&text).is_empty());
    }
}
