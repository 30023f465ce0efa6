//! Whether a broker answers, asked in Kafka's own protocol: an open port says nothing.
//!
//! Two requests in the oldest versions that Kafka 4 takes, so that their bytes are few. Not a client.
//! Source: the protocol guide in Kafka's documentation, "ApiVersions" and "Metadata".

use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};

const METADATA: (u16, u16) = (3, 1);
const API_VERSIONS: (u16, u16) = (18, 0);

/// What every request carries and every response brings back.
const CORRELATION_ID: i32 = 0x0010_c6a7;

/// More than any of our two responses has.
const LONGEST_RESPONSE_BYTES: usize = 1 << 20;

/// Asks the servers (`HOST:PORT`, commas between) in turn until one answers.
pub(super) fn answers(bootstrap: &str, within: Duration) -> Result<()> {
    let mut last = anyhow!("no server in {bootstrap:?}");
    for address in bootstrap.split(',').map(str::trim).filter(|address| !address.is_empty()) {
        match ask(address, API_VERSIONS, &[], within).and_then(|body| check_versions(&body)) {
            Ok(()) => return Ok(()),
            Err(error) => last = error.context(format!("asking {address}")),
        }
    }
    Err(last)
}

/// The numbers of the brokers that this one knows to be alive (registered, not fenced), in order.
pub(super) fn alive_brokers(address: &str, within: Duration) -> Result<Vec<u32>> {
    // An empty list of topics: only the brokers are of interest.
    let body = ask(address, METADATA, &0_i32.to_be_bytes(), within)?;
    brokers_in(&body)
}

fn ask(address: &str, api: (u16, u16), body: &[u8], within: Duration) -> Result<Vec<u8>> {
    let socket = address.to_socket_addrs()?.next().context("the host has no address")?;
    let mut stream = TcpStream::connect_timeout(&socket, within)?;
    stream.set_read_timeout(Some(within))?;
    stream.set_write_timeout(Some(within))?;
    stream.write_all(&request(api, body))?;
    response(&mut stream)
}

/// Length, API key, API version, correlation id, client id, body.
fn request((key, version): (u16, u16), body: &[u8]) -> Vec<u8> {
    let client = b"lockgate-xtask";
    let mut bytes = Vec::new();
    bytes.extend(key.to_be_bytes());
    bytes.extend(version.to_be_bytes());
    bytes.extend(CORRELATION_ID.to_be_bytes());
    bytes.extend((client.len() as u16).to_be_bytes());
    bytes.extend(client);
    bytes.extend(body);
    let mut framed = (bytes.len() as u32).to_be_bytes().to_vec();
    framed.extend(bytes);
    framed
}

/// Length, correlation id, body; the body is returned.
fn response(from: &mut impl Read) -> Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = u32::from_be_bytes(length) as usize;
    ensure!((4..=LONGEST_RESPONSE_BYTES).contains(&length), "not Kafka: a length of {length}");
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    let body = bytes.split_off(4);
    ensure!(bytes == CORRELATION_ID.to_be_bytes(), "not Kafka: another correlation id");
    Ok(body)
}

/// Error code, then the versions, which are not looked at.
fn check_versions(body: &[u8]) -> Result<()> {
    let code = Fields(body).u16()?;
    ensure!(code == 0, "Kafka answers with error {code}");
    Ok(())
}

/// Brokers of number, host, port and rack; then more, which is not looked at.
fn brokers_in(body: &[u8]) -> Result<Vec<u32>> {
    let mut fields = Fields(body);
    let mut brokers = Vec::new();
    for _ in 0..fields.u32()? {
        brokers.push(fields.u32()?);
        fields.text()?;
        fields.u32()?;
        fields.text()?;
    }
    brokers.sort_unstable();
    Ok(brokers)
}

/// The rest of a response.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length).context("the answer is cut short")?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16> {
        Ok(u16::from_be_bytes(self.take(2)?.try_into()?))
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_be_bytes(self.take(4)?.try_into()?))
    }

    /// A text or null, which has the length -1.
    fn text(&mut self) -> Result<()> {
        let length = self.u16()?;
        let length = if length == u16::MAX { 0 } else { length };
        self.take(length.into()).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    fn framed(body: &[u8]) -> Vec<u8> {
        let mut bytes = (body.len() as u32 + 4).to_be_bytes().to_vec();
        bytes.extend(CORRELATION_ID.to_be_bytes());
        bytes.extend(body);
        bytes
    }

    /// A server that gives one answer, whatever it is asked.
    fn server(answer: Vec<u8>) -> (String, thread::JoinHandle<Vec<u8>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut length = [0; 4];
            stream.read_exact(&mut length).unwrap();
            let mut request = vec![0; u32::from_be_bytes(length) as usize];
            stream.read_exact(&mut request).unwrap();
            stream.write_all(&answer).unwrap();
            request
        });
        (address, asked)
    }

    #[test]
    fn a_request_is_framed_as_kafka_wants_it() {
        let expected = b"\0\0\0\x1b\0\x12\0\0\0\x10\xc6\xa7\0\x0elockgate-xtask\xff\xfe\xfd";
        assert_eq!(request(API_VERSIONS, &[0xff, 0xfe, 0xfd]), expected);
    }

    #[test]
    fn a_broker_that_answers_is_found_behind_one_that_does_not() {
        let (address, asked) = server(framed(&[0, 0, 0, 0, 0, 0]));
        answers(&format!("127.0.0.1:1, {address}"), SOON).unwrap();
        assert_eq!(asked.join().unwrap(), &request(API_VERSIONS, &[])[4..]);
    }

    #[test]
    fn what_is_not_kafka_is_no_answer() {
        let (address, _) = server(b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec());
        let error = format!("{:#}", answers(&address, SOON).unwrap_err());
        assert!(error.contains("not Kafka"), "{error}");
        let (address, _) = server(framed(&[0, 35]));
        let error = format!("{:#}", answers(&address, SOON).unwrap_err());
        assert!(error.contains("error 35"), "{error}");
        assert!(answers("", SOON).is_err());
    }

    #[test]
    fn the_brokers_alive_are_read_in_order() {
        let mut body = vec![0, 0, 0, 2];
        body.extend(b"\0\0\0\x03\0\x01h\0\0\x23\x84\xff\xff");
        body.extend(b"\0\0\0\x01\0\x01h\0\0\x23\x84\0\x01r");
        body.extend(b"\0\0\0\x01\0\0\0\0");
        let (address, _) = server(framed(&body));
        assert_eq!(alive_brokers(&address, SOON).unwrap(), [1, 3]);
        assert!(brokers_in(&body[..20]).is_err());
    }
}
