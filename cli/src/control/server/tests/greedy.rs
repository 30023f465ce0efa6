//! Clients that want too much, are too slow, or make no sense.

use std::io::{Read, Write};
use std::time::Instant;

use super::super::office::MAX_CONNECTIONS;
use super::subject::Subject;
use super::wire::{connect, finish, send};

#[test]
fn what_makes_no_sense_is_answered_or_closed() {
    let subject = Subject::new();
    let address = subject.address();
    let long = "x".repeat(20_000);
    let many: String = (0..100).map(|n| format!("X-{n}: 1\r\n")).collect();
    for (request, expected) in [
        ("\r\n\r\n\r\n\0".to_owned(), &[400, 0][..]),
        ("GET\r\n\r\n".to_owned(), &[400]),
        ("GET / HTTP/9.9\r\n\r\n".to_owned(), &[400, 505]),
        ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned(), &[400, 505, 0]),
        ("\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}\u{fc}\u{3}\u{3}\r\n".to_owned(), &[400, 0]),
        ("GET / HTTP/1.1\r\n\r\n".to_owned(), &[400]),
        ("GET / HTTP/1.0\r\n\r\n".to_owned(), &[400]),
        (format!("GET /{long} HTTP/1.1\r\nHost: {address}\r\n\r\n"), &[414, 431]),
        (format!("GET / HTTP/1.1\r\nHost: {address}\r\nX: {long}\r\n\r\n"), &[431]),
        (format!("GET / HTTP/1.1\r\nHost: {address}\r\n{many}\r\n"), &[431]),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n".to_owned(), &[403]),
        (
            format!(
                "POST /api/v1/stop HTTP/1.1\r\nHost: {address}\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n{{}}"
            ),
            &[400],
        ),
    ] {
        let answer = send(address, request.as_bytes());
        let shown: String = request.chars().take(60).collect();
        assert!(expected.contains(&answer.status), "{shown:?}: {answer:?}");
    }
    assert_eq!(subject.get("/healthz").status, 200);
}

#[test]
fn a_huge_body_is_refused() {
    let subject = Subject::new();
    let body = "x".repeat(70_000);
    let answer = subject.post("/api/v1/pause", &body);
    // The connection may be gone before the answer is read.
    assert!([413, 0].contains(&answer.status), "{answer:?}");
    let address = subject.address();
    let head = format!(
        "POST /api/v1/pause HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Content-Length: 99999999999\r\n\r\n"
    );
    assert_eq!(send(address, head.as_bytes()).status, 413);
}

/// A head that never ends, a body that never comes, and a connection without a request.
#[test]
fn whoever_is_slow_is_left() {
    let subject = Subject::new();
    let address = subject.address();
    let begin = |text: &str| {
        let mut stream = connect(address);
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let silent = begin("");
    let head = begin("GET / HTTP/1.1\r\nHost: loc");
    let body = begin(&format!(
        "POST /api/v1/pause HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: 5\r\n\r\n{{"
    ));
    assert_eq!(finish(body).status, 408);
    assert!([408, 0].contains(&finish(head).status));
    assert!([408, 0].contains(&finish(silent).status));
}

/// Connections that do nothing keep nobody else out.
#[test]
fn more_clients_than_seats_get_their_turn() {
    let subject = Subject::new();
    let address = subject.address();
    let idle: Vec<_> = (0..MAX_CONNECTIONS + 10).map(|_| connect(address)).collect();
    assert_eq!(subject.get("/healthz").status, 200);
    drop(idle);
}

#[test]
fn a_greedy_client_is_slowed_down_and_not_refused() {
    let subject = Subject::new();
    let mut stream = connect(subject.address());
    let begun = Instant::now();
    let request = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let last = "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all((request.repeat(39) + last).as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 40);
    // Ten at once, and then fifty a second.
    assert!(begun.elapsed().as_millis() >= 580, "{:?}", begun.elapsed());
}
