//! The tree of values as serde types.
//!
//! For turning what serde finds wrong (an unknown key, a wrong type, a missing value) into one
//! fault with its place and the words of someone who writes YAML. Deliberately without rules of
//! its own: what is right is said by the types in [`raw`](super::raw).

use std::fmt::{self, Display};

use serde::de::value::StrDeserializer;
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, EnumAccess, Error, Expected, IntoDeserializer,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};
use serde::forward_to_deserialize_any;

use super::error::{Fault, KeyPath, Position, quoted};
use super::node::{Node, Resolved, Scalar, Value};

/// Serde's name for an enum that is written as a mapping with one key. Any other enum is a word.
const ONE_KEY: &str = "one key";

/// Reads `root` as a `T`.
///
/// # Errors
/// The first value that does not fit.
pub(crate) fn decode<T: DeserializeOwned>(root: &Node) -> Result<T, Fault> {
    let path = KeyPath::root();
    T::deserialize(Decoder { node: root, path: &path }).map_err(|error| match error {
        DecodeError::Placed(fault) => fault,
        DecodeError::Unplaced(problem) => {
            Fault { position: root.position, path: KeyPath::root(), message: problem.to_string() }
        }
    })
}

/// What serde reports while it reads. It knows no places, so they are filled in on the way up, by
/// the innermost decoder that sees the error.
#[derive(Debug)]
enum DecodeError {
    Placed(Fault),
    Unplaced(Problem),
}

/// What is wrong, by itself. The given value is missing on purpose: its words come from the tree,
/// which knows whether they may be shown.
#[derive(Debug)]
enum Problem {
    /// A value of another type or form.
    Expected(String),
    /// A key or word that is not one of these.
    Unknown(&'static [&'static str]),
    /// A mapping without this key.
    Missing(&'static str),
    /// Anything else, said in full.
    Other(String),
}

impl Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Expected(what) => write!(f, "expected {what}"),
            Problem::Unknown(known) => write!(f, "expected {}", either(known)),
            Problem::Missing(key) => write!(f, "missing key {}", quoted(key)),
            Problem::Other(message) => f.write_str(message),
        }
    }
}

impl Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DecodeError::Placed(fault) => f.write_str(&fault.message),
            DecodeError::Unplaced(problem) => problem.fmt(f),
        }
    }
}

impl std::error::Error for DecodeError {}

impl Error for DecodeError {
    /// `message` must not hold the value.
    fn custom<T: Display>(message: T) -> Self {
        Self::Unplaced(Problem::Other(message.to_string()))
    }

    fn invalid_type(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Unplaced(Problem::Expected(expected.to_string()))
    }

    fn invalid_value(_: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::Unplaced(Problem::Expected(expected.to_string()))
    }

    fn unknown_variant(_: &str, known: &'static [&'static str]) -> Self {
        Self::Unplaced(Problem::Unknown(known))
    }

    fn unknown_field(_: &str, known: &'static [&'static str]) -> Self {
        Self::Unplaced(Problem::Unknown(known))
    }

    fn missing_field(key: &'static str) -> Self {
        Self::Unplaced(Problem::Missing(key))
    }
}

fn expected(what: impl Display) -> DecodeError {
    DecodeError::Unplaced(Problem::Expected(what.to_string()))
}

/// Reads one value.
#[derive(Clone, Copy)]
struct Decoder<'n> {
    node: &'n Node,
    path: &'n KeyPath,
}

