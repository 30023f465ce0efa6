//! Records as JSON, for programs. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lockgate_core::{Header, Headers, Record};
use serde::ser::{Serialize, SerializeMap, Serializer};

/// One line. Bytes are text where they are UTF-8, and otherwise base64 under another name.
pub(crate) struct Line<'a> {
    /// What it came by: `input` or `output`, and its name.
    pub(crate) by: (&'static str, &'a str),
    /// The number of its step, if that is known.
    pub(crate) step: Option<u64>,
    /// The record.
    pub(crate) record: Record<'a>,
}

impl Line<'_> {
    /// Adds it to `text`, with a newline.
    pub(crate) fn push_to(&self, text: &mut String) {
        // Neither its maps nor its strings can fail.
        *text += &serde_json::to_string(self).unwrap_or_default();
        text.push('\n');
    }
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self { by: (kind, name), step, record } = self;
        let mut map = to.serialize_map(None)?;
        map.serialize_entry(kind, name)?;
        map.serialize_entry("step", step)?;
        map.serialize_entry("source", &record.partition.source)?;
        map.serialize_entry("partition", &record.partition.number)?;
        map.serialize_entry("offset", &record.offset)?;
        map.serialize_entry("end_offset", &record.end_offset)?;
        if let Some(timestamp) = record.timestamp {
            map.serialize_entry("timestamp_ms", &timestamp.ms)?;
            map.serialize_entry("timestamp_kind", timestamp.kind.name())?;
        }
        if let Some(epoch) = record.leader_epoch {
            map.serialize_entry("leader_epoch", &epoch)?;
        }
        bytes(&mut map, "key", "key_base64", record.key)?;
        bytes(&mut map, "value", "value_base64", record.value)?;
        map.serialize_entry("headers", &HeaderList(record.headers))?;
        map.end()
    }
}

struct HeaderList<'a>(Headers<'a>);

impl Serialize for HeaderList<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(self.0.iter().map(NameAndValue))
    }
}

struct NameAndValue<'a>(Header<'a>);

impl Serialize for NameAndValue<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        bytes(&mut map, "name", "name_base64", Some(self.0.name))?;
        bytes(&mut map, "value", "value_base64", self.0.value)?;
        map.end()
    }
}

fn bytes<M: SerializeMap>(
    map: &mut M,
    name: &str,
    base64_name: &str,
    bytes: Option<&[u8]>,
) -> Result<(), M::Error> {
    match bytes.map(|bytes| std::str::from_utf8(bytes).map_err(|_| bytes)) {
        None => map.serialize_entry(name, &()),
        Some(Ok(text)) => map.serialize_entry(name, text),
        Some(Err(bytes)) => map.serialize_entry(base64_name, &STANDARD.encode(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::samples;
    use super::*;

    #[test]
    fn text_and_bytes_and_nothing() {
        let batch = samples();
        let mut lines = String::new();
        for record in batch.iter() {
            Line { by: ("input", "in"), step: Some(5), record }.push_to(&mut lines);
        }
        insta::assert_snapshot!(lines, @r#"
        {"input":"in","step":5,"source":"orders","partition":3,"offset":7,"end_offset":8,"timestamp_ms":1700000000123,"timestamp_kind":"create","leader_epoch":2,"key":"k","value":"{\"id\": 7}","headers":[{"name":"trace","value_base64":"/wA="},{"name":"trace","value":null}]}
        {"input":"in","step":5,"source":"orders","partition":3,"offset":8,"end_offset":9,"key":"","value":"null","headers":[]}
        {"input":"in","step":5,"source":"orders","partition":3,"offset":12,"end_offset":13,"key":null,"value":null,"headers":[]}
        {"input":"in","step":5,"source":"orders","partition":3,"offset":13,"end_offset":14,"timestamp_ms":-1,"timestamp_kind":"create","key":"\u001b","value_base64":"8J8=","headers":[]}
        "#);
        for text in lines.lines() {
            serde_json::from_str::<serde_json::Value>(text).unwrap();
        }
    }
}
