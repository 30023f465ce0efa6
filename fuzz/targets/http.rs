//! Bytes as a connection to the control server: valid answers or a close, nothing is steered by what may not steer, and
//! the token is never shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use lockgate::fuzzing::{TOKEN, converse};

fuzz_target!(|input: &[u8]| {
    let [flags, input @ ..] = input else { return };
    let (has_run, has_token) = (flags & 1 != 0, flags & 2 != 0);
    let pieces: Vec<&[u8]> = input.chunks(1 << (flags >> 4)).collect();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("a runtime");
    let conversation = runtime.block_on(converse(&pieces, has_run, has_token));

    let answer = &conversation.answer;
    check_answers(answer);
    let lower = input.to_ascii_lowercase();
    if !conversation.steered.is_empty() {
        let wanted = ["post", "application/json", "host"];
        let is_allowed = wanted.iter().all(|word| contains(&lower, word.as_bytes()));
        assert!(is_allowed, "steered by what may not: {:?}", conversation.steered);
        let knows = !has_token || contains(input, TOKEN.as_bytes());
        assert!(knows, "steered without the token: {:?}", conversation.steered);
    }
    let is_given = contains(input, TOKEN.as_bytes());
    assert!(is_given || !contains(answer, TOKEN.as_bytes()), "the token is shown");
    if has_token && !is_given {
        for secret in ["\"inputs\"", "lockgate_", "\"openapi\""] {
            assert!(!contains(answer, secret.as_bytes()), "answered without the token");
        }
    }
});

/// A row of whole answers; only one whose end comes with the connection may lack it.
fn check_answers(mut rest: &[u8]) {
    while !rest.is_empty() {
        let end = find(rest, b"\r\n\r\n").expect("an answer has a head");
        let head = std::str::from_utf8(&rest[..end]).expect("a head is text");
        rest = &rest[end + 4..];
        let mut lines = head.split("\r\n");
        let first = lines.next().unwrap_or_default();
        let version = first.get(..9);
        assert!(matches!(version, Some("HTTP/1.1 " | "HTTP/1.0 ")), "{first:?}");
        let status: u16 = first[9..12].parse().expect("an answer has a status");
        assert!((100..600).contains(&status) && status != 500, "{first:?}");
        if status < 200 {
            continue;
        }
        let (mut length, mut is_chunked, mut is_json) = (None, false, false);
        for line in lines {
            let (name, value) = line.split_once(": ").expect("a header has name and value");
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = Some(value.parse::<usize>().expect("a length")),
                "transfer-encoding" => is_chunked = value == "chunked",
                "content-type" => is_json = value == "application/json",
                _ => {}
            }
        }
        if is_chunked {
            // Only records that pass by are sent so, and here none does.
            rest = match find(rest, b"0\r\n\r\n") {
                Some(0) => &rest[5..],
                _ => return,
            };
            continue;
        }
        // What answers HEAD has a length and no body.
        let length = length.filter(|_| !rest.is_empty() && !rest.starts_with(b"HTTP/1."));
        let Some(body) = rest.get(..length.unwrap_or(0)) else {
            panic!("an answer is not whole: {head}");
        };
        if is_json && !body.is_empty() {
            let parsed = serde_json::from_slice::<serde_json::Value>(body);
            let parsed = parsed.expect("what is said to be JSON is JSON");
            assert!(status == 200 || parsed["error"].is_string(), "{head}");
        }
        rest = &rest[body.len()..];
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    find(text, part).is_some()
}
