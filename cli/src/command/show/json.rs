//! Records as JSON, for programs. Pure.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lockgate_core::{Header, Record, TimestampKind};
use serde_json::Value as JsonValue;

/// One line. Bytes are text where they are UTF-8, and otherwise base64 under another name.
pub(super) fn line(input: &str, step: Option<u64>, record: &Record<'_>) -> String {
    let mut members = vec![
        ("input", input.into()),
        ("step", step.into()),
        ("source", record.partition.source.as_str().into()),
        ("partition", record.partition.number.into()),
        ("offset", record.offset.into()),
        ("end_offset", record.end_offset.into()),
    ];
    if let Some(timestamp) = record.timestamp {
        let kind = match timestamp.kind {
            TimestampKind::Create => "create",
            TimestampKind::LogAppend => "log_append",
        };
        members.extend([("timestamp_ms", timestamp.ms.into()), ("timestamp_kind", kind.into())]);
    }
    if let Some(epoch) = record.leader_epoch {
        members.push(("leader_epoch", epoch.into()));
    }
    members.push(member("key", "key_base64", record.key));
    members.push(member("value", "value_base64", record.value));
    members.push(("headers", record.headers.iter().map(header).collect()));
    // In this order, which a map would lose.
    let members = members.iter().map(|(name, value)| format!("{}:{value}", JsonValue::from(*name)));
    format!("{{{}}}\n", members.collect::<Vec<_>>().join(","))
}

fn header(header: Header<'_>) -> JsonValue {
    let name = member("name", "name_base64", Some(header.name));
    let value = member("value", "value_base64", header.value);
    [name, value].into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn member(
    name: &'static str,
    base64_name: &'static str,
    bytes: Option<&[u8]>,
) -> (&'static str, JsonValue) {
    match bytes.map(|bytes| std::str::from_utf8(bytes).map_err(|_| bytes)) {
        None => (name, JsonValue::Null),
        Some(Ok(text)) => (name, text.into()),
        Some(Err(bytes)) => (base64_name, STANDARD.encode(bytes).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::tests::samples;
    use super::*;

    #[test]
    fn text_and_bytes_and_nothing() {
        let batch = samples();
        let lines: String = batch.iter().map(|record| line("in", Some(5), &record)).collect();
        insta::assert_snapshot!(lines, @r#"
        {"input":"in","step":5,"source":"orders","partition":3,"offset":7,"end_offset":8,"timestamp_ms":1700000000123,"timestamp_kind":"create","leader_epoch":2,"key":"k","value":"{\"id\": 7}","headers":[{"name":"trace","value_base64":"/wA="},{"name":"trace","value":null}]}
        {"input":"in","step":5,"source":"orders","partition":3,"offset":8,"end_offset":9,"key":"","value":"null","headers":[]}
        {"input":"in","step":5,"source":"orders","partition":3,"offset":12,"end_offset":13,"key":null,"value":null,"headers":[]}
        {"input":"in","step":5,"source":"orders","partition":3,"offset":13,"end_offset":14,"timestamp_ms":-1,"timestamp_kind":"create","key":"\u001b","value_base64":"8J8=","headers":[]}
        "#);
        for text in lines.lines() {
            serde_json::from_str::<JsonValue>(text).unwrap();
        }
    }
}
