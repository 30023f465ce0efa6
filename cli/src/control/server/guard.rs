//! Who may ask what. Pure.
//!
//! A server on this machine is within reach of every web page that a browser on it shows. Such a page can make the
//! browser send requests here, under a name that it makes point here, too. What gives it away: the `Host` that the
//! browser was told, the `Origin`, and that a form cannot send JSON.

use std::net::{IpAddr, SocketAddr};

use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, Uri};

use super::answer::Refusal;
use super::token::CurrentToken;

/// The header by which a client says which process it means, so that it steers no other that has come to listen at the
/// same address.
pub(crate) const PROCESS: &str = "lockgate-process";

/// What does not want a token: whether the process works says nothing of the records, and the page asks for the token.
const OPEN: [&str; 3] = ["/", "/healthz", "/readyz"];

/// What the server knows about who may ask.
#[derive(Debug)]
pub(super) struct Guard {
    pub(super) address: SocketAddr,
    pub(super) token: CurrentToken,
    pub(super) is_tls: bool,
}

impl Guard {
    /// # Errors
    /// If the request may not be obeyed.
    pub(super) fn admit(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<(), Refusal> {
        let host = self.host(uri, headers)?;
        self.origin(uri, headers, &host)?;
        self.authorization(uri, headers)?;
        process(headers)?;
        if method == Method::POST {
            is_json(headers)?;
        }
        Ok(())
    }

    /// What the client takes us for.
    fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<Authority, Refusal> {
        let mut given = headers.get_all(HOST).iter();
        let host = match (given.next(), given.next()) {
            (Some(host), None) => host.to_str().ok().and_then(|host| host.parse().ok()),
            _ => None,
        };
        let Some(host) = host else {
            let error = "the request must have one header Host, such as localhost";
            return Err(Refusal::new(StatusCode::BAD_REQUEST, error));
        };
        for name in [Some(&host), uri.authority()].into_iter().flatten() {
            if self.address.ip().is_loopback() && !is_this_machine(name) {
                let error = format!(
                    "the host {:?} is not this machine: ask for {} or localhost",
                    name.host(),
                    self.address
                );
                return Err(Refusal::new(StatusCode::FORBIDDEN, error));
            }
        }
        Ok(host)
    }

    /// Pages of others may not ask.
    fn origin(&self, uri: &Uri, headers: &HeaderMap, host: &Authority) -> Result<(), Refusal> {
        let scheme = if self.is_tls { "https" } else { "http" };
        let own = format!("{scheme}://{host}");
        let foreign = |what: &str| {
            let error = format!("pages of others may not ask: {what}");
            Err(Refusal::new(StatusCode::FORBIDDEN, error))
        };
        if headers.get_all(ORIGIN).iter().any(|origin| origin.as_bytes() != own.as_bytes()) {
            return foreign(&format!("the header Origin is not {own}"));
        }
        // Whoever follows a link to the page does so from another one.
        let from = headers.get_all("sec-fetch-site").iter();
        let mut from = from.map(|site| site.as_bytes());
        if uri.path() != "/" && from.any(|site| site != b"same-origin" && site != b"none") {
            return foreign("the header Sec-Fetch-Site says that another one does");
        }
        Ok(())
    }

    fn authorization(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        if OPEN.contains(&uri.path()) {
            return Ok(());
        }
        let given = headers.get(AUTHORIZATION).map(|value| value.as_bytes()).and_then(bearer);
        if self.token.admits(given) {
            return Ok(());
        }
        Err(Refusal::new(StatusCode::UNAUTHORIZED, "a token is needed, and must be the right one"))
    }
}

/// What follows `Bearer`.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"Bearer ").then_some(token.trim_ascii())
}

/// Whether it is an address of this machine, or its own name for itself.
fn is_this_machine(name: &Authority) -> bool {
    let host = name.host();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    let is_address = address.is_ok_and(|address| address.is_loopback());
    !name.as_str().contains('@') && (is_address || host.eq_ignore_ascii_case("localhost"))
}

fn process(headers: &HeaderMap) -> Result<(), Refusal> {
    let own = std::process::id();
    match headers.get(PROCESS) {
        Some(meant) if meant.as_bytes() != own.to_string().as_bytes() => {
            let error = format!("this is process {own}, another one was meant");
            Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, error))
        }
        _ => Ok(()),
    }
}

