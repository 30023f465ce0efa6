//! What is seen, and by whom.

use std::net::TcpListener;

use serde_json::json;

use super::super::{Server, ServerSettings, Token};
use super::subject::Subject;
use crate::control::report::Report;
use crate::exit::Code;

#[test]
fn while_the_pipeline_is_opened_it_works_and_is_not_ready() {
    let subject = Subject::new();
    assert_eq!(subject.get("/healthz").status, 200);
    let ready = subject.get("/readyz");
    assert_eq!((ready.status, ready.body.as_str()), (503, "the pipeline is being opened\n"));
    assert_eq!(subject.json("/api/v1/status")["phase"], "opening");
    for path in ["/api/v1/partitions", "/api/v1/tap?input=orders"] {
        let answer = subject.get(path);
        assert_eq!(answer.status, 503, "{path}");
        assert!(answer.error().starts_with("the pipeline is being opened"), "{}", answer.body);
    }
    for steer in ["pause", "resume", "checkpoint", "suspend", "reload"] {
        assert_eq!(subject.post(&format!("/api/v1/{steer}"), "").status, 503, "{steer}");
    }
}

#[test]
fn a_run_is_seen_as_it_is() {
    let mut subject = Subject::new();
    subject.run();
    subject.append("orders", "one\ntwo\n");
    let records = |subject: &Subject| subject.json("/api/v1/status")["outputs"][0]["records"] == 2;
    subject.until("two records are out", records);
    let report = subject.json("/api/v1/status");
    let report: Report = serde_json::from_value(report).unwrap();
    assert_eq!((report.pipeline.as_str(), report.pid), ("test", std::process::id()));
    assert_eq!(report.inputs[0].records, 2);
    assert_eq!((subject.get("/healthz").status, subject.get("/readyz").status), (200, 200));

    let path = subject.path("orders").display().to_string();
    let orders = json!({
        "total": 1,
        "lag": 0,
        "partitions": [{"partition": path, "position": 8, "end": 8, "lag": 0}],
    });
    let stands = |subject: &Subject| subject.json("/api/v1/partitions?input=orders") == orders;
    subject.until("the input stands at its end", stands);
    let all = subject.json("/api/v1/partitions");
    assert_eq!((&all["orders"], &all["users"]["total"]), (&orders, &json!(1)));
}

#[test]
fn what_is_wrong_with_a_request_is_said() {
    let mut subject = Subject::new();
    subject.run();
    let check = |path: &str, status: u16, error: &str| {
        let answer = subject.get(path);
        assert_eq!(answer.status, status, "{path}: {}", answer.body);
        assert!(answer.error().contains(error), "{path}: {}", answer.body);
    };
    check("/api/v1/partitions?input=order", 404, "no input \"order\"; did you mean orders?");
    check("/api/v1/partitions?inputs=a", 400, "unknown field `inputs`");
    check("/api/v1/tap", 400, "one of input=NAME and output=NAME");
    check("/api/v1/tap?input=orders&output=copy", 400, "one of input=NAME and output=NAME");
    check("/api/v1/tap?output=orders", 404, "no output \"orders\"; did you mean copy?");
    check("/api/v1/tap?input=orders&n=10001", 400, "at most 10000 records");
    check("/api/v1/tap?input=orders&n=-1", 400, "invalid digit");
    check("/api/v1/nothing", 404, "openapi.json has what there is");
    check("/api/v1/stop", 405, "steering by POST");
    assert_eq!(subject.post("/api/v1/status", "").status, 405);
}

#[test]
fn the_page_and_the_documents_are_there() {
    let subject = Subject::new();
    let page = subject.get("/");
    assert_eq!(page.status, 200);
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none'; script-src ",
        "x-content-type-options: nosniff",
        "cache-control: no-store",
        "referrer-policy: no-referrer",
    ] {
        assert!(page.head.contains(header), "{header} is not in {}", page.head);
    }
    assert!(!page.head.contains("access-control"), "{}", page.head);
    let metrics = subject.get("/metrics");
    assert!(metrics.head.contains("content-type: text/plain; version=0.0.4"), "{}", metrics.head);
    assert!(metrics.body.contains("# TYPE lockgate_"), "{}", metrics.body);
    assert_eq!(subject.json("/api/v1/openapi.json")["openapi"], "3.1.0");
}

#[test]
fn who_does_not_know_the_token_sees_nothing() {
    let subject = Subject::with("exactly_once", Some("s3cret"));
    for path in ["/", "/healthz"] {
        assert_eq!(subject.get(path).status, 200);
    }
    let refused = subject.get("/api/v1/status");
    assert_eq!(refused.status, 401);
    assert!(refused.head.contains("www-authenticate: bearer"), "{}", refused.head);
    assert!(!refused.body.contains("s3cret") && !refused.body.contains("test"), "{}", refused.body);
    let with = |token: &str| {
        let head = format!("GET /api/v1/status HTTP/1.1\r\nAuthorization: Bearer {token}");
        subject.ask(&head, "").status
    };
    assert_eq!((with("s3cret"), with("s3cre"), with("")), (200, 401, 401));
    assert_eq!(subject.post("/api/v1/stop", "").status, 401);
}

#[test]
fn an_address_that_is_taken_or_open_to_all_is_refused() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let board = Subject::new();
    let start = |address, token: Option<&str>| {
        let token = token.map(|token| Token::new(token).unwrap());
        let settings = ServerSettings { address, token, tls: None };
        Server::start(settings, board.board.clone())
    };
    let failed = start(address, None).err().unwrap();
    assert_eq!(failed.code, Code::Configuration);
    let message = failed.message;
    assert!(message.starts_with(&format!("control: cannot listen at {address}: ")), "{message}");
    assert!(message.contains("another process listens there"), "{message}");
    let everywhere = "0.0.0.0:0".parse().unwrap();
    let failed = start(everywhere, None).err().unwrap();
    assert!(failed.message.contains("a token is needed"), "{}", failed.message);
    let server = start(everywhere, Some("t")).unwrap();
    assert!(server.url().starts_with("http://127.0.0.1:"), "{}", server.url());
    drop(server);
}
