//! `${VAR}` and `${VAR:-default}` in the values of the file.
//!
//! For putting the environment into a tree that is already parsed, so that no value can turn into
//! YAML, and for remembering which values came from there, so that none of them shows up in a
//! message. Keys are never expanded. Deliberately not a shell: there is no `$VAR`, no nesting and
//! no operator but `:-`, and whatever looks like an attempt at one is refused.

use std::ffi::OsString;

use super::error::{Fault, KeyPath, quoted};
use super::node::{Node, Scalar, Value};

/// The longest name of a variable, in bytes.
const MAX_NAME_BYTES: usize = 255;

/// The environment: the value of a variable, if it is set.
pub(crate) type Environment<'e> = &'e dyn Fn(&str) -> Option<OsString>;

/// Expands every value at or below `root` in place.
///
/// # Errors
/// The first value with a variable that is not set, or with a `$` that means nothing.
pub(crate) fn expand(root: &mut Node, environment: Environment<'_>) -> Result<(), Fault> {
    expand_below(root, &KeyPath::root(), environment)
}

/// Recursion is bounded by the depth of the tree, which its reader bounds.
fn expand_below(
    node: &mut Node,
    path: &KeyPath,
    environment: Environment<'_>,
) -> Result<(), Fault> {
    match &mut node.value {
        Value::Scalar(scalar) => expand_scalar(scalar, environment).map_err(|message| Fault {
            position: node.position,
            path: path.clone(),
            message,
        }),
        Value::List(elements) => elements
            .iter_mut()
            .enumerate()
            .try_for_each(|(index, below)| expand_below(below, &path.index(index), environment)),
        Value::Map(entries) => entries
            .iter_mut()
            .try_for_each(|(key, below)| expand_below(below, &path.key(key), environment)),
    }
}

fn expand_scalar(scalar: &mut Scalar, environment: Environment<'_>) -> Result<(), String> {
    let mut expanded = String::new();
    let mut rest = scalar.text.as_str();
    while let Some(dollar) = rest.find('$') {
        expanded.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if let Some(after) = after.strip_prefix('$') {
            expanded.push('$');
            rest = after;
        } else if let Some(reference) = after.strip_prefix('{') {
            let Some((inside, after)) = reference.split_once('}') else {
                return Err("\"${\" without a closing \"}\"; write $$ for a dollar sign".to_owned());
            };
            let name = inside.split_once(":-").map_or(inside, |(name, _)| name);
            expanded.push_str(&value_of(inside, environment)?);
            if !scalar.variables.iter().any(|known| known == name) {
                scalar.variables.push(name.to_owned());
            }
            rest = after;
        } else if after.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            let name = &after[..end.unwrap_or(after.len())];
            let name: String = name.chars().take(60).collect();
            return Err(format!(
                "\"${name}\" is not expanded; write ${{{name}}} for the variable, $$ for a dollar sign"
            ));
        } else {
            expanded.push('$');
            rest = after;
        }
    }
    expanded.push_str(rest);
    scalar.text = expanded;
    Ok(())
}

/// The value of what stands between the braces.
fn value_of(inside: &str, environment: Environment<'_>) -> Result<String, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if !is_variable_name(name) {
        return Err(format!(
            "{} is not a variable's name; the forms are ${{NAME}} and ${{NAME:-default}}, \
             a name has letters, digits and _ and does not begin with a digit",
            quoted(name)
        ));
    }
    if default.is_some_and(|default| default.contains("${")) {
        return Err(format!("the default of ${{{name}}} cannot hold another variable"));
    }
    let value = match environment(name) {
        Some(value) => value
            .into_string()
            .map_err(|_| format!("the value of variable {} is not valid UTF-8", quoted(name)))?,
        None if default.is_none() => {
            return Err(format!(
                "variable {} is not set; set it, or give a default: ${{{name}:-default}}",
                quoted(name)
            ));
        }
        None => String::new(),
    };
    match default {
        // As in a shell, ":-" also stands in for a variable that is set to nothing.
        Some(default) if value.is_empty() => Ok(default.replace("$$", "$")),
        _ => Ok(value),
    }
}