impl Decoder<'_> {
    /// Gives an error from this value its place, unless it has one.
    fn place(self, error: DecodeError) -> DecodeError {
        let problem = match error {
            DecodeError::Placed(_) => return error,
            DecodeError::Unplaced(problem) => problem,
        };
        let (position, message) = match problem {
            Problem::Expected(what) if self.path.may_be_secret() => {
                (self.node.position, format!("expected {what}"))
            }
            Problem::Expected(what) => {
                (self.node.position, format!("expected {what}, found {}", self.node.found()))
            }
            Problem::Unknown(known) => {
                let shown = match &self.node.value {
                    Value::Scalar(scalar) if scalar.variables.is_empty() => Some(&*scalar.text),
                    _ => None,
                };
                let message = match shown {
                    Some(word) => unknown("value", word, known),
                    None => format!("{problem}, found {}", self.node.found()),
                };
                (self.node.position, message)
            }
            // The value begins at its first key, which is right; what is missing belongs to it
            // as a whole, so its own key is the place to show.
            Problem::Missing(_) => (self.node.key_position, problem.to_string()),
            Problem::Other(message) => (self.node.position, message),
        };
        DecodeError::Placed(Fault { position, path: self.path.clone(), message })
    }

    /// Reads a key of this mapping; `noun` says what the key is.
    fn key<'de, K: DeserializeSeed<'de>>(
        self,
        key: &str,
        position: Position,
        noun: &str,
        seed: K,
    ) -> Result<K::Value, DecodeError> {
        let deserializer: StrDeserializer<'_, DecodeError> = key.into_deserializer();
        let fault = |path, message| DecodeError::Placed(Fault { position, path, message });
        seed.deserialize(deserializer).map_err(|error| match error {
            // A value in braces that lacks its quotes is a mapping with one key.
            DecodeError::Unplaced(Problem::Unknown(known)) if self.path.may_be_secret() => fault(
                self.path.clone(),
                format!(
                    "unknown {noun} (not shown, it may be a secret); known {noun}s: {}; \
                         a value that begins with a brace needs quotes",
                    known.join(", ")
                ),
            ),
            DecodeError::Unplaced(Problem::Unknown(known)) => {
                fault(self.path.clone(), unknown(noun, key, known))
            }
            DecodeError::Unplaced(problem) => {
                fault(self.path.clone(), format!("{problem}, found the key {}", quoted(key)))
            }
            placed => placed,
        })
    }

    fn scalar(&self) -> Option<&Scalar> {
        match &self.node.value {
            Value::Scalar(scalar) => Some(scalar),
            _ => None,
        }
    }

    fn is_nothing(self) -> bool {
        self.scalar().is_some_and(|scalar| scalar.resolve() == Resolved::Nothing)
    }

    fn list<'de, V: Visitor<'de>>(
        self,
        elements: &[Node],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_seq(List { elements: elements.iter().enumerate(), path: self.path })
    }

    fn map<'de, V: Visitor<'de>>(
        self,
        entries: &[(String, Node)],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        visitor.visit_map(Map { of: self, entries: entries.iter(), value: None })
    }

    /// An enum that is one key of a mapping, and its value.
    fn one_key<'de, V: Visitor<'de>>(
        self,
        kinds: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        let known = either(kinds);
        let Value::Map(entries) = &self.node.value else {
            return Err(expected(format!("a mapping with one key, the kind ({known})")));
        };
        match entries.as_slice() {
            [(kind, value)] => visitor.visit_enum(OneKey { of: self, kind, value }),
            [] => Err(DecodeError::custom(format!(
                "no kind is given; exactly one key is expected, the kind ({known})"
            ))),
            several => {
                let keys: Vec<String> =
                    several.iter().take(4).map(|(key, _)| quoted(key)).collect();
                let more = if several.len() > keys.len() { ", ..." } else { "" };
                Err(DecodeError::custom(format!(
                    "{} keys ({}{more}) where exactly one is expected, the kind ({known})",
                    several.len(),
                    keys.join(", ")
                )))
            }
        }
    }

    fn any<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.value {
            Value::List(elements) => self.list(elements, visitor),
            Value::Map(entries) => self.map(entries, visitor),
            Value::Scalar(scalar) => match scalar.resolve() {
                Resolved::Nothing => visitor.visit_unit(),
                Resolved::Bool(value) => visitor.visit_bool(value),
                Resolved::Text(text) => visitor.visit_str(text),
                Resolved::Number(number) => match scalar.whole_number() {
                    Some(number) => visitor.visit_u64(number),
                    // Below zero, with a fraction or too large: few take those.
                    None => match (number.parse(), number.parse()) {
                        (Ok(number), _) => visitor.visit_i64(number),
                        (_, Ok(number)) => visitor.visit_f64(number),
                        _ => Err(expected(&visitor as &dyn Expected)),
                    },
                },
            },
        }
    }
}

impl<'de> Deserializer<'de> for Decoder<'_> {
    type Error = DecodeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.any(visitor).map_err(|error| self.place(error))
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.scalar().and_then(Scalar::truth) {
            Some(value) => visitor.visit_bool(value),
            None => Err(expected("true or false")),
        }
        .map_err(|error| self.place(error))
    }

    fn deserialize_u64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match self.scalar().and_then(Scalar::whole_number) {
            Some(number) => visitor.visit_u64(number),
            None => Err(expected(&visitor as &dyn Expected)),
        }
        .map_err(|error| self.place(error))
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        let result = match self.scalar().map(Scalar::resolve) {
            Some(Resolved::Text(text)) => visitor.visit_str(text),
            Some(Resolved::Number(_)) => Err(DecodeError::custom(format!(
                "expected a string, found {}; in quotes it is a string",
                self.node.found()
            ))),
            _ => Err(expected("a string")),
        };
        result.map_err(|error| self.place(error))
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        self.deserialize_string(visitor)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        if self.is_nothing() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DecodeError> {
        match &self.node.value {
            Value::Map(entries) => self.map(entries, visitor),
            _ => Err(expected("a mapping")),
        }
        .map_err(|error| self.place(error))
    }

    /// `null:` with nothing behind it is a mapping without keys; where a key is needed, the
    /// missing key is the better message.
    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        match &self.node.value {
            _ if self.is_nothing() => self.map(&[], visitor),
            Value::Map(entries) => self.map(entries, visitor),
            _ => Err(expected("a mapping")),
        }
        .map_err(|error| self.place(error))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        words: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        if name == ONE_KEY {
            self.one_key(words, visitor)
        } else {
            match self.scalar().and_then(Scalar::text) {
                Some(word) => {
                    let word: StrDeserializer<'_, DecodeError> = word.into_deserializer();
                    visitor.visit_enum(word)
                }
                None => Err(expected(either(words))),
            }
        }
        .map_err(|error| self.place(error))
    }

    forward_to_deserialize_any! {
        i8 i16 i32 i64 i128 u8 u16 u32 u128 f32 f64 char bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct identifier ignored_any
    }
}

