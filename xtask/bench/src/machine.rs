//! What the numbers were measured on and with.

use std::fs;
use std::process::Command;
use std::thread;

use serde::Serialize;

use crate::site::Site;

/// A machine.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Machine {
    pub(crate) cpu: String,
    pub(crate) cores: usize,
    pub(crate) memory_gib: f64,
    pub(crate) kernel: String,
}

/// Versions of what runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Versions {
    pub(crate) lockgate: String,
    pub(crate) rustc: String,
    pub(crate) librdkafka: String,
    /// As `cargo xtask` says; that of a broker that it did not start is not known.
    pub(crate) kafka: String,
}

const UNKNOWN: &str = "unknown";

impl Machine {
    pub(crate) fn here() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (cpus, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
        let kib = value(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
        let kernel = read("/proc/sys/kernel/osrelease");
        Self {
            cpu: value(&cpus, "model name").unwrap_or(UNKNOWN).to_owned(),
            cores: thread::available_parallelism().map_or(1, usize::from),
            memory_gib: (kib.unwrap_or(0.0) / 1024.0 / 1024.0 * 10.0_f64).round() / 10.0,
            kernel: if kernel.is_empty() { UNKNOWN.into() } else { kernel.trim().into() },
        }
    }
}

impl Versions {
    pub(crate) fn here(site: &Site) -> Self {
        let said = |command: &mut Command| {
            let output =
                command.arg("--version").output().ok().filter(|said| said.status.success());
            output.map_or(UNKNOWN.into(), |said| {
                String::from_utf8_lossy(&said.stdout).lines().next().unwrap_or(UNKNOWN).to_owned()
            })
        };
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        Self {
            lockgate: said(&mut site.lockgate()),
            rustc: said(&mut Command::new(rustc)),
            librdkafka: rdkafka::util::get_rdkafka_version().1,
            kafka: std::env::var("LOCKGATE_BENCH_KAFKA").unwrap_or_else(|_| UNKNOWN.into()),
        }
    }
}

/// The value in a line `name : value`.
fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = text.lines().filter_map(|line| line.split_once(':'));
    pairs.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_by_their_names() {
        let text = "processor\t: 0\nmodel name\t: A 9: fast\nMemTotal:    123 kB\n";
        assert_eq!(value(text, "model name"), Some("A 9: fast"));
        assert_eq!(value(text, "MemTotal"), Some("123 kB"));
        assert_eq!(value(text, "MemFree"), None);
    }
}
