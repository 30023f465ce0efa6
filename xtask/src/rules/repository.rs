//! The texts of the repository: every file that is committed, or would be.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::cargo::{output, workspace_root};

pub(super) struct Repository {
    /// By path from the top, with `/`. What is not UTF-8 is replaced, which no rule minds.
    files: BTreeMap<String, String>,
}

impl Repository {
    pub(super) fn read() -> Result<Self> {
        let root = workspace_root()?;
        let mut command = Command::new("git");
        command
            .current_dir(&root)
            // A checkout may belong to another user than the one who runs CI; we only list names.
            .args(["-c", "safe.directory=*", "ls-files", "-z"])
            .args(["--cached", "--others", "--exclude-standard"]);
        let names = String::from_utf8(output(command)?).context("a file name is not UTF-8")?;

        let mut files = BTreeMap::new();
        for name in names.split_terminator('\0') {
            match fs::read(root.join(name)) {
                Ok(bytes) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    files.insert(name.to_owned(), text);
                }
                // Deleted, and not yet staged.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error).context(format!("cannot read {name}")),
            }
        }
        ensure!(!files.is_empty(), "git lists no files here");
        Ok(Repository { files })
    }

    #[cfg(test)]
    pub(super) fn sketch(files: &[(&str, &str)]) -> Self {
        let own = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        Repository { files: files.iter().map(own).collect() }
    }

    /// All files, by path, in order.
    pub(super) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files that hold Rust.
    pub(super) fn rust_files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    pub(super) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether the path is a file, or a folder with a file in it.
    pub(super) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let folder = format!("{path}/");
        self.files.contains_key(path) || self.files.keys().any(|file| file.starts_with(&folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_exists_when_a_file_is_in_it() {
        let repository = Repository::sketch(&[("core/src/lib.rs", "")]);
        for path in ["core", "core/", "core/src", "core/src/lib.rs"] {
            assert!(repository.has(path), "{path}");
        }
        for path in ["cor", "core/sr", "core/src/lib"] {
            assert!(!repository.has(path), "{path}");
        }
    }
}
