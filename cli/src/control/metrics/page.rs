//! `docs/metrics.md` lists what is in the table. For tests only.
//!
//! To write the list anew: `UPDATE_METRICS=1 cargo test -p lockgate metrics::page`.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use super::table::{Kind, Metric, Unit};

/// The list is between these lines; what is around them is written by hand.
const BEGIN: &str = "<!-- The lists below are written by a test: UPDATE_METRICS=1 cargo test -p lockgate metrics::page -->\n";
const END: &str = "<!-- The end of the lists. -->\n";

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/metrics.md")
}

fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Seconds => "seconds",
        Unit::Bytes => "bytes",
        Unit::Records => "records",
        Unit::Steps => "steps",
        Unit::Offsets => "offsets, or bytes of a file",
        Unit::Partitions => "partitions, or files",
        Unit::Times => "-",
        Unit::Flag => "0 or 1",
        Unit::One => "1",
    }
}

fn list() -> String {
    let mut text = String::new();
    let mut group = "";
    for metric in Metric::ALL {
        let about = metric.description();
        if group != about.group {
            group = about.group;
            let _ = write!(text, "\n## {group}\n\n| metric | type | labels | unit | meaning |\n");
            text.push_str("|---|---|---|---|---|\n");
        }
        let kind = match about.kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let labels: Vec<_> = about.labels.iter().map(|label| format!("`{label}`")).collect();
        let (name, labels, unit) = (about.name, labels.join(", "), unit(about.unit));
        let _ = writeln!(text, "| `{name}` | {kind} | {labels} | {unit} | {} |", about.help);
    }
    text.push('\n');
    text
}

#[test]
fn the_page_lists_what_is_in_the_table() {
    let page = fs::read_to_string(path()).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the line before the lists is there");
    let (found, after) = rest.split_once(END).expect("the line after the lists is there");
    let expected = list();
    if std::env::var_os("UPDATE_METRICS").is_some() {
        fs::write(path(), [before, BEGIN, &expected, END, after].concat()).unwrap();
    } else {
        assert!(
            found == expected,
            "docs/metrics.md is not what the table says; see the line above its lists"
        );
    }
}
