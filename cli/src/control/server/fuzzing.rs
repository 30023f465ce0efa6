//! One connection to the server, as bytes. It is there under `cfg(fuzzing)` only.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use lockgate_controller::fuzzing::Fake;
use lockgate_controller::{InputStatus, OutputStatus, Phase, Status};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::sync::watch;
use tokio::time::timeout;

use super::guard::Guard;
use super::office::Office;
use super::token::{CurrentToken, Token};
use super::{connection, routes};
use crate::control::{Asked, Board, Endpoint, Facts, ReloadError, Wish};

/// What clients must know.
pub const TOKEN: &str = "tok-3n-of-the-fuzz-target";

/// The server closes a connection that asks for nothing before; an answer that has no end is left then.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of a connection.
#[derive(Debug, Default)]
pub struct Conversation {
    /// What the server answered.
    pub answer: Vec<u8>,
    /// What was asked of the run or of the process.
    pub steered: Vec<String>,
    /// Whether the server closed the connection.
    pub is_closed: bool,
}

/// Sends `pieces` to a server for which the run is there or not, and reads to the end. Wants a clock that is paused.
pub async fn converse(pieces: &[&[u8]], has_run: bool, has_token: bool) -> Conversation {
    let endpoint = |name: &str| Endpoint { name: name.into(), kind: "file" };
    let facts = Facts {
        pipeline: "test".into(),
        file: "pipeline.yaml".into(),
        delivery: "exactly_once",
        inputs: vec![endpoint("orders"), endpoint("users")],
        outputs: vec![endpoint("copy")],
        started_at: SystemTime::UNIX_EPOCH,
    };
    let (board, mut wished) = Board::new(facts);
    let (handle, mut fake) = Fake::new(status());
    board.show(has_run.then_some(handle));
    let token = Token::new(TOKEN).ok().filter(|_| has_token);
    let address = ([127, 0, 0, 1], 8080).into();
    let guard = Guard { address, token: CurrentToken::new(token), is_tls: false };
    let (_closing, closed) = watch::channel(false);
    let office = Arc::new(Office::new(Arc::new(board), guard, closed));
    let router = routes::router(office.clone());
    let (ours, theirs) = duplex(4096);
    let (mut from, mut to) = tokio::io::split(theirs);

    let mut conversation = Conversation::default();
    let Conversation { answer, steered, is_closed } = &mut conversation;
    let server = connection::serve(ours, office, router);
    let write = async {
        for piece in pieces {
            // A server may have answered and gone before all is sent.
            if to.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        let _ = to.flush().await;
        std::future::pending::<()>().await;
    };
    let read = async { *is_closed = timeout(PATIENCE, from.read_to_end(answer)).await.is_ok() };
    let obey = async {
        loop {
            let what = tokio::select! {
                Some(event) = fake.asked() => format!("{event:?}"),
                Some(Asked { wish, answer }) = wished.recv() => {
                    if let (Wish::Reload, Some(answer)) = (wish, answer) {
                        let _ = answer.send(Err(ReloadError::Invalid("as told".into())));
                    }
                    format!("{wish:?}")
                }
                else => std::future::pending().await,
            };
            steered.push(what);
        }
    };
    let serve = async {
        server.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = read => {}
        () = write => {}
        () = obey => {}
        () = serve => {}
    }
    conversation
}

fn status() -> Status {
    let input = |name: &str| InputStatus { name: name.into(), ..InputStatus::default() };
    let inputs = vec![input("orders"), input("users")];
    let outputs = vec![OutputStatus { name: "copy".into(), ..OutputStatus::default() }];
    Status { phase: Phase::Running, step: 7, inputs, outputs, ..Status::default() }
}
