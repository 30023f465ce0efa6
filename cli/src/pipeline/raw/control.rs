//! The sections `control` and `log` as they are typed.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::choice::{LogFormat, LogLevel};

/// What a target of the log may look like, for the JSON Schema; [`checked`](super::super::checked) has the same rule.
const TARGET_PATTERN: &str = "^[A-Za-z0-9_]+(::[A-Za-z0-9_]+)*$";

/// Where a running pipeline can be asked and steered.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Control")]
pub(crate) struct RawControl {
    /// Where to listen: `HOST:PORT`, the host an IP address or `localhost`. With port 0 a free one is taken. An
    /// address that other machines reach needs token_file.
    pub(crate) listen: String,
    /// A file whose content is the token that every request has to show, without white space around it. Relative to
    /// the pipeline file; read at the start, and whenever the pipeline is reloaded.
    pub(crate) token_file: Option<String>,
    /// With a certificate, requests come in over TLS.
    pub(crate) tls: Option<RawTls>,
}

/// Who the server is, for TLS.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Tls")]
pub(crate) struct RawTls {
    /// The certificate and those that lead to its issuer, in one PEM file. Relative to the pipeline file.
    pub(crate) certificate: String,
    /// Its private key, a PEM file. Relative to the pipeline file.
    pub(crate) key: String,
}

/// What is logged, and how.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Log")]
pub(crate) struct RawLog {
    /// How much is logged.
    #[serde(default)]
    pub(crate) level: LogLevel,
    /// How much is logged of single parts of the program, by their names, such as `lockgate_kafka_adapter`; what is
    /// below a part goes with it.
    #[serde(default)]
    #[schemars(extend("propertyNames" = { "pattern": TARGET_PATTERN }))]
    pub(crate) targets: BTreeMap<String, LogLevel>,
    /// How a line is written.
    #[serde(default)]
    pub(crate) format: LogFormat,
}
