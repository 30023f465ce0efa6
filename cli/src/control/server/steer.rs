//! Steering: pause, checkpoint, suspend, stop, reload.

use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Response, StatusCode};
use lockgate_controller::{Handle, Phase, Status, SteerError};
use serde::de::DeserializeOwned;

use super::answer::{Refusal, json};
use super::names::{Kind, place_of};
use super::office::Office;
use crate::control::ReloadError;
use crate::control::answers::{Checkpointed, Inputs, Nothing, Paused, Reloaded, Stopped};

type Answer = Result<Response<Body>, Refusal>;

pub(super) async fn pause(State(office): State<Arc<Office>>, body: Bytes) -> Answer {
    set_paused(&office, &body, true).await
}

pub(super) async fn resume(State(office): State<Arc<Office>>, body: Bytes) -> Answer {
    set_paused(&office, &body, false).await
}

async fn set_paused(office: &Office, body: &Bytes, is_paused: bool) -> Answer {
    let Inputs { inputs: names } = read(body)?;
    let facts = &office.board.facts;
    let mut places = Vec::new();
    for name in &names {
        let place = place_of(name, &facts.inputs, Kind::Input)?;
        if !places.contains(&place) {
            places.push(place);
        }
    }
    if names.is_empty() {
        places = (0..facts.inputs.len()).collect();
    }
    let run = office.run()?;
    let done = office.wait_for(&run, async {
        if is_paused { run.pause(&places).await } else { run.resume(&places).await }
    });
    done.await.unwrap_or(Err(SteerError::Ended)).map_err(refusal)?;
    let named = places.iter().filter_map(|place| facts.inputs.get(*place));
    Ok(json(&Paused {
        inputs: named.map(|input| input.name.clone()).collect(),
        durable: facts.delivery != "none",
    }))
}

pub(super) async fn checkpoint(State(office): State<Arc<Office>>, body: Bytes) -> Answer {
    let Nothing {} = read(&body)?;
    let run = office.run()?;
    let step = office.wait_for(&run, run.checkpoint()).await.unwrap_or(Err(SteerError::Ended));
    Ok(json(&Checkpointed { step: step.map_err(refusal)? }))
}

pub(super) async fn suspend(State(office): State<Arc<Office>>, body: Bytes) -> Answer {
    let Nothing {} = read(&body)?;
    let run = office.run()?;
    let step = office.wait_for(&run, run.suspend()).await.unwrap_or(Err(SteerError::Ended));
    Ok(json(&Checkpointed { step: step.map_err(refusal)? }))
}

pub(super) async fn stop(State(office): State<Arc<Office>>, body: Bytes) -> Answer {
    let Nothing {} = read(&body)?;
    office.board.stop();
    let nothing_read = Stopped { step: None, complete: true };
    // While the pipeline is being opened there is nothing to wait for but the end of the process.
    let stopped = office.wait(async {
        let mut runs = office.board.runs();
        match runs.wait_for(Option::is_some).await.ok().and_then(|run| run.clone()) {
            Some(run) => end_of(&run).await,
            None => nothing_read.clone(),
        }
    });
    Ok(json(&stopped.await.unwrap_or(nothing_read)))
}

/// Waits for the end of the run.
async fn end_of(run: &Handle) -> Stopped {
    let mut status = run.status().clone();
    // Once nobody publishes it any more, it is the last one, too.
    let _ = status.wait_for(|status| status.phase == Phase::Ended).await;
    let status: &Status = &status.borrow();
    let step = status.checkpoint.recent.back().map(|last| last.step);
    Stopped { step, complete: step.is_none_or(|step| step >= status.step) }
}

pub(super) async fn reload(State(office): State<Arc<Office>>, body: Bytes) -> Answer {
    let Nothing {} = read(&body)?;
    office.run()?;
    let done = office.wait(office.board.reload()).await.unwrap_or(Err(ReloadError::Stopping));
    let changes = done.map_err(|error| {
        let status = match error {
            ReloadError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ReloadError::NotLive(_) => StatusCode::CONFLICT,
            ReloadError::Stopping => StatusCode::SERVICE_UNAVAILABLE,
        };
        Refusal::new(status, error.to_string())
    })?;
    Ok(json(&Reloaded { changes }))
}

fn refusal(error: SteerError) -> Refusal {
    let status = match error {
        SteerError::NoState | SteerError::AtBarrier { .. } => StatusCode::CONFLICT,
        SteerError::Ended | SteerError::Blocked { .. } | SteerError::Late { .. } => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    Refusal::new(status, error.to_string())
}

/// What is asked for; an empty body is as good as `{}`.
fn read<T: DeserializeOwned + Default>(body: &Bytes) -> Result<T, Refusal> {
    if body.trim_ascii().is_empty() {
        return Ok(T::default());
    }
    serde_json::from_slice(body).map_err(|error| {
        Refusal::new(StatusCode::BAD_REQUEST, format!("the body is not what is known: {error}"))
    })
}
