//! What can be asked for, and by which way.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, CONNECTION, HeaderValue, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{Method, Response, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::IntoResponse;
use axum::routing::{MethodRouter, get, post};
use tokio::time::timeout;

use super::answer::Refusal;
use super::office::Office;
use super::{health, look, openapi, steer, tap};

/// The most bytes of a request's body,
const MAX_BODY_BYTES: usize = 64 << 10;
/// and how long it may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(5);

type Route = (&'static str, &'static str, MethodRouter<Arc<Office>>);

/// Everything that can be asked for: the method, the path, and who answers.
pub(super) fn routes() -> Vec<Route> {
    vec![
        ("get", "/", get(look::page)),
        ("get", "/healthz", get(health::healthz)),
        ("get", "/readyz", get(health::readyz)),
        ("get", "/metrics", get(look::metrics)),
        ("get", "/api/v1/status", get(look::status)),
        ("get", "/api/v1/partitions", get(look::partitions)),
        ("get", "/api/v1/tap", get(tap::tap)),
        ("get", "/api/v1/openapi.json", get(openapi::answer)),
        ("post", "/api/v1/pause", post(steer::pause)),
        ("post", "/api/v1/resume", post(steer::resume)),
        ("post", "/api/v1/checkpoint", post(steer::checkpoint)),
        ("post", "/api/v1/suspend", post(steer::suspend)),
        ("post", "/api/v1/stop", post(steer::stop)),
        ("post", "/api/v1/reload", post(steer::reload)),
    ]
}

pub(super) fn router(office: Arc<Office>) -> Router {
    let mut router = Router::new();
    for (_, path, answer) in routes() {
        router = router.route(path, answer);
    }
    router
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(office.clone(), admit))
        .with_state(office)
}

async fn unknown() -> Refusal {
    let error = "there is nothing of this name; /api/v1/openapi.json has what there is";
    Refusal::new(StatusCode::NOT_FOUND, error)
}

async fn wrong_method() -> Refusal {
    let error = "looking is by GET, steering by POST; /api/v1/openapi.json says which is which";
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, error)
}

/// Lets a request through that may be obeyed, with its body at hand.
async fn admit(State(office): State<Arc<Office>>, request: Request, next: Next) -> Response<Body> {
    let admitted = office.guard.admit(request.method(), request.uri(), request.headers());
    let mut response = match admitted {
        Err(refusal) => refusal.into_response(),
        Ok(()) => match with_body(request).await {
            Ok(request) => next.run(request).await,
            Err(refusal) => refusal.into_response(),
        },
    };
    let is_unknown = response.status() == StatusCode::UNAUTHORIZED;
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if is_unknown {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if office.is_crowded() {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The request with all of its body. Those that have none that counts are left as they are.
async fn with_body(request: Request) -> Result<Request, Refusal> {
    if request.method() != Method::POST {
        return Ok(request);
    }
    let (parts, body) = request.into_parts();
    if body.size_hint().lower() > MAX_BODY_BYTES as u64 {
        return Err(too_large());
    }
    let read = timeout(BODY_TIME, to_bytes(body, MAX_BODY_BYTES)).await;
    let body = read.map_err(|_| {
        let error = format!("the body did not arrive within {BODY_TIME:?}");
        Refusal::new(StatusCode::REQUEST_TIMEOUT, error)
    })?;
    let body = body.map_err(|_| too_large())?;
    Ok(Request::from_parts(parts, Body::from(body)))
}

fn too_large() -> Refusal {
    let error = format!("the body is broken, or has more than {MAX_BODY_BYTES} bytes");
    Refusal::new(StatusCode::PAYLOAD_TOO_LARGE, error)
}
