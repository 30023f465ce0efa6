//! Reads the text format of Prometheus strictly and holds metrics against its conventions, as `promtool check metrics`
//! does, so that no other program is needed for it. For tests only.

use std::collections::{BTreeMap, BTreeSet};

/// What comes under one name.
#[derive(Debug)]
pub(super) struct Family {
    pub(super) name: String,
    pub(super) help: String,
    pub(super) kind: String,
    pub(super) samples: Vec<Sample>,
}

/// One line.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) name: String,
    pub(super) labels: Vec<(String, String)>,
    pub(super) number: f64,
}

impl Sample {
    /// The value of a label.
    pub(super) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| label == name).map(|(_, value)| value.as_str())
    }

    fn without_le(&self) -> Vec<(String, String)> {
        self.labels.iter().filter(|(name, _)| name != "le").cloned().collect()
    }
}

/// The families of a text; every line must be a HELP, the TYPE after it, or a sample of that family.
pub(super) fn parse(text: &str) -> Result<Vec<Family>, String> {
    let mut families: Vec<Family> = Vec::new();
    if !text.is_empty() && !text.ends_with('\n') {
        return Err("the last line has no end".into());
    }
    let mut lines = text.lines().enumerate();
    while let Some((place, line)) = lines.next() {
        let fault = |what: &str| format!("line {}: {what}: {line}", place + 1);
        if let Some(help) = line.strip_prefix("# HELP ") {
            let Some((name, help)) = help.split_once(' ') else { return Err(fault("no text")) };
            let kind = lines.next().and_then(|(_, line)| line.strip_prefix("# TYPE "));
            let kind = kind.and_then(|kind| kind.strip_prefix(name)?.strip_prefix(' '));
            let Some(kind) = kind else { return Err(fault("no TYPE behind it")) };
            if families.iter().any(|family| family.name == name) {
                return Err(fault("a second time"));
            }
            families.push(Family {
                name: name.into(),
                help: unescape(help, false)?,
                kind: kind.into(),
                samples: Vec::new(),
            });
        } else if line.starts_with('#') || line.trim() != line || line.is_empty() {
            return Err(fault("neither HELP nor a sample"));
        } else {
            let sample = sample(line).map_err(|what| fault(&what))?;
            let Some(family) = families.last_mut() else { return Err(fault("before any HELP")) };
            if !belongs(&sample.name, family) {
                return Err(fault("not of the family above"));
            }
            family.samples.push(sample);
        }
    }
    Ok(families)
}

fn belongs(sample: &str, family: &Family) -> bool {
    match (sample.strip_prefix(family.name.as_str()), family.kind.as_str()) {
        (Some("_bucket" | "_sum" | "_count"), "histogram") => true,
        (Some(""), kind) => kind != "histogram",
        _ => false,
    }
}

fn sample(line: &str) -> Result<Sample, String> {
    let end = line.find(['{', ' ']).ok_or("no number")?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (label, value) = rest.split_once("=\"").ok_or("a label without a value")?;
            let end = closing_quote(value).ok_or("a label's value without an end")?;
            labels.push((label.into(), unescape(&value[..end], true)?));
            rest = &value[end + 1..];
            if let Some(more) = rest.strip_prefix(',') {
                rest = more;
            } else {
                rest = rest.strip_prefix('}').ok_or("neither , nor } after a label")?;
                break;
            }
        }
    }
    let number = rest.strip_prefix(' ').ok_or("no space before the number")?;
    let number = number.parse().map_err(|_| format!("{number:?} is no number"))?;
    Ok(Sample { name: name.into(), labels, number })
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

fn unescape(text: &str, with_quotes: bool) -> Result<String, String> {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next() {
                Some('\\') => '\\',
                Some('n') => '\n',
                Some('"') if with_quotes => '"',
                other => return Err(format!("{other:?} is escaped in {text:?}")),
            },
            c => c,
        });
    }
    Ok(plain)
}

