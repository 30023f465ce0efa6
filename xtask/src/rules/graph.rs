//! The dependency graph of the workspace, as `cargo metadata` resolves it.
//!
//! Holds only what the rules ask for. Features are unified over the whole workspace there, so a tree can be
//! larger than the crate alone would pull in, never smaller.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::cargo::{cargo, output};

#[derive(Debug, Deserialize)]
pub(super) struct Graph {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    workspace_root: String,
    resolve: Resolve,
}

#[derive(Debug, Deserialize)]
pub(super) struct Package {
    id: String,
    pub(super) name: String,
    /// The native library that the package says it links.
    pub(super) links: Option<String>,
    manifest_path: String,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Debug, Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Debug, Deserialize)]
struct EdgeKind {
    /// `None` is a normal dependency; otherwise `build` or `dev`.
    kind: Option<String>,
}

impl Edge {
    /// Whether someone who depends on the package gets this dependency too.
    fn is_inherited(&self) -> bool {
        let dev = |kind: &EdgeKind| kind.kind.as_deref() == Some("dev");
        !self.dep_kinds.iter().all(dev)
    }
}

impl Graph {
    pub(super) fn read() -> Result<Self> {
        let json = output(cargo(&["metadata", "--format-version", "1", "--locked"])?)?;
        serde_json::from_slice(&json).context("`cargo metadata` printed something unexpected")
    }

    /// The workspace's own packages, each with its folder relative to the top.
    pub(super) fn members(&self) -> impl Iterator<Item = (&Package, &str)> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
            .map(|package| (package, self.folder(package)))
    }

    pub(super) fn member(&self, name: &str) -> Option<&Package> {
        self.members().map(|(package, _)| package).find(|package| package.name == name)
    }

    /// Direct dependencies of every kind.
    pub(super) fn direct(&self, package: &Package) -> impl Iterator<Item = &Package> {
        let edges = self.edges(&package.id);
        edges.iter().filter_map(|edge| self.package(&edge.pkg))
    }

    /// Everything that depending on `root` pulls in, at run time and at build time, without `root`. Each
    /// package comes with a shortest way to it, from `root` on.
    pub(super) fn inherited<'a>(&'a self, root: &'a Package) -> Vec<(&'a Package, Vec<&'a str>)> {
        let mut ways = BTreeMap::from([(root.id.as_str(), vec![root.name.as_str()])]);
        let mut found = Vec::new();
        let mut queue = VecDeque::from([root]);
        while let Some(package) = queue.pop_front() {
            for edge in self.edges(&package.id).iter().filter(|edge| edge.is_inherited()) {
                let Some(next) = self.package(&edge.pkg) else { continue };
                if ways.contains_key(next.id.as_str()) {
                    continue;
                }
                let mut way = ways[package.id.as_str()].clone();
                way.push(&next.name);
                found.push((next, way.clone()));
                ways.insert(&next.id, way);
                queue.push_back(next);
            }
        }
        found
    }

    fn package(&self, id: &str) -> Option<&Package> {
        self.packages.iter().find(|package| package.id == id)
    }

    fn edges(&self, id: &str) -> &[Edge] {
        let node = self.resolve.nodes.iter().find(|node| node.id == id);
        node.map_or(&[], |node| &node.deps)
    }

    fn folder<'a>(&self, package: &'a Package) -> &'a str {
        let manifest = package.manifest_path.as_str();
        let relative = manifest.strip_prefix(&self.workspace_root).unwrap_or(manifest);
        relative.trim_start_matches('/').trim_end_matches("Cargo.toml").trim_end_matches('/')
    }
}

#[cfg(test)]
pub(super) mod sketch {
    use super::*;

    /// A graph from lines like `lockgate-core > bytes` or `bytes > cc (build)`. A name with a folder,
    /// `core/lockgate-core`, is a member of the workspace, everything else comes from outside.
    pub(in crate::rules) fn graph(lines: &[&str]) -> Graph {
        let mut graph = Graph {
            packages: Vec::new(),
            workspace_members: Vec::new(),
            workspace_root: "/top".to_owned(),
            resolve: Resolve { nodes: Vec::new() },
        };
        for line in lines {
            let (from, to) = match line.split_once(" > ") {
                Some((from, to)) => (from, Some(to)),
                None => (*line, None),
            };
            let from = add(&mut graph, from);
            let Some(to) = to else { continue };
            let (to, kind) = match to.split_once(" (") {
                Some((to, kind)) => (to, Some(kind.trim_end_matches(')').to_owned())),
                None => (to, None),
            };
            let pkg = add(&mut graph, to);
            let dep_kinds = vec![EdgeKind { kind }];
            let node = graph.resolve.nodes.iter_mut().find(|node| node.id == from);
            node.unwrap().deps.push(Edge { pkg, dep_kinds });
        }
        graph
    }

    /// Makes every package called `name` link a native library.
    pub(in crate::rules) fn link(graph: &mut Graph, name: &str, library: &str) {
        for package in graph.packages.iter_mut().filter(|package| package.name == name) {
            package.links = Some(library.to_owned());
        }
    }

    fn add(graph: &mut Graph, written: &str) -> String {
        let (folder, name) = written.split_once('/').unwrap_or(("", written));
        if let Some(known) = graph.packages.iter().find(|package| package.name == name) {
            return known.id.clone();
        }
        let id = format!("id:{name}");
        if !folder.is_empty() {
            graph.workspace_members.push(id.clone());
        }
        graph.packages.push(Package {
            id: id.clone(),
            name: name.to_owned(),
            links: None,
            manifest_path: format!("/top/{folder}/Cargo.toml"),
        });
        graph.resolve.nodes.push(Node { id: id.clone(), deps: Vec::new() });
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inherited_follows_normal_and_build_edges_and_tells_the_way() {
        let graph = sketch::graph(&[
            "core/lockgate-core > a",
            "a > b (build)",
            "b > c",
            "a > only-tests (dev)",
            "c > a",
        ]);
        let root = graph.member("lockgate-core").unwrap();
        let found: Vec<String> =
            graph.inherited(root).into_iter().map(|(_, way)| way.join(" ")).collect();
        let expected = ["lockgate-core a", "lockgate-core a b", "lockgate-core a b c"];
        assert_eq!(found, expected);
    }

    #[test]
    fn members_know_their_folder() {
        let graph = sketch::graph(&["core/lockgate-core > bytes"]);
        let folders: Vec<&str> = graph.members().map(|(_, folder)| folder).collect();
        assert_eq!(folders, ["core"]);
    }

    #[test]
    fn reads_what_cargo_metadata_prints() {
        let json = r#"{
            "packages": [{"id": "x", "name": "n", "links": null, "manifest_path": "/t/n/Cargo.toml", "more": 1}],
            "workspace_members": ["x"], "workspace_root": "/t",
            "resolve": {"nodes": [{"id": "x", "deps": [
                {"pkg": "x", "dep_kinds": [{"kind": null, "target": null}]},
                {"pkg": "x", "dep_kinds": [{"kind": "dev", "target": "cfg(unix)"}]}]}]}
        }"#;
        let graph: Graph = serde_json::from_str(json).unwrap();
        let edges = graph.edges("x");
        assert!(edges[0].is_inherited());
        assert!(!edges[1].is_inherited());
    }
}
