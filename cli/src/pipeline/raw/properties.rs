//! Properties of a client library, by its names, and what of them may be seen: only the names.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{Error, MapAccess, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Properties in the file's order; no name occurs twice.
#[derive(Debug, Default)]
pub(crate) struct Properties(pub(crate) Vec<(String, Property)>);

/// What a property is set to.
pub(crate) enum Property {
    /// This.
    Value(String),
    /// The content of this file, relative to the pipeline file.
    File(String),
}

impl Properties {
    /// The value of a property that is set, and not by a file.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|(known, property)| match property {
            Property::Value(value) if known == name => Some(value.as_str()),
            _ => None,
        })
    }
}

/// Nothing: any of them may be secret, and none of them belongs into a default or a list of settings.
impl Serialize for Properties {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(std::iter::empty::<(&str, &str)>())
    }
}

/// Any value may be secret.
impl fmt::Debug for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(_) => f.write_str("***"),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

struct PropertiesVisitor;

impl<'de> Visitor<'de> for PropertiesVisitor {
    type Value = Properties;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a mapping from the names of properties to their values")
    }

    fn visit_unit<E>(self) -> Result<Properties, E> {
        Ok(Properties::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Properties, A::Error> {
        let mut properties = Vec::new();
        while let Some(property) = map.next_entry()? {
            properties.push(property);
        }
        Ok(Properties(properties))
    }
}

impl<'de> Deserialize<'de> for Properties {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PropertiesVisitor)
    }
}

impl JsonSchema for Properties {
    fn schema_name() -> Cow<'static, str> {
        "Properties".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "additionalProperties": {
                "anyOf": [
                    { "type": ["string", "number", "boolean"] },
                    {
                        "type": "object",
                        "properties": {
                            "file": {
                                "description": "A file whose content is the value, without the \
                                    newline at its end. Relative to the pipeline file.",
                                "type": "string",
                                "minLength": 1,
                            },
                        },
                        "required": ["file"],
                        "additionalProperties": false,
                    },
                ],
            },
        })
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FromFile {
    file: String,
}

struct PropertyVisitor;

impl<'de> Visitor<'de> for PropertyVisitor {
    type Value = Property;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, a number, true, false or {file: PATH}")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Property, E> {
        Ok(Property::Value(value.to_string()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Property, E> {
        Ok(Property::Value(value.to_string()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Property, E> {
        Ok(Property::Value(value.to_string()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Property, E> {
        if value.is_finite() {
            Ok(Property::Value(value.to_string()))
        } else {
            Err(E::invalid_value(Unexpected::Float(value), &self))
        }
    }

    fn visit_str<E>(self, value: &str) -> Result<Property, E> {
        Ok(Property::Value(value.to_owned()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Property, A::Error> {
        let FromFile { file } = FromFile::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Property::File(file))
    }
}

impl<'de> Deserialize<'de> for Property {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PropertyVisitor)
    }
}
