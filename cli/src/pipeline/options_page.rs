//! The page that lists all options, `docs/options.md`.
//!
//! Written from the JSON Schema and the classes of the options, so that it cannot say anything else than they do: a
//! page that is not as it would be written now fails here, and `UPDATE_OPTIONS=1 cargo test -p lockgate options_page`
//! writes it.

use std::fmt::Write;
use std::path::Path;

use serde_json::Value;

use super::class::{Class, Rule, exact};
use super::options::{Found, options};
use super::raw::schema;

const UPDATE: &str = "UPDATE_OPTIONS";

const HEAD: &str = "\
# Options of the pipeline file

Written from the program; `UPDATE_OPTIONS=1 cargo test -p lockgate options_page` writes it anew.

What a change of an option does:

| class | meaning |
|---|---|
| `live` | takes effect while the pipeline runs |
| `keeps_position` | takes effect at the next start, which goes on where the last run was |
| `keeps_position` \u{2020} | the same, but only after an orderly stop: steps that a crash left are run again as they were, \
so until then the change is refused |
| `resets_position` | stored positions, or what is already written, may not mean the same afterwards: the next start \
refuses it and says what changed, unless `--accept` is given |

A start says which options changed since the last run. What is not `live` says why after its class.

Texts may hold `${NAME}` and `${NAME:-default}`. A duration is such as `250ms`, `10s`, `1m30s` or `2h`; a size such as
`64KiB`, `16MiB`, `1GB` or a number of bytes.
";

/// The headings, by what the options below them begin with.
const SECTIONS: [(&str, &str); 11] = [
    ("", "The pipeline"),
    ("control", "`control`"),
    ("control/tls", "`control.tls`"),
    ("log", "`log`"),
    ("inputs/*/file", "Input `file`"),
    ("inputs/*/kafka", "Input `kafka`"),
    ("inputs/*/recording", "Input `recording`"),
    ("outputs/*/file", "Output `file`"),
    ("outputs/*/kafka", "Output `kafka`"),
    ("outputs/*/stdout", "Output `stdout`"),
    ("outputs/*/null", "Output `null`"),
];

#[test]
fn the_page_is_as_it_would_be_written_now() {
    let page = page();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/options.md");
    if std::env::var_os(UPDATE).is_some() {
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is there");
        std::fs::write(&path, &page).expect("writes");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == page,
        "docs/options.md is stale; write it with `{UPDATE}=1 cargo test -p lockgate options_page`"
    );
}

#[test]
fn every_option_is_on_the_page_once() {
    let page = page();
    let rows =
        page.lines().filter(|line| line.starts_with("| `") && line.matches(" | ").count() == 4);
    assert_eq!(rows.count(), options(&schema()).len());
}

fn page() -> String {
    let schema = schema();
    let found = options(&schema);
    let mut page = HEAD.to_owned();
    for (section, heading) in SECTIONS {
        write!(page, "\n## {heading}\n").expect("a text");
        let here: Vec<&Found> =
            found.iter().filter(|found| section_of(&found.option) == section).collect();
        if here.is_empty() {
            page += "\nNo options.\n";
            continue;
        }
        page += "\n| option | type | default | change | meaning |\n|---|---|---|---|---|\n";
        for found in here {
            page += &row(&schema, found);
        }
    }
    page
}

fn section_of(option: &str) -> &str {
    option.rsplit_once('/').map_or("", |(section, _)| section)
}

fn row(schema: &Value, found: &Found) -> String {
    let node = schema.pointer(&found.pointer).expect("an option");
    let key = found.option.rsplit('/').next().unwrap_or_default();
    let form = Form::of(schema, node);
    let rule = exact(&found.option).expect("a class");
    let mut meaning = text_of(node);
    for (word, what) in &form.words {
        let what = if what.is_empty() { String::new() } else { format!(": {what}") };
        write!(meaning, " `{word}`{what}").expect("a text");
    }
    let default = match node.get("default") {
        Some(Value::Null) | None if is_required(schema, &found.pointer) => "required".to_owned(),
        Some(Value::Null) | None => String::new(),
        Some(Value::String(text)) => format!("`{text}`"),
        Some(other) => format!("`{other}`"),
    };
    let cells = [format!("`{key}`"), form.kinds.join(", or "), default, change(rule), meaning];
    let cells = cells.map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | "))
}

