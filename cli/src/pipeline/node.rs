//! YAML text as a tree of values that know their place in the file.
//!
//! For reading one YAML document (JSON is a subset) with everything refused that would let two
//! readers see different things in it: duplicate keys, anchors and aliases, merge keys, tags, a
//! second document. Deliberately not for meaning: which keys exist and what types they have is
//! decided in [`decode`](super::decode).

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, Span, StrInput};

use super::error::{Fault, KeyPath, Position, Step, quoted};

/// How deep mappings and lists may nest; the pipeline file itself needs six levels.
const MAX_DEPTH: usize = 32;

/// The longest key, in bytes; the pipeline file itself needs 64.
const MAX_KEY_BYTES: usize = 256;

/// One value of the file.
pub(crate) struct Node {
    /// Where the value begins.
    pub(crate) position: Position,
    /// Where its key begins; for what has no key, where the value begins.
    pub(crate) key_position: Position,
    /// The value.
    pub(crate) value: Value,
}

/// The three shapes a value can have.
pub(crate) enum Value {
    /// A single text, number, truth value or nothing.
    Scalar(Scalar),
    /// `[a, b]`, or lines that begin with `-`.
    List(Vec<Node>),
    /// Keys and their values in the file's order; no key occurs twice.
    Map(Vec<(String, Node)>),
}

/// A single value, as text: what type it is depends on who asks.
pub(crate) struct Scalar {
    /// The text, with quotes and escapes undone.
    pub(crate) text: String,
    /// Whether it stood in the file without quotes, so that `5` is a number.
    pub(crate) plain: bool,
    /// The environment variables that went into the text. When there are any, the text may be a
    /// secret and must not be shown.
    pub(crate) variables: Vec<String>,
}