fn is_variable_name(name: &str) -> bool {
    let begins = |c: char| c.is_ascii_alphabetic() || c == '_';
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(begins)
        && name.chars().all(|c| begins(c) || c.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<(String, Vec<String>), String> {
        let environment = |name: &str| match name {
            "DIR" => Some(OsString::from("data")),
            "EMPTY" => Some(OsString::new()),
            "SLY" => Some(OsString::from("${DIR} $$ [a, b]")),
            _ => None,
        };
        let mut scalar = Scalar { text: text.to_owned(), plain: true, variables: Vec::new() };
        expand_scalar(&mut scalar, &environment)?;
        Ok((scalar.text, scalar.variables))
    }

    #[test]
    fn variables_are_put_in_once() {
        let check = |text: &str, expected: &str, variables: &[&str]| {
            let (text, found) = expanded(text).expect("expands");
            assert_eq!(text, expected);
            assert_eq!(found, variables);
        };
        check("plain", "plain", &[]);
        check("${DIR}/in.log", "data/in.log", &["DIR"]);
        check("${DIR}${DIR}-${NONE:-x}", "datadata-x", &["DIR", "NONE"]);
        check("${EMPTY}", "", &["EMPTY"]);
        check("${EMPTY:-other}", "other", &["EMPTY"]);
        check("${DIR:-other}", "data", &["DIR"]);
        check("${NONE:-}", "", &["NONE"]);
        check("${NONE:-a:-b $$c $}", "a:-b $c $", &["NONE"]);
        check("$$", "$", &[]);
        check("$${DIR}", "${DIR}", &[]);
        check("$$$${DIR} é", "$${DIR} é", &[]);
        check("cost 5$ or $5", "cost 5$ or $5", &[]);
        check("${SLY}", "${DIR} $$ [a, b]", &["SLY"]);
    }

    #[test]
    fn malformed_references_are_refused() {
        let error = |text: &str| expanded(text).expect_err("refused");
        insta::assert_snapshot!(error("${NONE}"), @r#"variable "NONE" is not set; set it, or give a default: ${NONE:-default}"#);
        insta::assert_snapshot!(error("a ${"), @r#""${" without a closing "}"; write $$ for a dollar sign"#);
        insta::assert_snapshot!(error("${DIR"), @r#""${" without a closing "}"; write $$ for a dollar sign"#);
        insta::assert_snapshot!(error("${}"), @r#""" is not a variable's name; the forms are ${NAME} and ${NAME:-default}, a name has letters, digits and _ and does not begin with a digit"#);
        insta::assert_snapshot!(error("${1A}"), @r#""1A" is not a variable's name; the forms are ${NAME} and ${NAME:-default}, a name has letters, digits and _ and does not begin with a digit"#);
        insta::assert_snapshot!(error("${DIR:?no}"), @r#""DIR:?no" is not a variable's name; the forms are ${NAME} and ${NAME:-default}, a name has letters, digits and _ and does not begin with a digit"#);
        insta::assert_snapshot!(error("${NONE:-${DIR}}"), @"the default of ${NONE} cannot hold another variable");
        insta::assert_snapshot!(error("$DIR/in.log"), @r#""$DIR" is not expanded; write ${DIR} for the variable, $$ for a dollar sign"#);
    }

    #[cfg(unix)]
    #[test]
    fn a_value_that_is_not_text_is_refused() {
        use std::os::unix::ffi::OsStringExt;

        let environment = |_: &str| Some(OsString::from_vec(vec![0xff]));
        let error = value_of("BYTES", &environment).expect_err("refused");
        insta::assert_snapshot!(error, @r#"the value of variable "BYTES" is not valid UTF-8"#);
    }
}
