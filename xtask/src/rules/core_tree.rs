//! `lockgate-core` pulls in few crates, all listed here, and nothing that needs a C compiler.
//!
//! Someone who writes a source of their own depends on the core alone, and must not meet tokio, Kafka or
//! a C compiler there. The lists are meant to stay short: a crate is added with a reason, in review.

use super::Finding;
use super::graph::Graph;

const CORE: &str = "lockgate-core";

/// Linked into whoever uses the core.
const RUN_TIME: &[&str] = &[
    "bytes",       // the arena of a batch
    "itoa",        // of serde_json
    "libm",        // of num-traits, only where `parquet` is built along
    "memchr",      // of serde_json
    "num-traits",  // of rmp
    "rmp",         // of rmpv
    "rmpv",        // `data` and `replay` values
    "serde",       // positions
    "serde_bytes", // of rmpv
    "serde_core",  // of serde
    "serde_json",  // `metadata` and `seek` values
    "thiserror",   // error types
    "twox-hash",   // the hash of a step
    "zmij",        // of serde_json
];

/// Run by the compiler only, all of them plain Rust.
const BUILD_TIME: &[&str] = &[
    "autocfg", // of num-traits
    "proc-macro2",
    "quote",
    "serde_derive",
    "syn",
    "thiserror-impl",
    "unicode-ident",
];

/// Crates whose job is to compile or find native code.
const NATIVE_BUILDERS: &[&str] = &["bindgen", "cc", "cmake", "pkg-config", "vcpkg"];

pub(super) fn check(graph: &Graph) -> Vec<Finding> {
    let Some(core) = graph.member(CORE) else {
        return vec![Finding::broken(format!("the workspace has no package {CORE}"))];
    };
    let mut findings = Vec::new();
    for (package, way) in graph.inherited(core) {
        let name = package.name.as_str();
        let way = way.join(" > ");
        if NATIVE_BUILDERS.contains(&name) {
            findings.push(Finding::broken(format!(
                "{CORE} needs a C toolchain through `{name}` ({way})"
            )));
        } else if !RUN_TIME.contains(&name) && !BUILD_TIME.contains(&name) {
            findings.push(Finding::broken(format!(
                "{CORE} pulls in `{name}` ({way}), which is not on the list in {}: do without it, or add \
                 it there with its reason",
                file!()
            )));
        }
        if let Some(library) = &package.links {
            findings.push(Finding::broken(format!(
                "{CORE} links the native library `{library}` through `{name}` ({way})"
            )));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::expect_broken;
    use super::super::graph::sketch;
    use super::*;

    #[test]
    fn what_is_listed_is_fine_and_so_is_what_only_tests_use() {
        let graph = sketch::graph(&[
            "core/lockgate-core > bytes",
            "core/lockgate-core > thiserror",
            "thiserror > thiserror-impl",
            "thiserror-impl > syn",
            "core/lockgate-core > proptest (dev)",
        ]);
        expect_broken(&check(&graph), &[]);
    }

    #[test]
    fn a_crate_off_the_list_is_named_with_the_way_to_it() {
        let graph = sketch::graph(&["core/lockgate-core > bytes", "bytes > tokio"]);
        expect_broken(&check(&graph), &["`tokio` (lockgate-core > bytes > tokio)"]);
    }

    #[test]
    fn a_c_compiler_at_build_time_is_refused() {
        let graph = sketch::graph(&["core/lockgate-core > bytes", "bytes > cc (build)"]);
        expect_broken(&check(&graph), &["C toolchain through `cc`"]);
    }

    #[test]
    fn a_native_library_is_refused_even_from_a_listed_crate() {
        let mut graph = sketch::graph(&["core/lockgate-core > bytes"]);
        sketch::link(&mut graph, "bytes", "zlib");
        expect_broken(&check(&graph), &["native library `zlib` through `bytes`"]);
    }

    #[test]
    fn a_missing_core_does_not_pass() {
        expect_broken(&check(&sketch::graph(&["cli/lockgate"])), &["no package lockgate-core"]);
    }
}
