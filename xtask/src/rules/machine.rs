//! Nothing in the repository is tied to one machine or to one mirror of a package registry.

use super::Finding;
use super::repository::Repository;

/// Folders that exist on the machine of whoever wrote the line. Taken apart here so that this file itself
/// keeps the rule.
const FOLDERS: &[&str] = &[concat!("/", "work/"), concat!("/", "root/"), concat!("/", "farm/")];

/// Hosts that cargo finds by itself.
const REGISTRY_HOSTS: &[&str] = &[concat!("index.", "crates.io"), concat!("static.", "crates.io")];

/// A part of a host name that makes it a registry or a mirror.
const REGISTRY_LABELS: &[&str] =
    &["artifactory", "mirror", "mirrors", "nexus", "proxy", "registry"];

/// The only place that packages come from, as Cargo.lock writes it.
const LOCK_SOURCE: &str = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in repository.files() {
        for (index, line) in text.lines().enumerate() {
            let place = format!("{path}:{}", index + 1);
            for folder in FOLDERS.iter().filter(|folder| names_folder(line, folder)) {
                findings
                    .push(Finding::broken(format!("{place}: `{folder}` is a path of one machine")));
            }
            for host in hosts(line).filter(|host| is_registry(host)) {
                findings.push(Finding::broken(format!(
                    "{place}: `{host}` is a package registry or mirror"
                )));
            }
            if path == "Cargo.lock" && line.starts_with("source = ") && line != LOCK_SOURCE {
                findings.push(Finding::broken(format!("{place}: not from crates.io: {line}")));
            }
            let configures_registry =
                ["[source", "[registr"].iter().any(|table| line.starts_with(table));
            if path.starts_with(".cargo/") && configures_registry {
                findings.push(Finding::broken(format!(
                    "{place}: {line} belongs into your own home folder"
                )));
            }
        }
    }
    findings
}

/// Whether the line has the folder at the start of a path, not in the middle of one.
fn names_folder(line: &str, folder: &str) -> bool {
    line.match_indices(folder).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|before| !before.is_alphanumeric() && !"_-.~}*".contains(before))
    })
}

/// The hosts of the web addresses in a line.
fn hosts(line: &str) -> impl Iterator<Item = &str> {
    line.match_indices("://").filter_map(|(at, separator)| {
        let is_web = line[..at].ends_with("http") || line[..at].ends_with("https");
        let rest = &line[at + separator.len()..];
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '.' && c != '-');
        is_web.then(|| &rest[..end.unwrap_or(rest.len())])
    })
}

fn is_registry(host: &str) -> bool {
    REGISTRY_HOSTS.contains(&host) || host.split('.').any(|label| REGISTRY_LABELS.contains(&label))
}

#[cfg(test)]
mod tests {
    use super::super::expect_broken;
    use super::*;

    fn file(path: &str, text: &str) -> Vec<Finding> {
        check(&Repository::sketch(&[(path, text)]))
    }

    #[test]
    fn folders_of_one_machine_are_found() {
        for folder in FOLDERS {
            let text = format!("one\nlet path = \"{folder}main\";\n");
            expect_broken(
                &file("cli/src/main.rs", &text),
                &[&format!("cli/src/main.rs:2: `{folder}`")],
            );
        }
    }

    #[test]
    fn the_same_names_inside_a_path_are_fine() {
        for folder in FOLDERS {
            let text = format!("frame{folder} $HOME{folder} .{folder} ~{folder} target{folder}");
            expect_broken(&file("README.md", &text), &[]);
        }
    }

    #[test]
    fn hosts_of_registries_are_found() {
        for host in
            REGISTRY_HOSTS.iter().copied().chain(["registry.example.org", "go.proxy.example"])
        {
            let text = format!("see <https://{host}/path>, or http://localhost:8080/registry");
            expect_broken(&file("README.md", &text), &[&format!("`{host}`")]);
        }
        expect_broken(
            &file("README.md", "https://docs.rs/bytes and https://crates.io/crates/bytes"),
            &[],
        );
    }

    #[test]
    fn the_lock_file_names_only_crates_io() {
        expect_broken(&file("Cargo.lock", &format!("{LOCK_SOURCE}\n")), &[]);
        let other = "source = \"git+https://github.com/someone/fork#abc\"\n";
        expect_broken(&file("Cargo.lock", other), &["Cargo.lock:1: not from crates.io"]);
    }

    #[test]
    fn a_registry_is_not_configured_here() {
        let text = "[source.crates-io]\nreplace-with = \"local\"\n[registries.local]\n";
        expect_broken(
            &file(".cargo/config.toml", text),
            &["[source.crates-io]", "[registries.local]"],
        );
    }
}
