//! Every option of the pipeline file, found in its JSON Schema.
//!
//! For saying in the schema what a change of each option does, and for the page that lists them. Deliberately not for
//! what an option holds: `{dead_letter: TOPIC}` is a value, not an option below one.

use serde_json::Value;

use super::class::{RULES, Rule, exact};

/// The key under which the schema says what a change does.
const CHANGE: &str = "x-change";

/// An option.
#[derive(Debug)]
pub(crate) struct Found {
    /// The keys down to it with `/` between them; `*` is any name.
    pub(crate) option: String,
    /// Where in the schema it is described, as a JSON pointer.
    pub(crate) pointer: String,
}

/// The options in `schema`, in its order.
pub(crate) fn options(schema: &Value) -> Vec<Found> {
    let mut found = Vec::new();
    below(schema, "", "", &mut found);
    found
}

/// Says of each option what a change of it does.
pub(crate) fn mark(schema: &mut Value) {
    for Found { option, pointer } in options(schema) {
        if let (Some(Rule { class, .. }), Some(Value::Object(node))) =
            (exact(&option), schema.pointer_mut(&pointer))
        {
            node.insert(CHANGE.to_owned(), class.name().into());
        }
    }
}

/// Collects the options below `option`, whose schema is at `pointer`. The depth is that of the table of rules.
fn below(schema: &Value, pointer: &str, option: &str, found: &mut Vec<Found>) {
    let Some(node) = schema.pointer(pointer) else { return };
    if let Some(name) = node.get("$ref").and_then(Value::as_str) {
        below(schema, name.trim_start_matches('#'), option, found);
    }
    for several in ["oneOf", "anyOf"] {
        let forms = node.get(several).and_then(Value::as_array).map_or(0, Vec::len);
        for form in 0..forms {
            below(schema, &format!("{pointer}/{several}/{form}"), option, found);
        }
    }
    for key in
        node.get("properties").and_then(Value::as_object).into_iter().flat_map(|keys| keys.keys())
    {
        let pointer = format!("{pointer}/properties/{key}");
        // Below a name stands a kind, which is no option.
        let is_kind = option.ends_with('*');
        let option = if option.is_empty() { key.clone() } else { format!("{option}/{key}") };
        let is_section = RULES.iter().any(|rule| is_below(rule.option, &option));
        if !is_kind && (!is_section || exact(&option).is_some()) {
            found.push(Found { option: option.clone(), pointer: pointer.clone() });
        }
        if is_section || is_kind {
            below(schema, &pointer, &option, found);
        }
    }
    if node.get("additionalProperties").is_some_and(Value::is_object) {
        below(schema, &format!("{pointer}/additionalProperties"), &format!("{option}/*"), found);
    }
}

fn is_below(option: &str, above: &str) -> bool {
    option.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::raw;

    /// Rules that are not about a key of the file: parts of one, or one with another meaning.
    const NO_KEYS: [&str; 3] =
        ["control/token", "inputs/*/kafka/lag_group", "inputs/*/kafka/isolation.level"];

    #[test]
    fn every_option_has_a_class_and_every_class_is_of_an_option() {
        let schema = raw::schema();
        let found = options(&schema);
        for Found { option, pointer } in &found {
            let Some(rule) = exact(option) else {
                panic!("{option} has no class: what does a change of it do? See class.rs");
            };
            let marked = schema.pointer(pointer).and_then(|node| node.get(CHANGE));
            assert_eq!(marked, Some(&rule.class.name().into()), "{option}");
        }
        for rule in RULES.iter().filter(|rule| !NO_KEYS.contains(&rule.option)) {
            assert!(found.iter().any(|found| found.option == rule.option), "{}", rule.option);
        }
        assert_eq!(found.len(), RULES.len() - NO_KEYS.len());
    }

    #[test]
    fn an_option_that_nobody_has_thought_of_is_found() {
        let mut schema = raw::schema();
        let new = serde_json::json!({ "type": "string" });
        for place in ["", "/$defs/Tls", "/$defs/FileInput", "/$defs/NullOutput"] {
            let properties = schema.pointer_mut(place).and_then(Value::as_object_mut);
            let properties = properties.expect("an object").entry("properties");
            properties.or_insert_with(|| serde_json::json!({}))["new"] = new.clone();
        }
        let found = options(&schema);
        let new: Vec<&str> = (found.iter())
            .map(|found| found.option.as_str())
            .filter(|option| option.ends_with("new"))
            .collect();
        let expected = ["control/tls/new", "inputs/*/file/new", "new", "outputs/*/null/new"];
        let mut new = new;
        new.sort_unstable();
        assert_eq!(new, expected);
    }
}
