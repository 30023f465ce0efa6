//! Requests and answers as bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value as JsonValue;

use super::subject::DEADLINE;

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    /// 0 if the connection was closed without an answer.
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Answer {
    pub(super) fn from_text(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let head = head.to_ascii_lowercase();
        let chunked = head.contains("transfer-encoding: chunked");
        let body = if chunked { unchunked(body) } else { body.to_owned() };
        Self { status: status.unwrap_or(0), head, body }
    }

    pub(super) fn json(&self) -> JsonValue {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(super) fn error(&self) -> String {
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        whole += &rest[..size];
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

pub(super) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    stream.set_write_timeout(Some(DEADLINE)).unwrap();
    stream
}

/// Sends these bytes and reads to the end of the connection.
pub(super) fn send(address: SocketAddr, bytes: &[u8]) -> Answer {
    let mut stream = connect(address);
    // A server may have answered and gone before all is sent.
    let _ = stream.write_all(bytes);
    finish(stream)
}

/// Reads to the end of the connection.
pub(super) fn finish(mut stream: TcpStream) -> Answer {
    let mut text = Vec::new();
    match stream.read_to_end(&mut text) {
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
        Err(error) => panic!("reading an answer: {error}"),
    }
    Answer::from_text(&String::from_utf8_lossy(&text))
}

/// A request with this head, to which `Host` and `Connection: close` are added.
pub(super) fn ask(address: SocketAddr, head: &str, body: &str) -> Answer {
    let length = body.len();
    let request = format!(
        "{head}\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    send(address, request.as_bytes())
}
