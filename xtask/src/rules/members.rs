//! Which crates there are, which of them see which, and what their manifests take from the workspace.

use super::Finding;
use super::graph::Graph;
use super::repository::Repository;

struct Member {
    folder: &'static str,
    package: &'static str,
    /// The workspace crates it may depend on, for any purpose, tests included.
    may_see: &'static [&'static str],
}

/// Adapters never see each other or the controller; the command line is the only place that names them all.
#[rustfmt::skip]
const MEMBERS: &[Member] = &[
    Member { folder: "core",             package: "lockgate-core",          may_see: &[] },
    Member { folder: "core/conformance", package: "lockgate-conformance",   may_see: &["lockgate-core"] },
    Member { folder: "kafka-adapter",    package: "lockgate-kafka-adapter", may_see: CORE_AND_KIT },
    Member { folder: "file-adapter",     package: "lockgate-file-adapter",  may_see: CORE_AND_KIT },
    Member { folder: "controller",       package: "lockgate-controller",    may_see: &["lockgate-core"] },
    Member { folder: "cli",              package: "lockgate",               may_see: &[
        "lockgate-core", "lockgate-kafka-adapter", "lockgate-file-adapter", "lockgate-controller",
    ] },
    Member { folder: "xtask",            package: "xtask",                  may_see: &[] },
    Member { folder: "xtask/model",      package: "lockgate-model",         may_see: &[
        "lockgate-core", "lockgate-controller",
    ] },
    Member { folder: "xtask/bench",      package: "lockgate-bench",         may_see: &[
        "lockgate-core", "lockgate-controller", "lockgate-file-adapter",
    ] },
    Member { folder: "xtask/sim",        package: "lockgate-sim",           may_see: &[
        "lockgate-core", "lockgate-controller",
    ] },
    Member { folder: "xtask/torture",    package: "lockgate-torture",       may_see: &[] },
];

const CORE_AND_KIT: &[&str] = &["lockgate-core", "lockgate-conformance"];

/// The folders that may hold a crate of the workspace.
pub(super) fn folders() -> impl Iterator<Item = &'static str> {
    MEMBERS.iter().map(|member| member.folder)
}

pub(super) fn check_layers(graph: &Graph) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (package, folder) in graph.members() {
        let name = package.name.as_str();
        let known = MEMBERS.iter().find(|member| member.folder == folder && member.package == name);
        let Some(member) = known else {
            findings.push(Finding::broken(format!(
                "package `{name}` in `{folder}` is not in the table of crates in {}",
                file!()
            )));
            continue;
        };
        for other in graph.direct(package) {
            let other = other.name.as_str();
            let is_ours = graph.member(other).is_some();
            if is_ours && !member.may_see.contains(&other) {
                findings.push(Finding::broken(format!(
                    "`{name}` depends on `{other}`; it may see {} (table in {})",
                    listed(member.may_see),
                    file!()
                )));
            }
        }
    }
    findings
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() {
        "no crate of the workspace".to_owned()
    } else {
        format!("only {}", names.join(", "))
    }
}

/// What every manifest takes from `[workspace.package]`.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license", "publish"];

pub(super) fn check_manifests(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for folder in folders() {
        let path = format!("{folder}/Cargo.toml");
        let Some(text) = repository.text(&path) else { continue };
        let entries = entries(text);
        for key in INHERITED {
            if !entries.contains(&("package", &format!("{key}.workspace"), "true")) {
                findings.push(Finding::broken(format!(
                    "{path}: `{key}.workspace = true` is missing from [package]"
                )));
            }
        }
        if !entries.contains(&("lints", "workspace", "true")) {
            findings.push(Finding::broken(format!(
                "{path}: `workspace = true` is missing from [lints]"
            )));
        }
        for (section, key, value) in entries {
            if states_own_version(section, key, value) {
                findings.push(Finding::broken(format!(
                    "{path}: [{section}] `{key}` states its own source or version; put it into \
                     [workspace.dependencies] and write `NAME.workspace = true`"
                )));
            }
        }
    }
    findings
}

