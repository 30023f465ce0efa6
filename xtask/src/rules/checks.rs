//! The table on the core's front page names, for each rule of the protocols, what checks it; all of that is
//! there.

use super::Finding;
use super::repository::Repository;

const PAGE: &str = "core/README.md";
const HEADING: &str = "# Which check enforces which rule";

/// What a check may be: how the table calls the kind, where it must be, and how its name stands there.
struct Kind {
    name: &'static str,
    folders: &'static [&'static str],
    written: fn(&str) -> String,
}

const KINDS: &[Kind] = &[
    Kind {
        name: "protocol",
        folders: &["core/src/protocol.rs"],
        written: |name| format!("    {name} {{\n"),
    },
    Kind {
        name: "kit",
        folders: &["core/conformance/src/"],
        written: |name| format!("\"{name}\""),
    },
    Kind { name: "model", folders: &["xtask/model/src/"], written: |name| format!("\"{name}\"") },
    Kind {
        name: "test",
        folders: &["core/", "controller/"],
        written: |name| format!("    #[test]\n    fn {name}()"),
    },
];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let Some((_, table)) = repository.text(PAGE).and_then(|page| page.split_once(HEADING)) else {
        return vec![Finding::broken(format!("{PAGE} has no heading `{HEADING}`"))];
    };
    let rows = table.lines().filter(|line| line.starts_with("| ") && !line.ends_with("| checks |"));
    let mut findings = Vec::new();
    let mut count = 0;
    for row in rows {
        count += 1;
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [rule, checks] = cells[..] else {
            findings.push(Finding::broken(format!("{PAGE}: a row has two cells: {row}")));
            continue;
        };
        for check in checks.split(';').map(str::trim) {
            if !exists(repository, check) {
                findings.push(Finding::broken(format!(
                    "{PAGE}: the rule \"{rule}\" has the check {check}, which does not exist"
                )));
            }
        }
    }
    if count == 0 {
        findings.push(Finding::broken(format!("{PAGE}: no rule stands under `{HEADING}`")));
    }
    findings
}

fn exists(repository: &Repository, check: &str) -> bool {
    let Some((kind, name)) = check.split_once(' ') else { return false };
    let Some(kind) = KINDS.iter().find(|known| known.name == kind) else { return false };
    let Some(name) = name.strip_prefix('`').and_then(|name| name.strip_suffix('`')) else {
        return false;
    };
    let written = (kind.written)(name);
    // A test stands in a module of its own file, or at the top of one.
    let at_top = written.replace("\n    ", "\n").trim_start().to_owned();
    repository.rust_files().any(|(path, text)| {
        kind.folders.iter().any(|folder| path.starts_with(folder))
            && (text.contains(&written) || (kind.name == "test" && text.contains(&at_top)))
    })
}

#[cfg(test)]
mod tests {
    use super::super::expect_broken;
    use super::*;

    fn rows(rows: &str) -> Vec<Finding> {
        let page = format!("{HEADING}\n\n| `Seed` | checks |\n|---|---|\n{rows}");
        check(&Repository::sketch(&[
            (PAGE, &page),
            ("core/src/protocol.rs", "enum E {\n    Died {\n    },\n}\n"),
            ("core/conformance/src/rule.rs", "Lost = \"nothing-lost\","),
            ("xtask/model/src/a.rs", "\"it holds\": Breach::A"),
            ("core/src/b.rs", "mod tests {\n    #[test]\n    fn inside() {}\n}\n"),
            ("controller/tests/c.rs", "#[test]\nfn at_top() {}\n"),
        ]))
    }

    #[test]
    fn checks_of_every_kind_are_found() {
        let all = "| a | protocol `Died`; kit `nothing-lost`; model `it holds` |\n\
                   | b | test `inside`; test `at_top` |\n";
        expect_broken(&rows(all), &[]);
    }

    #[test]
    fn a_check_that_is_gone_is_found() {
        expect_broken(&rows("| a | kit `nothing-doubled` |\n"), &["kit `nothing-doubled`"]);
        expect_broken(&rows("| a | protocol `Count` |\n"), &["protocol `Count`"]);
        expect_broken(&rows("| a | model `it` |\n"), &["model `it`"]);
        expect_broken(&rows("| a | test `outside` |\n"), &["test `outside`"]);
    }

    #[test]
    fn a_rule_without_a_check_is_found() {
        expect_broken(&rows("| a |  |\n"), &["\"a\""]);
        expect_broken(&rows("| a | trust |\n"), &["\"a\" has the check trust"]);
        expect_broken(&rows(""), &["no rule stands"]);
        expect_broken(&check(&Repository::sketch(&[])), &["has no heading"]);
    }
}
