//! `docs/grafana.json` and the rules in `docs/metrics.md` ask only for what there is. For tests only.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::table::{Kind, Metric};

fn read(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)).unwrap()
}

/// Names of series that there are, those of histograms with their endings.
fn series() -> BTreeSet<String> {
    let of = |metric: &Metric| {
        let about = metric.description();
        let ends: &[&str] = match about.kind {
            Kind::Histogram => &["_bucket", "_sum", "_count"],
            Kind::Counter | Kind::Gauge => &[""],
        };
        ends.iter().map(|end| format!("{}{end}", about.name)).collect::<Vec<_>>()
    };
    Metric::ALL.iter().flat_map(of).collect()
}

/// Words in the text that are names of metrics.
fn named(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let is_ours = |word: &&str| word.starts_with("lockgate_") || word.starts_with("process_");
    words.filter(is_ours).map(str::to_owned).collect()
}

/// All that is asked for, in panels and variables.
fn expressions(value: &Value) -> Vec<&str> {
    match value {
        Value::Object(fields) => {
            let own = ["expr", "query", "definition"].into_iter();
            let own = own.filter_map(|key| fields.get(key)?.as_str());
            own.chain(fields.values().flat_map(expressions)).collect()
        }
        Value::Array(values) => values.iter().flat_map(expressions).collect(),
        _ => Vec::new(),
    }
}

#[track_caller]
fn expect_known<'a>(asked: impl IntoIterator<Item = &'a str>) {
    let asked: BTreeSet<String> = asked.into_iter().flat_map(named).collect();
    let unknown: Vec<_> = asked.difference(&series()).cloned().collect();
    assert!(!asked.is_empty());
    assert_eq!(unknown, [""; 0]);
}

#[test]
fn the_dashboard_asks_for_what_there_is() {
    let dashboard: Value = serde_json::from_str(&read("grafana.json")).unwrap();
    expect_known(expressions(&dashboard));
}

#[test]
fn the_dashboard_can_be_imported_anywhere() {
    let dashboard: Value = serde_json::from_str(&read("grafana.json")).unwrap();
    assert_eq!(dashboard["__inputs"][0]["name"], "DS_PROMETHEUS");
    assert!(dashboard["id"].is_null());
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}", panel["id"]);
        if panel["type"] != "row" {
            assert_eq!(panel["datasource"]["uid"], "${DS_PROMETHEUS}", "{}", panel["title"]);
            assert!(!panel["targets"].as_array().unwrap().is_empty(), "{}", panel["title"]);
        }
    }
}

#[test]
fn the_alerting_rules_on_the_page_ask_for_what_there_is() {
    let page = read("metrics.md");
    let rules: Vec<_> = page.split("```yaml\n").skip(1).collect();
    expect_known(rules.iter().filter_map(|rules| rules.split("```").next()));
}