/// What a scalar is by YAML's own rules (1.2, core schema).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resolved<'a> {
    /// Empty, `null` or `~`.
    Nothing,
    /// `true` or `false`.
    Bool(bool),
    /// Any number, as it was written.
    Number(&'a str),
    /// Everything else.
    Text(&'a str),
}

impl Scalar {
    /// The scalar's type. What came out of a variable is always text: it never passed through
    /// the YAML parser, and what reads it converts it.
    pub(crate) fn resolve(&self) -> Resolved<'_> {
        let text = self.text.as_str();
        if !self.plain || !self.variables.is_empty() {
            return Resolved::Text(text);
        }
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Resolved::Nothing,
            _ if is_number(text) => Resolved::Number(text),
            _ => truth(text).map_or(Resolved::Text(text), Resolved::Bool),
        }
    }

    /// The scalar as a whole number, if it is one.
    pub(crate) fn whole_number(&self) -> Option<u64> {
        match self.resolve() {
            Resolved::Number(text) => whole_number(text),
            Resolved::Text(text) if !self.variables.is_empty() => whole_number(text),
            _ => None,
        }
    }

    /// The scalar as a truth value, if it is one.
    pub(crate) fn truth(&self) -> Option<bool> {
        match self.resolve() {
            Resolved::Bool(value) => Some(value),
            Resolved::Text(text) if !self.variables.is_empty() => truth(text),
            _ => None,
        }
    }

    /// The scalar as text, if it is text.
    pub(crate) fn text(&self) -> Option<&str> {
        match self.resolve() {
            Resolved::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Node {
    /// What stands here, in words for a message. Never the text of a variable.
    pub(crate) fn found(&self) -> String {
        match &self.value {
            Value::List(_) => "a list".to_owned(),
            Value::Map(_) => "a mapping".to_owned(),
            Value::Scalar(scalar) if !scalar.variables.is_empty() => {
                let names: Vec<String> =
                    scalar.variables.iter().map(|name| format!("${{{name}}}")).collect();
                let names = names.join(" and ");
                format!("the value of {names} (not shown, it may be a secret)")
            }
            Value::Scalar(scalar) => match scalar.resolve() {
                Resolved::Nothing => "nothing".to_owned(),
                Resolved::Bool(value) => value.to_string(),
                Resolved::Number(text) if text.len() > 40 => "a long number".to_owned(),
                Resolved::Number(text) => format!("the number {text}"),
                Resolved::Text(text) => format!("the string {}", quoted(text)),
            },
        }
    }

    /// The value at `path` or, where the file leaves it out, the nearest one around it.
    pub(crate) fn nearest(&self, path: &KeyPath) -> &Node {
        let mut node = self;
        for step in path.steps() {
            let below = match (step, &node.value) {
                (Step::Key(key), Value::Map(entries)) => {
                    entries.iter().find(|(name, _)| name == key).map(|(_, value)| value)
                }
                (Step::Index(index), Value::List(elements)) => elements.get(*index),
                _ => None,
            };
            match below {
                Some(below) => node = below,
                None => break,
            }
        }
        node
    }

    fn is_nothing(&self) -> bool {
        matches!(&self.value, Value::Scalar(scalar) if scalar.resolve() == Resolved::Nothing)
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

fn is_number(text: &str) -> bool {
    if let Some(hex) = text.strip_prefix("0x") {
        return !hex.is_empty() && hex.bytes().all(|b| b.is_ascii_hexdigit());
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return !octal.is_empty() && octal.bytes().all(|b| matches!(b, b'0'..=b'7'));
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN") {
        return true;
    }
    // Rust's own number syntax is YAML's, once words such as "inf" are out of the way.
    unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') && text.parse::<f64>().is_ok()
}

fn whole_number(text: &str) -> Option<u64> {
    if let Some(hex) = text.strip_prefix("0x") {
        return if is_number(text) { u64::from_str_radix(hex, 16).ok() } else { None };
    }
    if let Some(octal) = text.strip_prefix("0o") {
        return if is_number(text) { u64::from_str_radix(octal, 8).ok() } else { None };
    }
    text.parse().ok()
}

/// Reads the one document of `text`.
///
/// # Errors
/// The first thing that is not YAML, or that is YAML but refused here.
pub(crate) fn read(text: &str) -> Result<Node, Fault> {
    let mut reader = Reader { text, parser: Parser::new_from_str(text) };
    let mut document: Option<Node> = None;
    loop {
        let (event, span) = reader.next()?;
        match event {
            Event::StreamEnd => break,
            Event::DocumentStart(_) if document.is_some() => {
                let message = "a second document begins here; a pipeline file holds one";
                return Err(fault(position(span.start), &KeyPath::root(), message));
            }
            Event::DocumentStart(_) => {
                let (event, span) = reader.next()?;
                document = Some(reader.node(event, span, None, &KeyPath::root())?);
            }
            _ => {}
        }
    }
    match document {
        Some(root) if !root.is_nothing() => Ok(root),
        _ => {
            let message = "the file is empty; a pipeline has at least the keys \
                name, inputs and outputs (\"lockgate init\" writes one to start from)";
            Err(fault(Position::START, &KeyPath::root(), message))
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
}

impl<'t> Reader<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Span), Fault> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => {
                let at = position(*error.marker()).within(self.text);
                let line = self.text.lines().nth(at.line - 1).unwrap_or_default();
                // The parser has a limit of its own, for brackets it has read but not reported.
                let message = if error.info() == "recursion limit exceeded" {
                    too_deep()
                } else if line.contains("${") {
                    let hint = "inside { } or [ ] a value with ${...} needs quotes";
                    format!("not valid YAML: {}; {hint}", error.info())
                } else if error.info().contains("found a tab") {
                    format!("not valid YAML: {}; lines are indented by spaces", error.info())
                } else {
                    format!("not valid YAML: {}", error.info())
                };
                Err(fault(at, &KeyPath::root(), message))
            }
            // Only when asked for more after the end of the stream.
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    /// The value that begins with `event`. Recursion ends at [`MAX_DEPTH`].
    fn node(
        &mut self,
        event: Event<'t>,
        span: Span,
        key: Option<Position>,
        path: &KeyPath,
    ) -> Result<Node, Fault> {
        let position = match (&event, key) {
            // A value that is left out has no place of its own.
            (Event::Scalar(text, ScalarStyle::Plain, ..), Some(key)) if text.is_empty() => key,
            _ => position(span.start),
        };
        let refuse = |message: &str| Err(fault(position, path, message));
        let (anchor, tagged) = match &event {
            Event::Alias(_) => (true, false),
            Event::Scalar(_, _, anchor, tag) => (*anchor != 0, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                (*anchor != 0, tag.is_some())
            }
            _ => (false, false),
        };
        if anchor {
            return refuse(
                "anchors (&name) and aliases (*name) are not supported; write the value out",
            );
        }
        if tagged {
            return refuse("tags (!name) are not supported; put text that begins with ! in quotes");
        }
        if path.steps().len() > MAX_DEPTH {
            return Err(fault(position, &KeyPath::root(), too_deep()));
        }
        let value = match event {
            Event::Scalar(text, style, _, _) => Value::Scalar(Scalar {
                text: text.into_owned(),
                plain: style == ScalarStyle::Plain,
                variables: Vec::new(),
            }),
            Event::SequenceStart(..) => Value::List(self.list(path)?),
            Event::MappingStart(..) => Value::Map(self.map(path)?),
            _ => return refuse("not valid YAML: a value is expected here"),
        };
        Ok(Node { position, key_position: key.unwrap_or(position), value })
    }

    fn list(&mut self, path: &KeyPath) -> Result<Vec<Node>, Fault> {
        let mut elements = Vec::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::SequenceEnd {
                return Ok(elements);
            }
            let below = path.index(elements.len());
            elements.push(self.node(event, span, None, &below)?);
        }
    }

    fn map(&mut self, path: &KeyPath) -> Result<Vec<(String, Node)>, Fault> {
        let mut entries = Vec::new();
        let mut first_seen = BTreeMap::new();
        loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                return Ok(entries);
            }
            let at = position(span.start);
            // Before anything is read below the key: its depth does not show in the path.
            if matches!(event, Event::SequenceStart(..) | Event::MappingStart(..)) {
                return Err(fault(at, path, "a key must be text, not a list or a mapping"));
            }
            let Value::Scalar(Scalar { text: key, plain, .. }) =
                self.node(event, span, None, path)?.value
            else {
                return Err(fault(at, path, "a key must be text"));
            };
            if plain && key == "<<" {
                let message = "merge keys (<<) are not supported; write the keys out";
                return Err(fault(at, path, message));
            }
            if key.len() > MAX_KEY_BYTES {
                return Err(fault(at, path, format!("a key longer than {MAX_KEY_BYTES} bytes")));
            }
            if let Some(Position { line, column }) = first_seen.insert(key.clone(), at) {
                let key = quoted(&key);
                let message =
                    format!("key {key} appears twice; first at line {line}, column {column}");
                return Err(fault(at, path, message));
            }
            let below = path.key(&key);
            let (event, span) = self.next()?;
            let value = self.node(event, span, Some(at), &below)?;
            entries.push((key, value));
        }
    }
}

fn too_deep() -> String {
    format!("nested deeper than {MAX_DEPTH} levels")
}

fn fault(position: Position, path: &KeyPath, message: impl Into<String>) -> Fault {
    Fault { position, path: path.clone(), message: message.into() }
}

/// The parser counts lines from 1 and columns from 0.
fn position(marker: Marker) -> Position {
    Position { line: marker.line().max(1), column: marker.col() + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> Scalar {
        Scalar { text: text.to_owned(), plain: true, variables: Vec::new() }
    }

    fn expanded(text: &str) -> Scalar {
        Scalar { text: text.to_owned(), plain: true, variables: vec!["V".to_owned()] }
    }

    #[test]
    fn plain_scalars_have_the_types_of_yaml_1_2() {
        let check = |text: &str, expected| assert_eq!(plain(text).resolve(), expected, "{text}");
        for nothing in ["", "~", "null", "Null", "NULL"] {
            check(nothing, Resolved::Nothing);
        }
        check("true", Resolved::Bool(true));
        check("False", Resolved::Bool(false));
        for number in ["0", "-5", "+5", "0x1F", "0o17", "1.5", ".5", "5.", "1e3", "-.inf", ".nan"] {
            check(number, Resolved::Number(number));
        }
        for text in ["yes", "no", "on", "inf", "nan", "1_000", "0x", "0o8", "10s", "-", "+-5", "."]
        {
            check(text, Resolved::Text(text));
        }
    }

    #[test]
    fn whole_numbers() {
        let check = |scalar: Scalar, expected| {
            assert_eq!(scalar.whole_number(), expected, "{}", scalar.text);
        };
        check(plain("42"), Some(42));
        check(plain("+42"), Some(42));
        check(plain("0x10"), Some(16));
        check(plain("0o10"), Some(8));
        check(plain("0x+1"), None);
        check(plain("18446744073709551615"), Some(u64::MAX));
        check(plain("18446744073709551616"), None);
        check(plain("-1"), None);
        check(plain("1.0"), None);
        check(Scalar { plain: false, ..plain("42") }, None);
        check(expanded("42"), Some(42));
        check(expanded(" 42"), None);
        check(expanded("x"), None);
    }

    #[test]
    fn json_is_read_too() {
        let root = read("{\t\"a\\u00e9\": [1, \"x\\ty\"],\r\n\t\"b\": {\"c\": null}}");
        let root = root.expect("JSON is YAML");
        let path = KeyPath::root().key("aé").index(1);
        let node = root.nearest(&path);
        assert!(matches!(&node.value, Value::Scalar(scalar) if scalar.text == "x\ty"));
        assert_eq!(root.nearest(&KeyPath::root().key("b").key("c")).found(), "nothing");
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_key() {
        let root = read("\u{feff}name: x\n").expect("valid");
        assert!(matches!(&root.value, Value::Map(entries) if entries[0].0 == "name"));
    }

    /// A bracket that is never closed was missed in a line that the file does not have.
    #[test]
    fn a_place_is_in_the_file() {
        let check = |text: &str, line, column| {
            let fault = read(text).err().expect("it is not YAML");
            assert_eq!(fault.position, Position { line, column }, "{text:?}: {}", fault.message);
        };
        check("name: [", 1, 8);
        check("a: 1\r\nname: [é", 2, 9);
        check("name: [\n", 2, 1);
    }

    #[test]
    fn what_is_left_out_is_looked_for_around_it() {
        let root = read("a:\n  b: 1\n").expect("valid");
        let path = KeyPath::root().key("a").key("missing").key("c");
        assert_eq!(root.nearest(&path).key_position, Position { line: 1, column: 1 });
    }
}
