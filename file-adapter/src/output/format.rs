//! How a record is written: as a line, or as a JSON object on a line.
//!
//! A line is the value and `\n`, and an absent value an empty line. Values are not looked into: one that
//! contains `\n` becomes several lines.
//!
//! A JSON object has its members in this order:
//!
//! | member | |
//! |---|---|
//! | `source` | the file's path or the topic's name |
//! | `partition` | its number; left out if the source has only one |
//! | `offset` | the record's place in it |
//! | `timestamp` | milliseconds since the Unix epoch; left out if there is none |
//! | `key` | left out if there is none |
//! | `headers` | a list of `{"name":…,"value":…}`; left out if there are none |
//! | `value` | always there; `null` if there is none |
//!
//! So `source`, `offset` and `value` are always there, and the rest if and only if the record has it.
//! Keys, values, names and values of headers are strings if they are UTF-8 and `{"base64":"…"}`
//! otherwise; the value of a header may be `null`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use lockgate_core::{Batch, Framing, Record};
use memchr::memchr_iter;

use super::DIRECT_BYTES;
use crate::config::OutputFormat;

/// Cuts a batch in two: a front whose framed bytes are what is to be written as they are, and the records
/// after it, which have to be [formatted](append). One scan for `\r\n`, nothing per record.
pub(super) fn split(format: OutputFormat, batch: &Batch) -> (Batch, Batch) {
    let mut formatted = batch.clone();
    let ready = match (format, batch.framed()) {
        (OutputFormat::Lines, Some((Framing::Lines, bytes))) if !has_crlf(bytes) => {
            // Only the last line of a batch can lack its newline: that of a file, or one cut short.
            batch.len() - usize::from(bytes.last().is_some_and(|byte| *byte != b'\n'))
        }
        _ => 0,
    };
    let ready = formatted.take_front(ready);
    (ready, formatted)
}

fn has_crlf(bytes: &[u8]) -> bool {
    memchr_iter(b'\r', bytes).any(|at| bytes.get(at + 1) == Some(&b'\n'))
}

/// The value of a record of which nothing but the value and a newline is to be written, if it is so large
/// that it is better written from where it lies than copied.
pub(super) fn large_value<'a>(format: OutputFormat, record: &Record<'a>) -> Option<&'a [u8]> {
    record.value.filter(|value| format == OutputFormat::Lines && value.len() >= DIRECT_BYTES)
}

/// Appends one record to `out`.
pub(super) fn append(format: OutputFormat, record: &Record<'_>, out: &mut Vec<u8>) {
    match format {
        OutputFormat::Lines => out.extend_from_slice(record.value.unwrap_or_default()),
        OutputFormat::Json => object(record, out),
    }
    out.push(b'\n');
}

fn object(record: &Record<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"source\":");
    string(&record.partition.source, out);
    if let Some(number) = record.partition.number {
        out.extend_from_slice(b",\"partition\":");
        integer(number, out);
    }
    out.extend_from_slice(b",\"offset\":");
    integer(record.offset, out);
    if let Some(timestamp) = record.timestamp {
        out.extend_from_slice(b",\"timestamp\":");
        integer(timestamp.ms, out);
    }
    if let Some(key) = record.key {
        out.extend_from_slice(b",\"key\":");
        bytes(key, out);
    }
    if !record.headers.is_empty() {
        out.extend_from_slice(b",\"headers\":");
        for (i, header) in record.headers.iter().enumerate() {
            out.extend_from_slice(if i == 0 { b"[{\"name\":" } else { b",{\"name\":" });
            bytes(header.name, out);
            out.extend_from_slice(b",\"value\":");
            bytes_or_null(header.value, out);
            out.push(b'}');
        }
        out.push(b']');
    }
    out.extend_from_slice(b",\"value\":");
    bytes_or_null(record.value, out);
    out.push(b'}');
}

fn bytes_or_null(content: Option<&[u8]>, out: &mut Vec<u8>) {
    match content {
        Some(content) => bytes(content, out),
        None => out.extend_from_slice(b"null"),
    }
}

fn bytes(content: &[u8], out: &mut Vec<u8>) {
    match std::str::from_utf8(content) {
        Ok(text) => string(text, out),
        Err(_) => {
            out.extend_from_slice(b"{\"base64\":\"");
            base64(content, out);
            out.extend_from_slice(b"\"}");
        }
    }
}

fn string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("a Vec takes everything and a string is valid JSON");
}

