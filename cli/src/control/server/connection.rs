//! Connections: how many there are, how long they may wait, how fast they may ask.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_native_tls::TlsAcceptor;

use super::guarded::Guarded;
use super::office::Office;
use super::pace::Pace;

/// So many requests a second from one connection,
const REQUESTS_PER_SECOND: u32 = 50;
/// and so many at once: a page and what it asks for first.
const REQUESTS_AT_ONCE: u32 = 10;
/// So many connections a second are accepted, and so many at once,
const ACCEPTED_PER_SECOND: u32 = 50;
const ACCEPTED_AT_ONCE: u32 = 50;
/// of TLS, whose beginning costs a thousand times as much, only so many.
const TLS_ACCEPTED_PER_SECOND: u32 = 30;
const TLS_ACCEPTED_AT_ONCE: u32 = 30;
/// How long a client may take to agree on TLS.
const TLS_TIME: Duration = Duration::from_secs(5);
/// How long the head of a request may take. It counts from the end of the request before, so that no connection is idle
/// for longer either.
const HEAD_TIME: Duration = Duration::from_secs(5);
/// The most bytes of a head, and how many headers.
const MAX_HEAD_BYTES: usize = 16 << 10;
const MAX_HEADERS: usize = 64;
/// How long to wait when no connection can be accepted, for want of file descriptors.
const OUT_OF_FILES: Duration = Duration::from_millis(100);

/// Accepts connections for as long as it is polled.
pub(super) async fn accept(
    listener: &TcpListener,
    tls: Option<TlsAcceptor>,
    office: &Arc<Office>,
    router: &Router,
) -> Infallible {
    let mut pace = match tls {
        None => Pace::new(ACCEPTED_PER_SECOND, ACCEPTED_AT_ONCE),
        Some(_) => Pace::new(TLS_ACCEPTED_PER_SECOND, TLS_ACCEPTED_AT_ONCE),
    };
    loop {
        // Whoever comes when all seats are taken waits before the door, where it costs nothing.
        let Ok(seat) = office.seats.clone().acquire_owned().await else {
            std::future::pending::<Infallible>().await;
            continue;
        };
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::debug!("accepting a connection: {error}");
                sleep(OUT_OF_FILES).await;
                continue;
            }
        };
        rest(pace.delay(office.now())).await;
        let (tls, office, router) = (tls.clone(), office.clone(), router.clone());
        tokio::spawn(async move {
            let _seat = seat;
            converse(stream, tls, office, router).await;
        });
    }
}

async fn converse(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    office: Arc<Office>,
    router: Router,
) {
    let _ = stream.set_nodelay(true);
    let stream = Guarded::new(stream);
    let Some(tls) = tls else { return serve(stream, office, router).await };
    match timeout(TLS_TIME, tls.accept(stream)).await {
        Ok(Ok(stream)) => serve(stream, office, router).await,
        Ok(Err(error)) => tracing::debug!("a client and TLS: {error}"),
        Err(_) => {}
    }
}

/// Answers the requests of one connection.
pub(super) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    office: Arc<Office>,
    router: Router,
) {
    let pace = Mutex::new(Pace::new(REQUESTS_PER_SECOND, REQUESTS_AT_ONCE));
    let router = TowerToHyperService::new(router);
    let service = service_fn(|request| {
        let own = pace.lock().unwrap_or_else(PoisonError::into_inner).delay(office.now());
        answer(own.max(office.delay()), router.call(request))
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIME)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_header_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS);
    let mut connection = pin!(http.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = office.closed() => {
            // The request under way is answered, and no more.
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!("a connection: {error}");
    }
}

/// What comes of `call`, begun after a delay.
async fn answer<T>(delay: Duration, call: impl Future<Output = T>) -> T {
    rest(delay).await;
    call.await
}

async fn rest(delay: Duration) {
    if !delay.is_zero() {
        sleep(delay).await;
    }
}
