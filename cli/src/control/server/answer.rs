//! Answers, and what is wrong with a request, as HTTP.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderValue};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use serde::Serialize;

use crate::control::answers::Refused;

pub(super) const JSON: &str = "application/json";
pub(super) const TEXT: &str = "text/plain; charset=utf-8";

/// `content` of the type `kind`.
pub(super) fn content(kind: &'static str, content: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(content.into());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// `answer` as JSON.
pub(super) fn json(answer: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(answer) {
        Ok(text) => content(JSON, text),
        Err(error) => Refusal::bug(error.to_string()).into_response(),
    }
}

/// Plain words.
pub(super) fn text(status: StatusCode, text: impl Into<Body>) -> Response<Body> {
    let mut response = content(TEXT, text);
    *response.status_mut() = status;
    response
}

/// Why a request is not obeyed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) error: String,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, error: impl Into<String>) -> Self {
        Self { status, error: error.into() }
    }

    /// What cannot be.
    pub(super) fn bug(error: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, error)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        let mut response = json(&Refused { error: self.error });
        *response.status_mut() = self.status;
        response
    }
}
