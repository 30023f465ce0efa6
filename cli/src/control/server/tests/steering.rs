//! Steering, and what is answered when the run ends meanwhile.

use std::io::{BufRead, BufReader, Write};

use serde_json::json;

use super::subject::Subject;
use super::wire::{Answer, connect, finish};

fn paused(subject: &Subject) -> serde_json::Value {
    let inputs = &subject.json("/api/v1/status")["inputs"];
    json!([inputs[0]["paused"], inputs[1]["paused"]])
}

#[test]
fn inputs_are_paused_and_resumed_by_name() {
    let mut subject = Subject::new();
    subject.run();
    let answer = subject.post("/api/v1/pause", r#"{"inputs": ["users", "users"]}"#);
    assert_eq!(answer.json(), json!({"inputs": ["users"], "durable": true}));
    subject.until("it is seen", |subject| paused(subject) == json!([[], ["user"]]));
    let answer = subject.post("/api/v1/pause", "{}");
    assert_eq!(answer.json(), json!({"inputs": ["orders", "users"], "durable": true}));
    subject.until("it is seen", |subject| paused(subject) == json!([["user"], ["user"]]));
    assert_eq!(subject.post("/api/v1/resume", "").status, 200);
    subject.until("it is seen", |subject| paused(subject) == json!([[], []]));

    let check = |body: &str, status: u16, error: &str| {
        let answer = subject.post("/api/v1/pause", body);
        assert_eq!(answer.status, status, "{}", answer.body);
        assert!(answer.error().contains(error), "{}", answer.body);
    };
    check(r#"{"inputs": ["users", "order"]}"#, 404, "did you mean orders?");
    check(r#"{"input": ["users"]}"#, 400, "unknown field `input`");
    check("[", 400, "EOF");
    check(&format!("[{}", "[".repeat(60_000)), 400, "the body is not what is known");
    assert_eq!(paused(&subject), json!([[], []]));
}

#[test]
fn a_checkpoint_covers_what_was_read() {
    let mut subject = Subject::new();
    subject.run();
    subject.append("orders", "one\n");
    let is_out = |subject: &Subject| !subject.output.values().is_empty();
    subject.until("the record is out", is_out);
    let answer = subject.post("/api/v1/checkpoint", "").json();
    assert!(answer["step"].as_u64().unwrap() >= 1, "{answer}");
    let changes = json!([{"path": "checkpoint_interval", "was": "10s", "is": "20s"}]);
    assert_eq!(subject.post("/api/v1/reload", "").json(), json!({"changes": changes}));
}

#[test]
fn where_nothing_is_stored_there_is_no_checkpoint() {
    let mut subject = Subject::with("none", None);
    subject.run();
    for steer in ["checkpoint", "suspend"] {
        let answer = subject.post(&format!("/api/v1/{steer}"), "");
        assert_eq!(answer.status, 409, "{}", answer.body);
        assert!(answer.error().contains("delivery is none"), "{}", answer.body);
    }
    let answer = subject.post("/api/v1/pause", r#"{"inputs": ["users"]}"#);
    assert_eq!(answer.json(), json!({"inputs": ["users"], "durable": false}));
    let answer = subject.post("/api/v1/stop", "");
    assert_eq!(answer.json(), json!({"step": null, "complete": true}));
}

#[test]
fn suspending_and_stopping_answer_when_the_run_has_ended() {
    for steer in ["suspend", "stop"] {
        let mut subject = Subject::new();
        subject.run();
        subject.append("users", "one\n");
        subject.until("the record is out", |subject| !subject.output.values().is_empty());
        let answer = subject.post(&format!("/api/v1/{steer}"), "{}");
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert!(answer.json()["step"].as_u64().unwrap() >= 1, "{}", answer.body);
        subject.until("it has ended", |subject| subject.json("/api/v1/status")["phase"] == "ended");
        assert_eq!(subject.get("/readyz").body, "the run has ended\n");
        // What is asked of a run that has ended is answered, too.
        let answer = subject.post("/api/v1/checkpoint", "");
        assert_eq!((answer.status, answer.error().as_str()), (503, "the run has ended"));
    }
}

#[test]
fn a_stop_while_the_pipeline_is_opened_is_answered_when_the_server_stops() {
    let mut subject = Subject::new();
    let mut waiting = connect(subject.address());
    let address = subject.address();
    let request = format!(
        "POST /api/v1/stop HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: 0\r\n\r\n"
    );
    waiting.write_all(request.as_bytes()).unwrap();
    // The wish has been heard when nobody waits for wishes any more.
    let wishes = subject.take_wishes();
    wishes.join().unwrap();
    drop(subject.server.take());
    let answer = finish(waiting);
    assert_eq!(answer.json(), json!({"step": null, "complete": true}));
}

#[test]
fn records_are_seen_as_they_pass_by() {
    let mut subject = Subject::new();
    subject.run();
    for (what, name) in [("input", "orders"), ("output", "copy")] {
        let mut waiting = connect(subject.address());
        let address = subject.address();
        let path = format!("/api/v1/tap?{what}={name}&n=3");
        let request =
            format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
        waiting.write_all(request.as_bytes()).unwrap();
        // When the head has come, the tap is open.
        let mut reader = BufReader::new(waiting);
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            reader.read_line(&mut line).unwrap();
        }
        subject.append("orders", "a\nb\nc\nd\n");
        let mut text = String::from("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
        let records: Vec<serde_json::Value> = Answer::from_text(&text)
            .body
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(records.len(), 3);
        assert_eq!((&records[0][what], &records[2]["value"]), (&json!(name), &json!("c")));
    }
}

#[test]
fn a_tap_ends_with_the_run() {
    let mut subject = Subject::new();
    subject.run();
    let address = subject.address();
    let mut waiting = connect(address);
    let path = "/api/v1/tap?input=users";
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    waiting.write_all(request.as_bytes()).unwrap();
    let mut first = [0; 8];
    std::io::Read::read_exact(&mut waiting, &mut first).unwrap();
    assert_eq!(subject.post("/api/v1/stop", "").status, 200);
    assert_eq!(&first, b"HTTP/1.1");
    assert_eq!(finish(waiting).body, "");
}
