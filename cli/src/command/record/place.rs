//! Offsets in the words that users of Kafka's tools know.

use lockgate_kafka_adapter::{StartFrom, StopAt};

/// Where a recording begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    Beginning,
    End,
    Stored,
    Offset(u64),
    BeforeEnd(u64),
    Timestamp(i64),
}

/// Where a recording ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum To {
    End,
    Offset(u64),
    BeforeEnd(u64),
    Timestamp(i64),
}

impl From {
    pub(super) fn start_from(self) -> StartFrom {
        match self {
            From::Beginning => StartFrom::Earliest,
            From::End => StartFrom::Latest,
            From::Stored => StartFrom::Committed,
            From::Offset(offset) => StartFrom::Offset(offset),
            From::BeforeEnd(offsets) => StartFrom::BeforeEnd(offsets),
            From::Timestamp(ms) => StartFrom::Timestamp(ms),
        }
    }
}

impl To {
    pub(super) fn stop_at(self) -> StopAt {
        match self {
            To::End => StopAt::End,
            To::Offset(offset) => StopAt::Offset(offset),
            To::BeforeEnd(offsets) => StopAt::BeforeEnd(offsets),
            To::Timestamp(ms) => StopAt::Timestamp(ms),
        }
    }
}

impl std::str::FromStr for From {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match (text, number(text, "s@")) {
            ("beginning", _) => From::Beginning,
            ("end", _) => From::End,
            ("stored", _) => From::Stored,
            (_, Some(Number::At(offset))) => From::Offset(offset),
            (_, Some(Number::BeforeEnd(offsets))) => From::BeforeEnd(offsets),
            (_, Some(Number::Time(ms))) => From::Timestamp(ms),
            (_, None) => {
                return Err("it must be beginning, end, stored, an offset, -N (so many before the end) or s@MS (the \
                            first record of that time or later, in milliseconds since 1970)"
                    .into());
            }
        })
    }
}

impl std::str::FromStr for To {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match (text, number(text, "e@")) {
            ("end", _) => To::End,
            (_, Some(Number::At(offset))) => To::Offset(offset),
            (_, Some(Number::BeforeEnd(offsets))) => To::BeforeEnd(offsets),
            (_, Some(Number::Time(ms))) => To::Timestamp(ms),
            (_, None) => {
                return Err("it must be end, an offset (which is not recorded), -N (so many before the end) or e@MS \
                            (before the first record of that time or later, in milliseconds since 1970)"
                    .into());
            }
        })
    }
}

enum Number {
    At(u64),
    BeforeEnd(u64),
    Time(i64),
}

fn number(text: &str, time: &str) -> Option<Number> {
    if let Some(ms) = text.strip_prefix(time) {
        return ms.parse().ok().map(Number::Time);
    }
    // Not a sign: `+5` and `--5` are no offsets.
    let digits = text.strip_prefix('-').unwrap_or(text);
    let number = digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok());
    match number.flatten()? {
        number if digits.len() < text.len() => Some(Number::BeforeEnd(number)),
        number => Some(Number::At(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_grammar_of_kafkas_tools() {
        let from = |text: &str| text.parse::<From>().ok();
        assert_eq!(from("beginning"), Some(From::Beginning));
        assert_eq!(from("end"), Some(From::End));
        assert_eq!(from("stored"), Some(From::Stored));
        assert_eq!(from("17"), Some(From::Offset(17)));
        assert_eq!(from("-100"), Some(From::BeforeEnd(100)));
        assert_eq!(from("s@1700000000000"), Some(From::Timestamp(1_700_000_000_000)));
        for wrong in ["", "-", "--5", "+5", "e@5", "s@", "start", "5.0", "99999999999999999999"] {
            assert_eq!(from(wrong), None, "{wrong}");
        }
        let to = |text: &str| text.parse::<To>().ok();
        assert_eq!(to("end"), Some(To::End));
        assert_eq!(to("17"), Some(To::Offset(17)));
        assert_eq!(to("-1"), Some(To::BeforeEnd(1)));
        assert_eq!(to("e@-5"), Some(To::Timestamp(-5)));
        for wrong in ["beginning", "stored", "s@5", "e@"] {
            assert_eq!(to(wrong), None, "{wrong}");
        }
    }
}
