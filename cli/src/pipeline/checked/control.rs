//! The sections `control` and `log` as they will run.
//!
//! For who may reach a running pipeline, and for what is said about it. Deliberately not for opening a port or reading
//! a certificate: only the token is read here, as secrets are.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::super::choice::{LogFormat, LogLevel};
use super::super::error::{Fault, KeyPath};
use super::super::raw::{RawControl, RawLog};
use super::Checker;
use crate::control::{TlsFiles, Token};

/// The only name of a host that means the same everywhere.
const LOCALHOST: &str = "localhost";

/// Where a running pipeline can be asked and steered.
#[derive(Debug)]
pub(crate) struct Control {
    /// Where to listen; with port 0 a free one is taken. Reachable by other machines only if there is a token.
    pub(crate) listen: SocketAddr,
    /// What every request has to show.
    pub(crate) token: Option<Token>,
    /// The file that it is in.
    pub(crate) token_file: Option<PathBuf>,
    /// Who the server is; `None`: requests come in without TLS.
    pub(crate) tls: Option<TlsFiles>,
}

/// What is logged, and how.
#[derive(Debug, Default)]
pub(crate) struct Log {
    /// How much.
    pub(crate) level: LogLevel,
    /// How much of single parts of the program, by their names.
    pub(crate) targets: BTreeMap<String, LogLevel>,
    /// How a line is written.
    pub(crate) format: LogFormat,
}

impl Checker<'_> {
    pub(super) fn control(&self, raw: &RawControl) -> Result<Control, Fault> {
        let path = KeyPath::root().key("control");
        let listen = self.listen(&path.key("listen"), &raw.listen)?;
        if !listen.ip().is_loopback() && raw.token_file.is_none() {
            let message = "other machines reach this address, and whoever does could steer the pipeline: set \
                token_file, or listen on 127.0.0.1";
            return self.fault(&path.key("listen"), message);
        }
        let token = raw.token_file.as_ref();
        let token = token.map(|file| self.token(&path.key("token_file"), file)).transpose()?;
        let tls = path.key("tls");
        let tls = |raw: &super::super::raw::RawTls| {
            let certificate = self.path(&tls.key("certificate"), &raw.certificate)?;
            Ok(TlsFiles { certificate, key: self.path(&tls.key("key"), &raw.key)? })
        };
        let tls = raw.tls.as_ref().map(tls).transpose()?;
        let token_file = raw.token_file.as_ref();
        let token_file =
            token_file.map(|file| self.path(&path.key("token_file"), file)).transpose()?;
        Ok(Control { listen, token, token_file, tls })
    }

    /// The address that `text` is. A name that somebody else resolves may lead anywhere.
    fn listen(&self, path: &KeyPath, text: &str) -> Result<SocketAddr, Fault> {
        if let Some(address) = address(text) {
            return Ok(address);
        }
        let found = self.root.nearest(path).found();
        let is_name = text.rsplit_once(':').is_some_and(|(host, port)| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
            let is_number = host.chars().all(|c| c.is_ascii_digit() || c == '.');
            !host.is_empty() && !is_number && host.chars().all(allowed) && is_port(port)
        });
        let message = match is_name {
            true => format!(
                "an IP address is needed before the port, or {LOCALHOST}, since another name may lead anywhere, \
                 found {found}"
            ),
            false => {
                format!("expected HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080, found {found}")
            }
        };
        self.fault(path, message)
    }

    fn token(&self, path: &KeyPath, file: &str) -> Result<Token, Fault> {
        let content = self.secret_file(path, file)?;
        Token::new(&content)
            .or_else(|what| self.fault(path, format!("the file is no token: {what}")))
    }

    pub(super) fn log(&self, raw: &RawLog) -> Result<Log, Fault> {
        let path = KeyPath::root().key("log").key("targets");
        for target in raw.targets.keys() {
            if !is_target(target) {
                let message = "a target is the name of a part of the program: letters, digits and \"_\", with \
                    \"::\" between a part and what is below it";
                return self.fault_of_key(&path.key(target), message);
            }
        }
        Ok(Log { level: raw.level, targets: raw.targets.clone(), format: raw.format })
    }
}

fn address(text: &str) -> Option<SocketAddr> {
    match text.strip_prefix(LOCALHOST).and_then(|rest| rest.strip_prefix(':')) {
        Some(port) if is_port(port) => {
            Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?))
        }
        _ => text.parse().ok(),
    }
}

fn is_port(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<u16>().is_ok()
}

fn is_target(name: &str) -> bool {
    let is_part = |part: &str| {
        !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    name.split("::").all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let check = |text: &str, expected: Option<&str>| {
            let found = address(text).map(|address| address.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        check("127.0.0.1:8080", Some("127.0.0.1:8080"));
        check("0.0.0.0:0", Some("0.0.0.0:0"));
        check("[::1]:80", Some("[::1]:80"));
        check("localhost:8080", Some("127.0.0.1:8080"));
        for other in [
            "",
            "8080",
            ":8080",
            "127.0.0.1",
            "::1:80",
            "localhost",
            "localhost:",
            "localhost:+1",
            "localhost:65536",
            "localhost.example:80",
            "example.org:80",
            "127.0.0.1:65536",
        ] {
            check(other, None);
        }
    }

    #[test]
    fn a_token_is_read_without_what_surrounds_it_and_opens_the_address() {
        let directory = tempfile::tempdir().expect("a directory for the test");
        std::fs::write(directory.path().join("token"), "\n hunter2\r\n\n").expect("writes");
        let control = |listen: &str, token_file: &str| {
            let text = format!(
                "name: x\ncontrol: {{listen: '{listen}'{token_file}}}\n\
                 inputs: {{a: {{file: {{paths: i}}}}}}\noutputs: {{b: {{null: }}}}"
            );
            let path = directory.path().join("pipeline.yaml");
            let pipeline = crate::pipeline::parse(&text, &path, &|_| None).expect("valid");
            assert!(!format!("{pipeline:?}").contains("hunter2"));
            pipeline.control.expect("is there")
        };
        for listen in ["0.0.0.0:1", "[::]:1", "10.0.0.1:1"] {
            let control = control(listen, ", token_file: token");
            assert!(control.token.is_some_and(|token| token.is(b"hunter2")));
        }
        for listen in ["127.0.0.1:1", "127.255.0.1:1", "[::1]:0", "localhost:1"] {
            assert!(control(listen, "").token.is_none());
        }
    }

    #[test]
    fn targets() {
        let check = |name: &str, expected| assert_eq!(is_target(name), expected, "{name:?}");
        for name in ["lockgate", "a::b_2::C"] {
            check(name, true);
        }
        for name in ["", "::", "a::", "::a", "a:b", "a b", "a::::b", "a-b", "é"] {
            check(name, false);
        }
    }
}