/// What is against the format or the conventions.
pub(super) fn lint(text: &str) -> Vec<String> {
    let families = match parse(text) {
        Ok(families) => families,
        Err(fault) => return vec![fault],
    };
    let mut found = Vec::new();
    let mut series = BTreeSet::new();
    for family in &families {
        let name = family.name.as_str();
        found.extend(name_faults(name, &family.kind));
        if family.help.is_empty() {
            found.push(format!("{name}: no help"));
        }
        if family.samples.is_empty() {
            found.push(format!("{name}: no sample"));
        }
        for sample in &family.samples {
            let mut labels = sample.labels.clone();
            labels.sort();
            if labels.windows(2).any(|two| two[0].0 == two[1].0) {
                found.push(format!("{name}: a label twice"));
            }
            for (label, _) in &labels {
                let is_le = label == "le" && sample.name.ends_with("_bucket");
                if !is_snake(label)
                    || (!is_le && ["le", "quantile", "job", "instance"].contains(&label.as_str()))
                {
                    found.push(format!("{name}: label {label}"));
                }
            }
            if !series.insert((sample.name.clone(), labels)) {
                found.push(format!("{name}: a series twice"));
            }
            if !sample.number.is_finite() || (family.kind != "gauge" && sample.number < 0.0) {
                found.push(format!("{name}: {}", sample.number));
            }
        }
        if family.kind == "histogram" {
            found.extend(histogram_faults(family));
        }
    }
    found
}

