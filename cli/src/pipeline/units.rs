//! Numbers with units as people write them: counts, byte sizes, durations.
//!
//! For reading and writing `1000`, `16MiB` and `1m30s`. Deliberately not for limits that depend
//! on the setting: a value here is only sure to be sensible for its kind.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A whole number of at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Count(pub(crate) u64);

/// A number of bytes, at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ByteSize(pub(crate) u64);

/// A length of time in whole milliseconds, at most [`LONGEST`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span(pub(crate) Duration);

/// The longest [`Span`]: a year of 365 days. It can be added to any clock without overflow.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

const SIZE_UNITS: [(&str, u64); 10] = [
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

/// Long to short, the order in which they are written.
const TIME_UNITS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The pattern of a text that holds a variable, which no pattern for the value itself would match.
pub(crate) const OR_VARIABLE: &str = r"\$\{";

/// Why a text is not a value with a unit.
#[derive(Debug, PartialEq, Eq)]
enum NotAValue {
    /// It is not written in one of the accepted forms.
    Form,
    /// It is, but the value is out of range; what the range says.
    Range(&'static str),
}

const SIZE_TOO_LARGE: NotAValue = NotAValue::Range("too large: a size is less than 16 EiB");
const SIZE_ZERO: NotAValue = NotAValue::Range("a size must be at least 1 byte");
const TIME_TOO_LONG: NotAValue = NotAValue::Range("too long: a duration is at most 8760h");

impl Count {
    /// A default for serde: `count::<1000>`.
    pub(crate) fn of<const N: u64>() -> Self {
        Self(N)
    }
}

impl ByteSize {
    /// A default for serde, in mebibytes.
    pub(crate) fn mebibytes<const N: u64>() -> Self {
        Self(N << 20)
    }
}

impl Span {
    /// A default for serde, in milliseconds.
    pub(crate) fn milliseconds<const N: u64>() -> Self {
        Self(Duration::from_millis(N))
    }

    /// A default for serde, in seconds.
    pub(crate) fn seconds<const N: u64>() -> Self {
        Self(Duration::from_secs(N))
    }
}

/// Splits `text` behind its leading digits.
fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

fn parse_size(text: &str) -> Result<u64, NotAValue> {
    let (number, unit) = digits(text);
    if number.is_empty() {
        return Err(NotAValue::Form);
    }
    let unit = unit.strip_prefix(' ').unwrap_or(unit);
    let factor = match SIZE_UNITS.iter().find(|(name, _)| *name == unit) {
        Some((_, factor)) => *factor,
        None if number.len() == text.len() => 1,
        None => return Err(NotAValue::Form),
    };
    let number: u64 = number.parse().map_err(|_| SIZE_TOO_LARGE)?;
    match number.checked_mul(factor) {
        Some(0) => Err(SIZE_ZERO),
        Some(bytes) => Ok(bytes),
        None => Err(SIZE_TOO_LARGE),
    }
}

fn parse_duration(text: &str) -> Result<Duration, NotAValue> {
    let mut units = TIME_UNITS.iter();
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, after) = digits(rest);
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        // Going on from the last unit refuses "1s1m" and "1s1s".
        let Some((_, factor)) = units.find(|(name, _)| *name == unit) else {
            return Err(NotAValue::Form);
        };
        if number.is_empty() {
            return Err(NotAValue::Form);
        }
        let number: u64 = number.parse().map_err(|_| TIME_TOO_LONG)?;
        total = number
            .checked_mul(*factor)
            .and_then(|part| total.checked_add(part))
            .ok_or(TIME_TOO_LONG)?;
        rest = after;
    }
    let total = Duration::from_millis(total);
    match total {
        _ if text.is_empty() => Err(NotAValue::Form),
        _ if total > LONGEST => Err(TIME_TOO_LONG),
        _ => Ok(total),
    }
}

impl fmt::Display for ByteSize {
    /// The largest binary unit that divides the size, so that equal sizes read the same.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binary = SIZE_UNITS[1..5].iter().rev();
        let unit = binary.clone().find(|(_, factor)| self.0 > 0 && self.0.is_multiple_of(*factor));
        let (name, factor) = unit.unwrap_or(&SIZE_UNITS[0]);
        write!(f, "{}{name}", self.0 / factor)
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_zero() {
            return f.write_str("0s");
        }
        let mut rest = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        for (name, factor) in TIME_UNITS {
            if rest >= factor {
                write!(f, "{}{name}", rest / factor)?;
            }
            rest %= factor;
        }
        Ok(())
    }
}

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(self.0)
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

struct CountVisitor;

impl Visitor<'_> for CountVisitor {
    type Value = Count;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of at least 1")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Count, E> {
        match number {
            0 => Err(E::invalid_value(Unexpected::Unsigned(0), &self)),
            _ => Ok(Count(number)),
        }
    }
}

