//! Rust source as the rules see it: line by line, and whether a line is code and belongs to tests.
//!
//! No parser: it relies on the layout that rustfmt gives, which is checked before.

use std::collections::BTreeSet;

use super::repository::Repository;

/// A line of a Rust file.
pub(super) struct Line<'a> {
    /// Counted from 1.
    pub(super) number: usize,
    pub(super) text: &'a str,
    pub(super) is_test: bool,
}

impl<'a> Line<'a> {
    /// The line without its comment, empty when it is blank or nothing but comment.
    pub(super) fn code(&self) -> &'a str {
        let text = self.text.trim();
        if text.starts_with("//") {
            return "";
        }
        text.split(" // ").next().unwrap_or(text)
    }
}

/// The lines of every Rust file, by path.
pub(super) fn rust_lines(repository: &Repository) -> impl Iterator<Item = (&str, Vec<Line<'_>>)> {
    let test_modules = test_modules(repository);
    repository.rust_files().map(move |(path, text)| {
        let is_test_file = is_in_tests_folder(path)
            || test_modules.iter().any(|module| {
                path == format!("{module}.rs") || path.starts_with(&format!("{module}/"))
            });
        (path, lines(text, is_test_file))
    })
}

/// Integration tests: `tests/` beside `src/`.
fn is_in_tests_folder(path: &str) -> bool {
    path.split('/').nth(1) == Some("tests")
}

/// The modules that are declared as `#[cfg(test)] mod name;`, as paths without `.rs`.
fn test_modules(repository: &Repository) -> BTreeSet<String> {
    let mut modules = BTreeSet::new();
    for (path, text) in repository.rust_files() {
        let mut follows_cfg_test = false;
        for line in text.lines().map(str::trim) {
            let module = module_name(line).filter(|_| follows_cfg_test && line.ends_with(';'));
            if let Some(module) = module {
                modules.insert(format!("{}/{module}", module_folder(path)));
            }
            follows_cfg_test =
                line == "#[cfg(test)]" || (follows_cfg_test && line.starts_with("#["));
        }
    }
    modules
}

/// The folder in which the modules of a file are looked for.
fn module_folder(path: &str) -> &str {
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    match path.rsplit('/').next() {
        Some("lib.rs" | "main.rs" | "mod.rs") => folder,
        _ => path.trim_end_matches(".rs"),
    }
}

/// The name in `mod name;` or `pub(crate) mod name {`.
fn module_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("mod ")?;
    let is_visibility = before.is_empty() || (before.starts_with("pub") && before.ends_with(' '));
    is_visibility.then(|| after.trim_end_matches([';', '{', ' ']))
}

/// The lines of one file. In a file that is not all tests, the modules under `#[cfg(test)]` are.
fn lines(text: &str, is_test_file: bool) -> Vec<Line<'_>> {
    let mut lines = Vec::new();
    let mut follows_cfg_test = false;
    // The line that ends the test module we are in.
    let mut end_of_module: Option<String> = None;
    for (index, text) in text.lines().enumerate() {
        let trimmed = text.trim();
        let opens_module =
            follows_cfg_test && module_name(trimmed).is_some() && trimmed.ends_with('{');
        if opens_module && end_of_module.is_none() {
            let indentation = &text[..text.len() - text.trim_start().len()];
            end_of_module = Some(format!("{indentation}}}"));
        }
        lines.push(Line {
            number: index + 1,
            text,
            is_test: is_test_file || end_of_module.is_some(),
        });
        if end_of_module.as_deref() == Some(text) {
            end_of_module = None;
        }
        follows_cfg_test =
            trimmed == "#[cfg(test)]" || (follows_cfg_test && trimmed.starts_with("#["));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test_lines(files: &[(&str, &str)], path: &str) -> Vec<usize> {
        let repository = Repository::sketch(files);
        let (_, lines) = rust_lines(&repository).find(|(found, _)| *found == path).unwrap();
        let is_test = lines.iter().filter(|line| line.is_test);
        is_test.map(|line| line.number).collect()
    }

    #[test]
    fn a_test_module_ends_with_its_own_brace() {
        let text = "fn a() {}\n#[cfg(test)]\n#[allow(x)]\nmod tests {\n    fn b() {\n    }\n}\nfn c() {}\n";
        assert_eq!(test_lines(&[("core/src/a.rs", text)], "core/src/a.rs"), [4, 5, 6, 7]);
        let other = "#[cfg(test)]\nfn only_one() {}\nmod not_tests {\n}\n";
        assert_eq!(test_lines(&[("core/src/a.rs", other)], "core/src/a.rs"), [0; 0]);
    }

    #[test]
    fn files_of_tests_are_all_tests() {
        let files = [
            ("core/src/lib.rs", "mod batch;\n#[cfg(test)]\nmod simulator;\n"),
            ("core/src/batch.rs", "#[cfg(test)]\nmod tests;\n"),
            ("core/src/batch/tests.rs", "one\n"),
            ("core/src/simulator.rs", "one\n"),
            ("core/src/simulator/faults.rs", "one\n"),
            ("core/src/simulator_not.rs", "one\n"),
            ("cli/tests/kill.rs", "one\n"),
        ];
        let all = [1];
        let none = [0; 0];
        assert_eq!(test_lines(&files, "core/src/batch/tests.rs"), all);
        assert_eq!(test_lines(&files, "core/src/simulator.rs"), all);
        assert_eq!(test_lines(&files, "core/src/simulator/faults.rs"), all);
        assert_eq!(test_lines(&files, "cli/tests/kill.rs"), all);
        assert_eq!(test_lines(&files, "core/src/simulator_not.rs"), none);
        assert_eq!(test_lines(&files, "core/src/lib.rs"), none);
    }

    #[test]
    fn code_is_what_is_left_without_comments() {
        let check = |text: &str, expected: &str| {
            let line = Line { number: 1, text, is_test: false };
            assert_eq!(line.code(), expected);
        };
        check("    let a = 1; // one", "let a = 1;");
        check("    // nothing", "");
        check("    //! nothing", "");
        check("", "");
        check("let url = \"http://localhost\";", "let url = \"http://localhost\";");
    }
}
