//! Whether the process works, and whether the pipeline reads.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use lockgate_controller::{Phase, Status};

use super::answer::text;
use super::office::Office;
use crate::control::Board;

/// A run says several times a second how it is; after so long it does not work.
const SILENT: Duration = Duration::from_secs(10);

/// When the run last said how it is.
#[derive(Debug, Default)]
pub(super) struct Pulse(Mutex<Option<Instant>>);

impl Pulse {
    fn set(&self, at: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = at;
    }

    /// For how long the run has said nothing; nothing while there is none.
    fn silent(&self) -> Duration {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        last.map_or(Duration::ZERO, |last| last.elapsed())
    }
}

/// Follows the runs for as long as it is polled.
pub(super) async fn feel(board: &Board, pulse: &Pulse) {
    let mut runs = board.runs();
    loop {
        let run = runs.borrow_and_update().clone();
        let follow = async {
            if let Some(run) = run {
                let mut status = run.status().clone();
                loop {
                    pulse
                        .set((status.borrow_and_update().phase != Phase::Ended).then(Instant::now));
                    if status.changed().await.is_err() {
                        break;
                    }
                }
            }
            pulse.set(None);
            std::future::pending::<()>().await;
        };
        tokio::select! {
            other = runs.changed() => if other.is_err() { return },
            () = follow => {}
        }
    }
}

pub(super) async fn healthz(State(office): State<Arc<Office>>) -> Response<Body> {
    let silent = office.pulse.silent();
    if silent < SILENT {
        return text(StatusCode::OK, "it works\n");
    }
    let seconds = silent.as_secs();
    let words = format!("the pipeline has not said how it is for {seconds} s: it hangs\n");
    text(StatusCode::SERVICE_UNAVAILABLE, words)
}

pub(super) async fn readyz(State(office): State<Arc<Office>>) -> Response<Body> {
    let run = office.board.run();
    let not_yet = match &run {
        None => Some("the pipeline is being opened".into()),
        Some(run) => not_ready(&run.status().borrow()),
    };
    match not_yet {
        None => text(StatusCode::OK, "it reads\n"),
        Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// Why nothing new is read.
fn not_ready(status: &Status) -> Option<String> {
    let Status { phase, steps_to_replay, replayed_steps, .. } = status;
    match phase {
        Phase::Replaying => Some(format!(
            "the steps since the last checkpoint are replayed: {replayed_steps} of {steps_to_replay}"
        )),
        Phase::Stopping => Some("the pipeline is stopping".into()),
        Phase::Ended => Some("the run has ended".into()),
        Phase::Running => status.blocked.as_ref().map(|reason| {
            format!("nothing can be stored, and inputs are paused until it can: {reason}")
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_ready_says_why() {
        let status = |phase, blocked: Option<&str>| Status {
            phase,
            blocked: blocked.map(str::to_owned),
            steps_to_replay: 10,
            replayed_steps: 3,
            ..Status::default()
        };
        let said = |phase| not_ready(&status(phase, None)).unwrap_or_default();
        assert_eq!(said(Phase::Running), "");
        let replaying = "the steps since the last checkpoint are replayed: 3 of 10";
        assert_eq!(said(Phase::Replaying), replaying);
        assert_eq!(said(Phase::Stopping), "the pipeline is stopping");
        assert_eq!(said(Phase::Ended), "the run has ended");
        let blocked = not_ready(&status(Phase::Running, Some("out.log: no space"))).unwrap();
        assert!(blocked.ends_with("out.log: no space"), "{blocked}");
    }
}
