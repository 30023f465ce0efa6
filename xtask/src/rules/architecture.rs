//! ARCHITECTURE.md names paths in backticks, and each of them exists.
//!
//! A path that starts with a folder of the top level is taken from the top. A bare file name, as a code map
//! uses under the heading of its crate, must be the end of some path.

use super::Finding;
use super::members;
use super::repository::Repository;

const PAGE: &str = "ARCHITECTURE.md";

/// Folders beside the crates that a path may start with.
const OTHER_FOLDERS: &[&str] = &[".cargo", ".ci", "docs", "examples", "fuzz"];

/// Endings that make a word a file name.
const ENDINGS: &[&str] = &[".rs", ".md", ".yaml", ".toml"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let Some(page) = repository.text(PAGE) else {
        return vec![Finding::broken(format!("{PAGE} is missing"))];
    };
    let mut findings = Vec::new();
    for (index, line) in page.lines().enumerate() {
        for word in line.split('`').skip(1).step_by(2) {
            if !exists(repository, word) {
                let place = index + 1;
                findings.push(Finding::broken(format!("{PAGE}:{place}: `{word}` does not exist")));
            }
        }
    }
    findings
}

/// False only for a word that is a path and leads nowhere.
fn exists(repository: &Repository, word: &str) -> bool {
    if word.contains(char::is_whitespace) || word.contains("::") {
        return true;
    }
    let is_file_name = ENDINGS.iter().any(|ending| word.ends_with(ending));
    let first = word.split('/').next().unwrap_or(word);
    let starts_at_top = word.contains('/')
        && (OTHER_FOLDERS.contains(&first) || members::folders().any(|folder| folder == first));
    if starts_at_top {
        // Of a pattern such as `core/src/*.rs` the folder must exist.
        let fixed = word.split(['*', '{', '<']).next().unwrap_or(word);
        let fixed = match fixed.rsplit_once('/') {
            Some((folder, _)) if fixed.len() < word.len() => folder,
            _ => fixed,
        };
        return repository.has(fixed);
    }
    if is_file_name && !word.contains(['*', '{', '<']) {
        let tail = format!("/{word}");
        return repository.has(word) || repository.files().any(|(path, _)| path.ends_with(&tail));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::expect_broken;
    use super::*;

    fn page(text: &str) -> Vec<Finding> {
        check(&Repository::sketch(&[
            (PAGE, text),
            ("README.md", ""),
            ("core/src/batch.rs", ""),
            ("file-adapter/src/input/lines.rs", ""),
        ]))
    }

    #[test]
    fn paths_that_exist_and_words_that_are_no_paths_are_fine() {
        let text = "`core/src/batch.rs` `core/src/` `core/src/*.rs` `batch.rs` `input/lines.rs`\n\
             `README.md` `cargo xtask ci` `core::Batch` `seek`/`replay` `read/write` `SIGTERM`";
        expect_broken(&page(text), &[]);
    }

    #[test]
    fn paths_that_do_not_exist_are_named_with_their_line() {
        let text =
            "one\n`core/src/gone.rs` and `gone.rs`\n`core/gone/` `fuzz/gone/*.rs` `docs/gone.md`";
        let expected = [
            ":2: `core/src/gone.rs`",
            ":2: `gone.rs`",
            ":3: `core/gone/`",
            ":3: `fuzz/gone/*.rs`",
            ":3: `docs/gone.md`",
        ];
        expect_broken(&page(text), &expected);
    }

    #[test]
    fn a_missing_page_does_not_pass() {
        expect_broken(&check(&Repository::sketch(&[])), &["ARCHITECTURE.md is missing"]);
    }
}