fn integer(number: impl itoa::Integer, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

fn base64(content: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    // Four characters for each three bytes begun.
    out.resize(start + content.len().div_ceil(3) * 4, 0);
    STANDARD.encode_slice(content, &mut out[start..]).expect("there is room for all characters");
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockgate_core::{BatchBuilder, Header, NewRecord, Partition, Timestamp};

    use super::super::tests::samples::{lines, rows};
    use super::*;

    fn formatted(format: OutputFormat, batches: &[Batch]) -> Vec<u8> {
        let mut out = Vec::new();
        for record in batches.iter().flat_map(|batch| batch.iter()) {
            append(format, &record, &mut out);
        }
        out
    }

    fn json(batches: &[Batch]) -> String {
        String::from_utf8(formatted(OutputFormat::Json, batches)).unwrap()
    }

    #[test]
    fn null_empty_and_bytes_that_are_not_text_differ_and_headers_repeat_in_order() {
        let topic = Arc::new(Partition { source: "orders".into(), number: Some(3) });
        let mut builder = BatchBuilder::new(topic);
        let headers = [
            Header { name: b"trace", value: Some(b"1") },
            Header { name: b"trace", value: None },
            Header { name: b"trace", value: Some(b"") },
            Header { name: b"\xff", value: Some(b"\x00\xfe") },
        ];
        for record in [
            NewRecord { offset: 7, value: Some(b"text"), ..Default::default() },
            NewRecord { offset: 8, value: None, ..Default::default() },
            NewRecord { offset: 9, value: Some(b""), key: Some(b""), ..Default::default() },
            NewRecord {
                offset: u64::MAX - 1,
                timestamp: Some(Timestamp::created(-1)),
                leader_epoch: None,
                key: Some(b"\xc3\x28"),
                value: Some("\u{feff}\"q\" \\ \n\t\u{1} \u{e9}\u{1f600}".as_bytes()),
                headers: &headers,
            },
        ] {
            builder.push(record).unwrap();
        }
        insta::assert_snapshot!(json(&[builder.build()]), @r#"
        {"source":"orders","partition":3,"offset":7,"value":"text"}
        {"source":"orders","partition":3,"offset":8,"value":null}
        {"source":"orders","partition":3,"offset":9,"key":"","value":""}
        {"source":"orders","partition":3,"offset":18446744073709551614,"timestamp":-1,"key":{"base64":"wyg="},"headers":[{"name":"trace","value":"1"},{"name":"trace","value":null},{"name":"trace","value":""},{"name":{"base64":"/w=="},"value":{"base64":"AP4="}}],"value":"﻿\"q\" \\ \n\t\u0001 é😀"}
        "#);
    }

    #[test]
    fn a_line_of_a_file_has_neither_partition_nor_timestamp_nor_key() {
        insta::assert_snapshot!(json(&[lines("a\n\r\n"), lines(b"\xf0\x28\n")]), @r#"
        {"source":"in/a.log","offset":0,"value":"a"}
        {"source":"in/a.log","offset":2,"value":""}
        {"source":"in/a.log","offset":0,"value":{"base64":"8Cg="}}
        "#);
    }

    #[test]
    fn json_is_json_and_base64_gives_the_bytes_back() {
        for value in [&b"\xff"[..], b"\xff\xff", b"\xff\xff\xff", b"\xff\xff\xff\xff"] {
            let text = json(&[rows(&[Some(value)])]);
            let object: serde_json::Value = serde_json::from_str(&text).unwrap();
            let decoded = STANDARD.decode(object["value"]["base64"].as_str().unwrap()).unwrap();
            assert_eq!(decoded, value);
        }
    }

    #[test]
    fn what_is_ready_is_what_would_be_formatted() {
        let check = |text: &[u8], expected_ready: usize| {
            let batch = lines(text);
            let (ready, rest) = split(OutputFormat::Lines, &batch);
            assert_eq!(ready.len(), expected_ready, "{text:?}");
            let mut out = ready.framed().unwrap().1.to_vec();
            out.extend(formatted(OutputFormat::Lines, &[rest]));
            assert_eq!(out, formatted(OutputFormat::Lines, &[batch]), "{text:?}");
        };
        check(b"", 0);
        check(b"a\nb\n", 2);
        check(b"a\nb", 1);
        check(b"\n\n", 2);
        check(b"a\rb\n\r", 1);
        check(b"a\r\r\nb\n", 0);
        check(b"a\nb\r\n", 0);
        let (ready, _) = split(OutputFormat::Json, &lines("a\n"));
        assert!(ready.is_empty());
    }
}
