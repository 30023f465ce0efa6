//! `cargo xtask rules`: the house rules that a program can check.
//!
//! Each rule is a pure function over the dependency graph or the texts of the repository, and has a test
//! that shows it failing. Reading them in and printing what was found is all that happens here.

mod architecture;
mod checks;
mod core_tree;
mod graph;
mod image;
mod length;
mod machine;
mod members;
mod purity;
mod repository;
mod source;
mod testing;
mod top_level;

use anyhow::{Result, bail};

use graph::Graph;
use repository::Repository;

/// One thing a rule found, told so that the reader knows what to do.
#[derive(Debug)]
struct Finding {
    weight: Weight,
    message: String,
}

#[derive(Debug, PartialEq)]
enum Weight {
    /// The rule is broken; CI fails.
    Broken,
    /// Worth a look; CI passes.
    Notice,
}

impl Finding {
    fn broken(message: impl Into<String>) -> Self {
        Finding { weight: Weight::Broken, message: message.into() }
    }

    fn notice(message: impl Into<String>) -> Self {
        Finding { weight: Weight::Notice, message: message.into() }
    }
}

pub(crate) fn run() -> Result<()> {
    let graph = Graph::read()?;
    let repository = Repository::read()?;
    let rules = [
        ("the core's dependencies are few and need no C compiler", core_tree::check(&graph)),
        ("crates see only the crates they may", members::check_layers(&graph)),
        (
            "manifests take from the workspace what is the same for all",
            members::check_manifests(&repository),
        ),
        ("the top folder holds what people expect", top_level::check(&repository)),
        ("ARCHITECTURE.md names paths that exist", architecture::check(&repository)),
        ("each rule of the protocols has a check that exists", checks::check(&repository)),
        ("pure code asks nobody", purity::check(&repository)),
        ("files are short", length::check(&repository)),
        ("the image is built with what CI installs", image::check(&repository)),
        ("nothing is tied to one machine", machine::check(&repository)),
        ("tests neither sleep nor are left out", testing::check(&repository)),
    ];

    let mut broken = 0;
    for (rule, findings) in rules {
        let broken_here = count_broken(&findings);
        broken += broken_here;
        println!("{} {rule}", if broken_here == 0 { "ok    " } else { "BROKEN" });
        for finding in findings {
            let label = match finding.weight {
                Weight::Broken => "broken",
                Weight::Notice => "notice",
            };
            println!("         {label}: {}", finding.message);
        }
    }
    if broken > 0 {
        bail!("house rules broken in {broken} places (the rules are in xtask/src/rules)");
    }
    Ok(())
}

fn count_broken(findings: &[Finding]) -> usize {
    findings.iter().filter(|finding| finding.weight == Weight::Broken).count()
}

/// For the tests of the rules: how many places are broken and what is said about them.
#[cfg(test)]
#[track_caller]
fn expect_broken(findings: &[Finding], expected: &[&str]) {
    let messages: Vec<&str> = findings
        .iter()
        .filter(|finding| finding.weight == Weight::Broken)
        .map(|finding| finding.message.as_str())
        .collect();
    assert_eq!(messages.len(), expected.len(), "{messages:#?}");
    for (message, part) in messages.iter().zip(expected) {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notice_does_not_fail() {
        assert_eq!(count_broken(&[Finding::notice("long"), Finding::notice("long")]), 0);
        assert_eq!(count_broken(&[Finding::notice("long"), Finding::broken("bad")]), 1);
    }
}
