//! The top folder holds the crates and what people expect to find beside them, nothing else.

use std::collections::BTreeSet;

use super::Finding;
use super::members;
use super::repository::Repository;

/// What must be there.
const REQUIRED: &[&str] = &[
    ".ci/run",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
];

/// What may be there beside the crates.
const ALLOWED: &[&str] = &[
    ".cargo",
    ".ci",
    ".config",
    ".editorconfig",
    ".gitattributes",
    ".github",
    ".gitignore",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "clippy.toml",
    "docs",
    "examples",
    "fuzz",
    "rust-toolchain.toml",
    "rustfmt.toml",
];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let present: BTreeSet<&str> =
        repository.files().filter_map(|(path, _)| path.split('/').next()).collect();
    let unexpected = present.into_iter().filter(|entry| !is_expected(entry)).map(|entry| {
        Finding::broken(format!(
            "`{entry}` is not expected in the top folder: move it, or add it to the list in {}",
            file!()
        ))
    });
    let missing = REQUIRED
        .iter()
        .filter(|path| !repository.has(path))
        .map(|path| Finding::broken(format!("`{path}` is missing")));
    unexpected.chain(missing).collect()
}

fn is_expected(entry: &str) -> bool {
    REQUIRED.contains(&entry)
        || ALLOWED.contains(&entry)
        || members::folders().any(|folder| folder == entry)
}

#[cfg(test)]
mod tests {
    use super::super::expect_broken;
    use super::*;

    fn with(more: &[&'static str]) -> Repository {
        let paths = REQUIRED.iter().chain(more);
        let files: Vec<(&str, &str)> = paths.map(|path| (*path, "")).collect();
        Repository::sketch(&files)
    }

    #[test]
    fn the_expected_is_fine() {
        expect_broken(&check(&with(&["core/src/lib.rs", "docs/a.md"])), &[]);
    }

    #[test]
    fn an_unexpected_entry_is_named() {
        let repository = with(&["scripts/run.sh", "notes.txt"]);
        expect_broken(&check(&repository), &["`notes.txt`", "`scripts`"]);
    }

    #[test]
    fn a_missing_entry_is_named() {
        let repository = Repository::sketch(&[("Cargo.toml", "")]);
        assert_eq!(check(&repository).len(), REQUIRED.len() - 1);
    }
}
