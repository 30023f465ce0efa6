//! Records whose content follows from their place, so that any one of them can be checked alone.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rdkafka::Message;
use rdkafka::message::{Header, Headers, OwnedHeaders};
use serde_json::Value as JsonValue;

use crate::data::Seeded;

/// A record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) key: Option<Vec<u8>>,
    pub(crate) value: Option<Vec<u8>>,
    pub(crate) headers: Vec<(String, Option<Vec<u8>>)>,
}

impl Row {
    /// The record with number `n` of a partition: with and without key, headers that repeat, null and empty
    /// values, bytes that are no text.
    pub(crate) fn of(partition: u32, n: u64) -> Self {
        let mut random = Seeded((u64::from(partition) << 40) + n);
        let mut value = format!("{partition}:{n}:").into_bytes();
        for _ in 0..6 + random.below(8) {
            value.extend(random.next().to_le_bytes().map(|byte| b'a' + byte % 26));
        }
        if n % 11 == 3 {
            value.extend([0, 0xff, 0xfe, b'\n']);
        }
        let value = match n % 97 {
            50 => None,
            51 => Some(Vec::new()),
            _ => Some(value),
        };
        let key = match n % 7 {
            0 => None,
            1 => Some(Vec::new()),
            _ => Some(format!("key {}", n % 1000).into_bytes()),
        };
        let headers = match n % 5 {
            2 => vec![
                ("trace".into(), Some(vec![0xc3, 0x28])),
                ("again".into(), None),
                ("again".into(), Some(n.to_string().into_bytes())),
            ],
            _ => Vec::new(),
        };
        Self { key, value, headers }
    }

    pub(crate) fn of_message(message: &impl Message) -> Self {
        let headers = message.headers().map_or_else(Vec::new, |headers| {
            let owned = |header: Header<'_, &[u8]>| {
                (header.key.to_owned(), header.value.map(<[u8]>::to_vec))
            };
            headers.iter().map(owned).collect()
        });
        Self {
            key: message.key().map(<[u8]>::to_vec),
            value: message.payload().map(<[u8]>::to_vec),
            headers,
        }
    }

    /// The partition, the offset and the record in a line of JSON that the program wrote.
    pub(crate) fn of_json(line: &[u8]) -> (u32, u64, Self) {
        let object: JsonValue = serde_json::from_slice(line).unwrap();
        let bytes = |value: &JsonValue| match value {
            JsonValue::String(text) => Some(text.clone().into_bytes()),
            JsonValue::Object(object) => {
                Some(STANDARD.decode(object["base64"].as_str().unwrap()).unwrap())
            }
            _ => None,
        };
        let header = |header: &JsonValue| {
            let name = header["name"].as_str().unwrap().to_owned();
            (name, bytes(&header["value"]))
        };
        let headers = object["headers"].as_array();
        let row = Self {
            key: bytes(&object["key"]),
            value: bytes(&object["value"]),
            headers: headers.map_or_else(Vec::new, |headers| headers.iter().map(header).collect()),
        };
        let partition = object["partition"].as_u64().unwrap();
        (partition as u32, object["offset"].as_u64().unwrap(), row)
    }

    pub(crate) fn owned_headers(&self) -> Option<OwnedHeaders> {
        let add = |headers: OwnedHeaders, (key, value): &(String, Option<Vec<u8>>)| {
            headers.insert(Header { key, value: value.as_ref() })
        };
        (!self.headers.is_empty()).then(|| self.headers.iter().fold(OwnedHeaders::new(), add))
    }
}

/// Holds what came, in order, against what each partition must hold.
#[derive(Debug, Default)]
pub(crate) struct Check {
    next: BTreeMap<u32, u64>,
}

impl Check {
    /// The next record of the partition is this one.
    pub(crate) fn take(&mut self, partition: u32, row: &Row) {
        let next = self.next.entry(partition).or_default();
        let expected = Row::of(partition, *next);
        assert!(
            *row == expected,
            "partition {partition}, record {next}: {row:?} instead of {expected:?}"
        );
        *next += 1;
    }

    /// So many records came of each partition.
    pub(crate) fn end(self, each: &BTreeMap<u32, u64>) {
        assert_eq!(self.next, *each, "records of each partition");
    }
}
