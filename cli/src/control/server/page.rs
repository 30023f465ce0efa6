//! The page, and what it may do.

use axum::body::Body;
use axum::http::Response;
use axum::http::header::{
    CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::answer::content;

const PAGE: &str = include_str!("../page.html");
const HTML: &str = "text/html; charset=utf-8";

/// The page with its headers.
pub(super) struct Page {
    headers: HeaderMap,
}

impl Page {
    pub(super) fn new() -> Self {
        let mut headers = HeaderMap::new();
        let mut add = |name: HeaderName, value: &str| {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        };
        add(CONTENT_SECURITY_POLICY, &policy(PAGE));
        add(REFERRER_POLICY, "no-referrer");
        add(X_FRAME_OPTIONS, "DENY");
        Self { headers }
    }

    pub(super) fn answer(&self) -> Response<Body> {
        let mut response = content(HTML, PAGE);
        response.headers_mut().extend(self.headers.clone());
        response
    }
}

/// What the page needs and no more: its own scripts, by their hashes, its own styles, and requests to where it is from.
fn policy(page: &str) -> String {
    let scripts: Vec<String> = scripts(page).map(hash).collect();
    let scripts = if scripts.is_empty() { "'none'".into() } else { scripts.join(" ") };
    format!(
        "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
}

/// What is between the tags of each script.
fn scripts(page: &str) -> impl Iterator<Item = &str> {
    page.split("<script").skip(1).filter_map(|rest| {
        let (_, rest) = rest.split_once('>')?;
        Some(rest.split_once("</script>")?.0)
    })
}

fn hash(script: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(script)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_script_is_known_by_its_hash() {
        let page = "<script>alert(1)</script><p>x<script type=\"module\">\nb\n</script>";
        assert_eq!(scripts(page).collect::<Vec<_>>(), ["alert(1)", "\nb\n"]);
        let policy = policy(page);
        let known = "'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='";
        assert!(policy.contains(&format!("script-src {known} 'sha256-")), "{policy}");
        assert!(super::policy("<p>").contains("script-src 'none'"));
    }

    /// The policy would keep these from working.
    #[test]
    fn the_page_is_self_contained() {
        for forbidden in ["<script src", "<link", " onclick=", " onload=", "@import", "eval("] {
            assert!(!PAGE.contains(forbidden), "the page has {forbidden:?}");
        }
        assert_eq!(scripts(PAGE).count(), PAGE.matches("<script").count());
        assert_eq!(Page::new().headers.len(), 3);
    }
}