/// What a page can send to another site without asking it first is not JSON.
fn is_json(headers: &HeaderMap) -> Result<(), Refusal> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let error = format!("Content-Type is {kind:?}: it must be application/json");
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::server::token::Token;

    fn guard(address: &str, token: Option<&str>) -> Guard {
        let token = token.map(|token| Token::new(token).unwrap());
        Guard { address: address.parse().unwrap(), token: CurrentToken::new(token), is_tls: false }
    }

    /// The status of a request, 200 if it may be obeyed.
    fn asked(guard: &Guard, request: &str) -> u16 {
        let mut lines = request.lines().map(str::trim);
        let (method, uri) = lines.next().unwrap().split_once(' ').unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in lines.filter_map(|line| line.split_once(": ")) {
            let name: axum::http::HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        let method = method.parse().unwrap();
        match guard.admit(&method, &uri.parse().unwrap(), &headers) {
            Ok(()) => 200,
            Err(refusal) => refusal.status.as_u16(),
        }
    }

    #[test]
    fn a_name_that_was_made_to_point_here_is_refused() {
        let loopback = guard("127.0.0.1:80", None);
        for host in ["127.0.0.1:80", "localhost", "LocalHost:8080", "[::1]:80", "127.0.0.9"] {
            assert_eq!(asked(&loopback, &format!("GET /\nhost: {host}")), 200, "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "1.2.3.4", "x@localhost", "[::2]"] {
            assert_eq!(asked(&loopback, &format!("GET /\nhost: {host}")), 403, "{host}");
        }
        assert_eq!(asked(&loopback, "GET http://evil.example/\nhost: localhost"), 403);
        for without in ["", "host: localhost\nhost: evil.example", "host: a b"] {
            assert_eq!(asked(&loopback, &format!("GET /\n{without}")), 400, "{without}");
        }
        let everywhere = guard("0.0.0.0:80", Some("t"));
        assert_eq!(asked(&everywhere, "GET /\nhost: lockgate.example:80"), 200);
    }

    #[test]
    fn pages_of_others_are_refused() {
        let guard = guard("127.0.0.1:80", None);
        let get =
            |headers: &str| asked(&guard, &format!("GET /metrics\nhost: localhost\n{headers}"));
        assert_eq!(get("origin: http://localhost"), 200);
        for origin in ["http://localhost:81", "https://localhost", "null", "http://evil.example"] {
            assert_eq!(get(&format!("origin: {origin}")), 403, "{origin}");
        }
        assert_eq!(get("origin: http://localhost\norigin: http://evil.example"), 403);
        assert_eq!((get("sec-fetch-site: same-origin"), get("sec-fetch-site: none")), (200, 200));
        assert_eq!(
            (get("sec-fetch-site: cross-site"), get("sec-fetch-site: same-site")),
            (403, 403)
        );
        let page = "GET /\nhost: localhost\nsec-fetch-site: cross-site";
        assert_eq!(asked(&guard, page), 200);
    }

    #[test]
    fn a_form_cannot_steer() {
        let guard = guard("127.0.0.1:80", None);
        let post = |kind: &str| asked(&guard, &format!("POST /x\nhost: localhost\n{kind}"));
        assert_eq!(post("content-type: application/json"), 200);
        assert_eq!(post("content-type: application/JSON; charset=utf-8"), 200);
        for kind in ["", "content-type: text/plain", "content-type: multipart/form-data"] {
            assert_eq!(post(kind), 415, "{kind}");
        }
    }

    #[test]
    fn who_does_not_know_the_token_sees_only_whether_it_works() {
        let guard = guard("127.0.0.1:80", Some("s3cret"));
        let get =
            |path: &str, more: &str| asked(&guard, &format!("GET {path}\nhost: [::1]\n{more}"));
        for path in ["/healthz", "/readyz", "/"] {
            assert_eq!(get(path, ""), 200);
        }
        for path in ["/metrics", "/api/v1/status", "/nowhere", "//", "/healthz/"] {
            assert_eq!(get(path, ""), 401, "{path}");
            assert_eq!(get(path, "authorization: Bearer wrong"), 401);
            assert_eq!(get(path, "authorization: s3cret"), 401);
            assert_eq!(get(path, "authorization: bearer s3cret"), 200);
        }
    }

    #[test]
    fn another_process_is_not_steered() {
        let guard = guard("127.0.0.1:80", None);
        let get = |id: u32| asked(&guard, &format!("GET /x\nhost: localhost\n{PROCESS}: {id}"));
        let own = std::process::id();
        assert_eq!((get(own), get(own + 1)), (200, 421));
    }
}