/// Whether the entry is a dependency that does not come from `[workspace.dependencies]`, or a part of one.
fn states_own_version(section: &str, key: &str, value: &str) -> bool {
    if section.ends_with("dependencies") {
        !key.ends_with(".workspace") && !value.contains("workspace = true")
    } else {
        section.contains("dependencies.") && ["git", "path", "version"].contains(&key)
    }
}

/// The one-line `key = value` entries of a manifest, each with its section.
fn entries(text: &str) -> Vec<(&str, &str, &str)> {
    let mut section = "";
    let mut entries = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            section = name.trim_start_matches('[');
        } else if let Some((key, value)) = line.split_once('=')
            && !line.starts_with('#')
        {
            entries.push((section, key.trim(), value.trim()));
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::super::expect_broken;
    use super::super::graph::sketch;
    use super::*;

    const GOOD: &str = "[package]\nname = \"lockgate-core\"\nversion.workspace = true\n\
         edition.workspace = true\nrust-version.workspace = true\nlicense.workspace = true\n\
         publish.workspace = true\n\n[lints]\nworkspace = true\n\n[dependencies]\nbytes.workspace = true\n\
         tokio = { workspace = true, features = [\"fs\"] }\n";

    fn manifest(text: &str) -> Vec<Finding> {
        check_manifests(&Repository::sketch(&[("core/Cargo.toml", text)]))
    }

    #[test]
    fn the_layers_of_the_design_are_fine() {
        let graph = sketch::graph(&[
            "controller/lockgate-controller > core/lockgate-core",
            "file-adapter/lockgate-file-adapter > core/lockgate-core",
            "cli/lockgate > controller/lockgate-controller",
            "cli/lockgate > file-adapter/lockgate-file-adapter",
            "xtask/xtask > clap",
        ]);
        expect_broken(&check_layers(&graph), &[]);
    }

    #[test]
    fn an_adapter_that_sees_the_controller_is_refused_in_tests_too() {
        let graph = sketch::graph(&[
            "controller/lockgate-controller > core/lockgate-core",
            "file-adapter/lockgate-file-adapter > controller/lockgate-controller (dev)",
        ]);
        let expected = [
            "`lockgate-file-adapter` depends on `lockgate-controller`; it may see only lockgate-core, \
             lockgate-conformance",
        ];
        expect_broken(&check_layers(&graph), &expected);
    }

    #[test]
    fn a_crate_that_is_not_in_the_table_is_refused() {
        let graph = sketch::graph(&["util/lockgate-util", "core/lockgate-kernel"]);
        let expected = ["`lockgate-util` in `util`", "`lockgate-kernel` in `core`"];
        expect_broken(&check_layers(&graph), &expected);
    }

    #[test]
    fn a_manifest_that_inherits_is_fine() {
        expect_broken(&manifest(GOOD), &[]);
    }

    #[test]
    fn a_manifest_of_its_own_is_refused() {
        let own_edition = GOOD.replace("edition.workspace = true", "edition = \"2021\"");
        expect_broken(&manifest(&own_edition), &["`edition.workspace = true` is missing"]);
        let own_lints =
            GOOD.replace("[lints]\nworkspace = true", "[lints.rust]\nmissing_docs = \"allow\"");
        expect_broken(&manifest(&own_lints), &["missing from [lints]"]);
        let own_version = GOOD.replace("bytes.workspace = true", "bytes = \"1\"");
        expect_broken(&manifest(&own_version), &["[dependencies] `bytes` states its own"]);
        let for_unix = format!("{GOOD}[target.'cfg(unix)'.dependencies]\nlibc = \"0.2\"\n");
        expect_broken(&manifest(&for_unix), &["`libc` states its own"]);
        let own_section = format!("{GOOD}[dev-dependencies.insta]\nversion = \"1\"\n");
        expect_broken(&manifest(&own_section), &["[dev-dependencies.insta] `version`"]);
    }
}