struct ByteSizeVisitor;

impl Visitor<'_> for ByteSizeVisitor {
    type Value = ByteSize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as 64KiB, 16MiB, 1GB or a plain number of bytes")
    }

    fn visit_u64<E: Error>(self, bytes: u64) -> Result<ByteSize, E> {
        self.visit_str(&bytes.to_string())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ByteSize, E> {
        match parse_size(text) {
            Ok(bytes) => Ok(ByteSize(bytes)),
            Err(NotAValue::Range(range)) => Err(E::custom(range)),
            Err(NotAValue::Form) => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

struct SpanVisitor;

impl Visitor<'_> for SpanVisitor {
    type Value = Span;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as 250ms, 10s, 1m30s or 2h")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Span, E> {
        match parse_duration(text) {
            Ok(duration) => Ok(Span(duration)),
            Err(NotAValue::Range(range)) => Err(E::custom(range)),
            Err(NotAValue::Form) => Err(E::invalid_value(Unexpected::Str(text), &self)),
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_u64(CountVisitor)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ByteSizeVisitor)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SpanVisitor)
    }
}

impl JsonSchema for Count {
    fn schema_name() -> Cow<'static, str> {
        "Count".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 1 },
                { "type": "string", "pattern": OR_VARIABLE },
            ],
        })
    }
}

impl JsonSchema for ByteSize {
    fn schema_name() -> Cow<'static, str> {
        "ByteSize".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let units = SIZE_UNITS.map(|(name, _)| name).join("|");
        json_schema!({
            "anyOf": [
                { "type": "integer", "minimum": 1 },
                { "type": "string", "pattern": format!("^[0-9]+( ?({units}))?$|{OR_VARIABLE}") },
            ],
            "examples": ["64KiB", "16MiB", "1GB", 4096],
        })
    }
}

impl JsonSchema for Span {
    fn schema_name() -> Cow<'static, str> {
        "Duration".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let parts = TIME_UNITS.map(|(name, _)| format!("([0-9]+{name})?")).concat();
        json_schema!({
            "type": "string",
            "pattern": format!("^(?=.){parts}$|{OR_VARIABLE}"),
            "examples": ["250ms", "10s", "1m30s", "2h"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let check = |text: &str, expected| assert_eq!(parse_size(text), expected, "{text}");
        check("1", Ok(1));
        check("7B", Ok(7));
        check("16MiB", Ok(16 << 20));
        check("64 KiB", Ok(64 << 10));
        check("1GB", Ok(1_000_000_000));
        check("5kB", Ok(5_000));
        check("5KB", Ok(5_000));
        check("16777215TiB", Ok(16_777_215 << 40));
        check("16777216TiB", Err(SIZE_TOO_LARGE));
        check("18446744073709551616", Err(SIZE_TOO_LARGE));
        check("0", Err(SIZE_ZERO));
        check("0MiB", Err(SIZE_ZERO));
        for text in ["", " ", "MiB", "-1", "+1", "1.5MiB", "1  MiB", "1 ", " 1", "1mib", "1M", "٣B"]
        {
            check(text, Err(NotAValue::Form));
        }
    }

    #[test]
    fn durations() {
        let check = |text: &str, expected: Result<u64, NotAValue>| {
            assert_eq!(parse_duration(text), expected.map(Duration::from_millis), "{text}");
        };
        check("0s", Ok(0));
        check("250ms", Ok(250));
        check("10s", Ok(10_000));
        check("1m30s", Ok(90_000));
        check("2h", Ok(7_200_000));
        check("1h2m3s4ms", Ok(3_723_004));
        check("90m", Ok(5_400_000));
        check("8760h", Ok(31_536_000_000));
        check("8760h1ms", Err(TIME_TOO_LONG));
        check("18446744073709551615h", Err(TIME_TOO_LONG));
        check("99999999999999999999s", Err(TIME_TOO_LONG));
        for text in
            ["", "10", "s", "1.5s", "1 s", "-1s", "1s1m", "1s1s", "10sec", "1d", "1m30", "1S"]
        {
            check(text, Err(NotAValue::Form));
        }
    }

    #[test]
    fn what_is_written_is_read_back_the_same() {
        let check = |bytes: u64, expected: &str| {
            assert_eq!(ByteSize(bytes).to_string(), expected);
            assert_eq!(parse_size(expected), Ok(bytes));
        };
        check(1, "1B");
        check(1000, "1000B");
        check(1024, "1KiB");
        check(16 << 20, "16MiB");
        check((16 << 20) + 1, "16777217B");
        for text in ["20ms", "10s", "1m30s", "2h", "1h1ms", "0s"] {
            let read = parse_duration(text).map(|duration| Span(duration).to_string());
            assert_eq!(read, Ok(text.to_owned()));
        }
    }
}