fn change(rule: &Rule) -> String {
    let name = rule.class.name();
    match rule.class {
        Class::Live => format!("`{name}`"),
        Class::KeepsPositionAfterStop => format!("`{name}` \u{2020}: {}", rule.why),
        Class::KeepsPosition | Class::ResetsPosition => format!("`{name}`: {}", rule.why),
    }
}

fn is_required(schema: &Value, pointer: &str) -> bool {
    let Some((section, key)) = pointer.rsplit_once("/properties/") else { return false };
    let required = schema.pointer(&format!("{section}/required")).and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|one| one == key))
}

/// The description of a part of the schema, in one line.
fn text_of(node: &Value) -> String {
    let text = node.get("description").and_then(Value::as_str).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What an option may be set to.
#[derive(Default)]
struct Form {
    /// In words.
    kinds: Vec<String>,
    /// Words that are options' values, with what they mean.
    words: Vec<(String, String)>,
}

impl Form {
    fn of(schema: &Value, node: &Value) -> Self {
        let mut form = Self::default();
        form.add(schema, node);
        if !form.words.is_empty() {
            form.kinds.insert(0, "a word".to_owned());
        }
        form.kinds.dedup();
        form
    }

    fn add(&mut self, schema: &Value, node: &Value) {
        if let Some(name) = node.get("$ref").and_then(Value::as_str) {
            let name = name.trim_start_matches('#');
            let known = match name.rsplit('/').next().unwrap_or_default() {
                "Count" => "a number from 1 on",
                "ByteSize" => "a size",
                "Duration" => "a duration",
                "Partitions" => "a list of numbers",
                "Inputs" | "Outputs" => "a mapping from names to kinds",
                "Properties" => "a mapping from names to values, or to `{file: PATH}`",
                _ => return self.add(schema, schema.pointer(name).expect("a definition")),
            };
            return self.kinds.push(known.to_owned());
        }
        if let Some(word) = node.get("const").and_then(Value::as_str) {
            return self.words.push((word.to_owned(), text_of(node)));
        }
        let forms = ["oneOf", "anyOf"].into_iter().filter_map(|key| node.get(key)?.as_array());
        let mut has_forms = false;
        for form in forms.flatten() {
            has_forms = true;
            self.add(schema, form);
        }
        if has_forms {
            return;
        }
        // A variable in place of a value of any type.
        let is_variable = node.get("pattern").is_some_and(|pattern| pattern == "\\$\\{");
        let kind = match node.get("type") {
            Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
            kind => kind.and_then(Value::as_str),
        };
        match kind {
            Some("boolean") => self.kinds.push("`true` or `false`".to_owned()),
            Some("string") if is_variable => {}
            Some("string") => self.kinds.push("text".to_owned()),
            Some("array") => self.kinds.push("a list of texts".to_owned()),
            Some("object") => self.kinds.push(mapping(node)),
            Some("null") | None => {}
            Some(other) => panic!("no words for a schema of type {other}"),
        }
    }
}

fn mapping(node: &Value) -> String {
    let Some(Value::Object(keys)) = node.get("properties") else {
        return "a mapping".to_owned();
    };
    let is_required = |key: &str| {
        let required = node.get("required").and_then(Value::as_array);
        required.is_some_and(|required| required.iter().any(|one| one == key))
    };
    let mut keys: Vec<&str> = keys.keys().map(String::as_str).collect();
    keys.sort_by_key(|key| !is_required(key));
    let keys: Vec<String> = keys.iter().map(|key| format!("{key}: ...")).collect();
    format!("`{{{}}}`", keys.join(", "))
}