struct List<'n> {
    elements: std::iter::Enumerate<std::slice::Iter<'n, Node>>,
    path: &'n KeyPath,
}

impl<'de> SeqAccess<'de> for List<'_> {
    type Error = DecodeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, DecodeError> {
        let Some((index, node)) = self.elements.next() else { return Ok(None) };
        seed.deserialize(Decoder { node, path: &self.path.index(index) }).map(Some)
    }
}

struct Map<'n> {
    of: Decoder<'n>,
    entries: std::slice::Iter<'n, (String, Node)>,
    value: Option<&'n (String, Node)>,
}

impl<'de> MapAccess<'de> for Map<'_> {
    type Error = DecodeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, DecodeError> {
        self.value = self.entries.next();
        let Some((key, value)) = self.value else { return Ok(None) };
        self.of.key(key, value.key_position, "key", seed).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(
        &mut self,
        seed: V,
    ) -> Result<V::Value, DecodeError> {
        let Some((key, node)) = self.value.take() else {
            return Err(DecodeError::custom("a value was asked for before its key"));
        };
        seed.deserialize(Decoder { node, path: &self.of.path.key(key) })
    }
}

struct OneKey<'n> {
    of: Decoder<'n>,
    kind: &'n str,
    value: &'n Node,
}

impl<'de, 'n> EnumAccess<'de> for OneKey<'n> {
    type Error = DecodeError;
    type Variant = KindValue<'n>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, KindValue<'n>), DecodeError> {
        let kind = self.of.key(self.kind, self.value.key_position, "kind", seed)?;
        Ok((kind, KindValue { node: self.value, path: self.of.path.key(self.kind) }))
    }
}

struct KindValue<'n> {
    node: &'n Node,
    path: KeyPath,
}

impl<'de> VariantAccess<'de> for KindValue<'_> {
    type Error = DecodeError;

    fn unit_variant(self) -> Result<(), DecodeError> {
        Err(DecodeError::custom("a kind has settings"))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, DecodeError> {
        seed.deserialize(Decoder { node: self.node, path: &self.path })
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DecodeError> {
        Decoder { node: self.node, path: &self.path }.deserialize_seq(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        keys: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DecodeError> {
        Decoder { node: self.node, path: &self.path }.deserialize_struct("", keys, visitor)
    }
}

/// `a, b or c`.
fn either(words: &[&str]) -> String {
    match words {
        [most @ .., last] if !most.is_empty() => format!("{} or {last}", most.join(", ")),
        _ => words.concat(),
    }
}

/// The message for a name that is none of the known ones.
pub(crate) fn unknown(noun: &str, given: &str, known: &[&str]) -> String {
    let given_quoted = quoted(given);
    if known.is_empty() {
        return format!("unknown {noun} {given_quoted}; there are no {noun}s here");
    }
    let suggestion = match nearest(given, known) {
        Some(near) => format!("did you mean {}? ", quoted(near)),
        None => String::new(),
    };
    format!("unknown {noun} {given_quoted}; {suggestion}known {noun}s: {}", known.join(", "))
}

/// The known name that `given` was most likely meant to be, if any is close.
fn nearest<'k>(given: &str, known: &[&'k str]) -> Option<&'k str> {
    if given.len() > 64 {
        return None;
    }
    let same_style = |name: &str| name.to_lowercase().replace(['-', ' '], "_");
    let given = same_style(given);
    known
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&given, &same_style(name)), *name))
        .filter(|(distance, name)| *distance <= (name.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_suggested_only_when_near() {
        const KNOWN: [&str; 4] = ["paths", "follow", "max_record_bytes", "max_queued_bytes"];
        let check = |given: &str, expected| assert_eq!(nearest(given, &KNOWN), expected, "{given}");
        check("pathes", Some("paths"));
        check("path", Some("paths"));
        check("apths", Some("paths"));
        check("Follow", Some("follow"));
        check("maxRecordBytes", Some("max_record_bytes"));
        check("max-queued-bytes", Some("max_queued_bytes"));
        check("max_record_size", Some("max_record_bytes"));
        check("colour", None);
        check("", None);
        check(&"x".repeat(100_000), None);
    }
}