fn is_snake(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    name.bytes().all(allowed) && name.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Units that are not base units, short for one, or say what the type says already.
const AVOIDED: [&str; 22] = [
    "s",
    "sec",
    "secs",
    "ms",
    "us",
    "ns",
    "milliseconds",
    "microseconds",
    "nanoseconds",
    "minutes",
    "hours",
    "days",
    "b",
    "kb",
    "mb",
    "kib",
    "mib",
    "kilobytes",
    "megabytes",
    "counter",
    "gauge",
    "histogram",
];

fn name_faults(name: &str, kind: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut fault = |what: &str| faults.push(format!("{name}: {what}"));
    if !is_snake(name) {
        fault("not in snake case");
    }
    if !["lockgate_", "process_"].iter().any(|prefix| name.starts_with(prefix)) {
        fault("no prefix");
    }
    match (kind, name.ends_with("_total")) {
        ("counter", false) => fault("a counter without _total"),
        ("gauge" | "histogram", true) => fault("_total on what is no counter"),
        ("counter" | "gauge" | "histogram", _) => {}
        _ => fault("no such type"),
    }
    if ["_sum", "_count", "_bucket", "_info_total"].iter().any(|end| name.ends_with(end)) {
        fault("ends like a part of another metric");
    }
    let words: Vec<&str> = name.trim_end_matches("_total").split('_').collect();
    for word in &words {
        if AVOIDED.contains(word) {
            fault(&format!("{word:?} is no base unit, or a type"));
        }
    }
    for unit in ["seconds", "bytes"] {
        if words.contains(&unit) && words.last() != Some(&unit) {
            fault("the unit comes last");
        }
    }
    if kind == "histogram" && words.last() != Some(&"seconds") {
        fault("a histogram of durations without _seconds");
    }
    faults
}

/// Buckets must grow, end with +Inf and agree with the number of all; each has its sum.
fn histogram_faults(family: &Family) -> Vec<String> {
    let mut faults = Vec::new();
    let mut of_labels: BTreeMap<Vec<(String, String)>, Vec<&Sample>> = BTreeMap::new();
    for sample in &family.samples {
        of_labels.entry(sample.without_le()).or_default().push(sample);
    }
    for (labels, samples) in of_labels {
        let mut fault = |what: &str| faults.push(format!("{} {labels:?}: {what}", family.name));
        let of = |end: &str| {
            let of_end: Vec<_> =
                samples.iter().filter(|sample| sample.name.ends_with(end)).collect();
            of_end
        };
        let buckets: Vec<(f64, f64)> = of("_bucket")
            .iter()
            .map(|bucket| {
                let end = bucket.label("le").and_then(|end| end.parse().ok());
                (end.unwrap_or(f64::NAN), bucket.number)
            })
            .collect();
        let grow = |two: &[(f64, f64)]| two[0].0 < two[1].0 && two[0].1 <= two[1].1;
        if !buckets.windows(2).all(grow) {
            fault("the buckets do not grow");
        }
        let all =
            buckets.last().filter(|(end, _)| *end == f64::INFINITY).map(|(_, number)| *number);
        match (all, of("_sum").as_slice(), of("_count").as_slice()) {
            (Some(all), [_], [count]) if all == count.number => {}
            _ => fault("not complete"),
        }
    }
    faults
}

mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found = lint(text);
        assert_eq!(found.len(), expected.len(), "{found:#?}");
        for (found, part) in found.iter().zip(expected) {
            assert!(found.contains(part), "{part:?} is not in {found:?}");
        }
    }

    fn family(name: &str, kind: &str, samples: &str) -> String {
        format!("# HELP {name} Help.\n# TYPE {name} {kind}\n{samples}")
    }

    #[test]
    fn good_text_is_fine() {
        check("", &[]);
        check(&family("lockgate_a_total", "counter", "lockgate_a_total{b=\"c\",d=\"\"} 1\n"), &[]);
        let samples = "lockgate_a_seconds_bucket{le=\"1\"} 1\nlockgate_a_seconds_bucket{le=\"+Inf\"} 2\n\
                       lockgate_a_seconds_sum 3.5\nlockgate_a_seconds_count 2\n";
        check(&family("lockgate_a_seconds", "histogram", samples), &[]);
    }

    #[test]
    fn a_wrong_format_is_found() {
        let one = |samples: &str| family("lockgate_a", "gauge", samples);
        check("lockgate_a 1\n", &["before any HELP"]);
        check(&one("lockgate_a 1"), &["no end"]);
        check(&one("lockgate_a\n"), &["no number"]);
        check(&one("lockgate_a x\n"), &["no number"]);
        check(&one("lockgate_b 1\n"), &["not of the family"]);
        check(&one("lockgate_a{b=\"c} 1\n"), &["without an end"]);
        check(&one("lockgate_a{b=\"\\t\"} 1\n"), &["is escaped"]);
        check(&one("lockgate_a{b=\"c\" d=\"e\"} 1\n"), &["neither , nor }"]);
        check(&one("\n"), &["neither HELP nor a sample"]);
        check(&format!("{0}{0}", one("lockgate_a 1\n")), &["a second time"]);
        check("# HELP lockgate_a Help.\nlockgate_a 1\n", &["no TYPE"]);
    }

    #[test]
    fn what_is_against_the_conventions_is_found() {
        let one = |name: &str, kind: &str| family(name, kind, &format!("{name} 1\n"));
        check(&one("lockgate_a", "counter"), &["without _total"]);
        check(&one("lockgate_a_total", "gauge"), &["no counter"]);
        check(&one("lockgate_aB", "gauge"), &["snake case"]);
        check(&one("a", "gauge"), &["no prefix"]);
        check(&one("lockgate_a_ms", "gauge"), &["no base unit"]);
        check(&one("lockgate_bytes_a", "gauge"), &["comes last"]);
        check(&one("lockgate_a_count", "gauge"), &["part of another"]);
        check(&one("lockgate_a", "untyped"), &["no such type"]);
        let twice = "lockgate_a{b=\"1\",c=\"2\"} 1\nlockgate_a{c=\"2\",b=\"1\"} 1\n";
        check(&family("lockgate_a", "gauge", twice), &["a series twice"]);
        check(&family("lockgate_a", "gauge", "lockgate_a{aB=\"\"} 1\n"), &["label aB"]);
        check(&family("lockgate_a", "gauge", "lockgate_a{b=\"\",b=\"\"} 1\n"), &["a label twice"]);
        check(&family("lockgate_a_total", "counter", "lockgate_a_total -1\n"), &["-1"]);
    }

    #[test]
    fn an_incomplete_histogram_is_found() {
        let name = "lockgate_a_seconds";
        let one = |samples: &[&str]| {
            let samples: String =
                samples.iter().map(|sample| format!("{name}_{sample}\n")).collect();
            family(name, "histogram", &samples)
        };
        let (one_second, all) = ("bucket{le=\"1\"} 1", "bucket{le=\"+Inf\"} 1");
        check(&one(&[one_second, all, "sum 1"]), &["not complete"]);
        check(&one(&[one_second, all, "count 1"]), &["not complete"]);
        check(&one(&[one_second, "sum 1", "count 1"]), &["not complete"]);
        check(&one(&[one_second, all, "sum 1", "count 2"]), &["not complete"]);
        check(&one(&["bucket{le=\"0.5\"} 2", all, "sum 1", "count 1"]), &["do not grow"]);
        check(&one(&["bucket{le=\"2\"} 1", one_second, all, "sum 1", "count 1"]), &["do not grow"]);
    }
}
