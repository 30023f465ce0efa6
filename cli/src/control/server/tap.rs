//! Records that pass by, as lines of JSON.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::State;
use axum::http::{Response, StatusCode, Uri};
use hyper::body::Frame;
use lockgate_controller::{Tap, Tapped};
use lockgate_core::Batch;
use serde::Deserialize;

use super::answer::{Refusal, content};
use super::look::query;
use super::names::{Kind, place_of};
use super::office::Office;
use crate::command::Line;

/// So many records if nothing is said,
const RECORDS: u64 = 10;
/// and so many at most.
const MAX_RECORDS: u64 = 10_000;
/// A piece of the answer is sent when it has so many bytes.
const PIECE_BYTES: usize = 64 << 10;

const LINES: &str = "application/x-ndjson";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    input: Option<String>,
    output: Option<String>,
    n: Option<u64>,
}

pub(super) async fn tap(
    State(office): State<Arc<Office>>,
    uri: Uri,
) -> Result<Response<Body>, Refusal> {
    let wrong = |error: String| Refusal::new(StatusCode::BAD_REQUEST, error);
    let Wanted { input, output, n } = query(&uri)?;
    let facts = &office.board.facts;
    let (kind, name, tap) = match (input, output) {
        (Some(name), None) => {
            let place = place_of(&name, &facts.inputs, Kind::Input)?;
            (Kind::Input, name, Tap::Input(place))
        }
        (None, Some(name)) => {
            let place = place_of(&name, &facts.outputs, Kind::Output)?;
            (Kind::Output, name, Tap::Output(place))
        }
        _ => return Err(wrong("one of input=NAME and output=NAME must be given".into())),
    };
    let left = n.unwrap_or(RECORDS);
    if left > MAX_RECORDS {
        return Err(wrong(format!("n is {left}: at most {MAX_RECORDS} records are shown at once")));
    }
    let tapped = office.run()?.tap(tap);
    let tapped =
        tapped.map_err(|error| Refusal::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string()))?;
    let closed = Box::pin(async move { office.closed().await });
    Ok(content(LINES, Body::new(Lines { kind, name, tapped, closed, batch: None, left })))
}

/// The records that are left to show, as the body of an answer. When the client goes it is dropped, and with it the tap.
struct Lines {
    kind: Kind,
    name: String,
    tapped: Tapped,
    closed: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The batch that is being shown, with its step and how many of its records have been.
    batch: Option<(u64, Batch, usize)>,
    left: u64,
}

impl Lines {
    /// Adds lines to `text` until it is long enough, or no more records of this batch are wanted.
    fn push_to(&mut self, text: &mut String) {
        let Some((step, batch, shown)) = &mut self.batch else { return };
        let by = (self.kind.word(), self.name.as_str());
        for record in batch.iter().skip(*shown) {
            if self.left == 0 {
                break;
            }
            Line { by, step: Some(*step), record }.push_to(text);
            *shown += 1;
            self.left -= 1;
            if text.len() >= PIECE_BYTES {
                return;
            }
        }
        self.batch = None;
    }
}

impl HttpBody for Lines {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        loop {
            let mut text = String::new();
            self.push_to(&mut text);
            if !text.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(text.into()))));
            }
            if self.left == 0 || self.closed.as_mut().poll(cx).is_ready() {
                return Poll::Ready(None);
            }
            match ready!(self.tapped.poll_recv(cx)) {
                Some((step, batch)) => self.batch = Some((step, batch, 0)),
                None => return Poll::Ready(None),
            }
        }
    }
}
