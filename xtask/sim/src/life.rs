//! The lives of a process: opened, running, ended by itself or from outside, and what is left of it each time.

use std::fs;
use std::io;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lockgate_controller::{Controller, Handle, Input, NamedOutput, Pipeline, Settings};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::sleep;

use crate::check::Ended;
use crate::deliberate::Deliberate;
use crate::disk;
use crate::fault::{self, Coverage, End, Fault, Strike};
use crate::host::SimulatedHost;
use crate::output::SimulatedOutput;
use crate::panics;
use crate::plan::Plan;
use crate::source::SimulatedInput;
use crate::tally::Tally;
use crate::world::Shared;

/// What came of a plan.
#[derive(Debug)]
pub(crate) struct Report {
    /// What must never happen and did; nothing if all is well.
    pub(crate) breaches: Vec<String>,
    pub(crate) coverage: Coverage,
    pub(crate) trace: Vec<String>,
}

/// A process that has not ended by then is killed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where nothing is wrong any more everything ends within this time.
const PROGRESS: Duration = Duration::from_secs(120);

enum LifeEnd {
    ByItself(Box<Ended>),
    FromOutside(End),
    /// It did not end.
    Waiting,
}

/// Runs `plan` in `folder`, which is emptied.
///
/// # Errors
/// If the folder cannot be used.
pub(crate) fn simulate(
    plan: &Plan,
    deliberate: Option<Deliberate>,
    traces: bool,
    folder: &Path,
) -> io::Result<Report> {
    disk::install();
    panics::install();
    disk::replace();
    let state = folder.join("state");
    clear(&state)?;
    let world = Shared::new(plan.clone(), traces);
    let faultless = Vec::new();
    for life in 0..=plan.lives.len() {
        let strikes = plan.lives.get(life).unwrap_or(&faultless);
        let is_last = life == plan.lives.len();
        let goes_on = live(&world, life, strikes, is_last, deliberate, &state)?;
        if !goes_on || !world.lock().breaches.is_empty() {
            break;
        }
    }
    let struck = disk::replace();
    let world = &mut *world.lock();
    for (what, times) in [
        ("a write without space", struck.full),
        ("a sector that was lost", struck.lost_sectors),
        ("a sector that had got through", struck.kept_sectors),
        ("a torn sector", struck.torn_sectors),
    ] {
        world.coverage.add(what, times);
    }
    Ok(Report {
        breaches: std::mem::take(&mut world.breaches),
        coverage: std::mem::take(&mut world.coverage),
        trace: world.trace.take().unwrap_or_default(),
    })
}

fn clear(state: &Path) -> io::Result<()> {
    match fs::remove_dir_all(state) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// One life. Whether another can follow.
fn live(
    world: &Shared,
    life: usize,
    strikes: &[Strike],
    is_last: bool,
    deliberate: Option<Deliberate>,
    state: &Path,
) -> io::Result<bool> {
    let (fate, end_inside) = fault::fate(strikes);
    disk::begin(fate);
    let before = disk::struck();
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?;
    let strikes_now = if is_last { &[] } else { strikes };
    let lived = || {
        runtime.block_on(async {
            world.lock().begin(life);
            let ended = run(world, strikes_now, is_last, deliberate, state).await;
            world.lock().end();
            ended
        })
    };
    let lived = panic::catch_unwind(AssertUnwindSafe(lived));
    if let Some(text) = panics::take() {
        world.lock().breach(format!("it panicked: {text}"));
    }
    let Ok(ended) = lived else { return Ok(false) };
    let ended = match ended {
        LifeEnd::ByItself(_) if disk::is_gone() => LifeEnd::FromOutside(end_inside),
        ended => ended,
    };
    if !matches!(ended, LifeEnd::ByItself(_)) {
        disk::stop();
    }
    // Whatever it still had is gone with it.
    drop(runtime);
    let world = &mut *world.lock();
    let mut rng = world.plan.rng("end", life);
    let struck = disk::struck().since(before);
    for (name, times) in fault::struck(struck, end_inside) {
        world.coverage.add(name, times);
    }
    match ended {
        LifeEnd::ByItself(ended) => {
            world.note(|| match &*ended {
                Ok(status) => format!("ended well at step {}", status.step),
                Err(error) => format!("ended: {error}"),
            });
            world.judge_end(&ended, strikes, struck);
            if ended.is_err() && world.is_rotten {
                world.coverage.count("a refusal after bit rot");
                return Ok(false);
            }
            if is_last && ended.is_ok() {
                world.judge_outputs();
            }
        }
        LifeEnd::Waiting => world.judge_waiting(strikes_now),
        LifeEnd::FromOutside(End::Kill) => world.note(|| "killed".into()),
        LifeEnd::FromOutside(End::PowerLoss) => {
            world.note(|| "no power".into());
            disk::lose_power(&mut rng)?;
            let _ = fs::remove_file(state.join("state.db-shm"));
            world.destinations.iter_mut().for_each(|output| output.lose_power(&mut rng));
        }
    }
    for strike in strikes {
        if let Fault::Rot { log, place, bit } = strike.fault {
            let file = if log { "state.db-wal" } else { "state.db" };
            if disk::rot(&state.join(file), place, bit)? {
                world.is_rotten = true;
                world.happened(strike.fault.name());
            }
        }
    }
    Ok(true)
}

async fn run(
    world: &Shared,
    strikes: &[Strike],
    is_last: bool,
    deliberate: Option<Deliberate>,
    state: &Path,
) -> LifeEnd {
    let controller = match Controller::open(compose(world, is_last, deliberate, state)) {
        Ok(controller) => controller,
        Err(error) => return LifeEnd::ByItself(Box::new(Err(error))),
    };
    let handle = controller.handle();
    let checkpointed =
        handle.status().borrow().checkpoint.recent.back().map_or(0, |last| last.step);
    world.lock().opened(checkpointed);
    let (ends, mut ended) = unbounded_channel();
    for strike in strikes {
        let (world, handle, ends, strike) = (world.clone(), handle.clone(), ends.clone(), *strike);
        tokio::spawn(async move {
            if let Some(end) = fault::strike(&world, &handle, strike).await {
                let _ = ends.send(end);
            }
        });
    }
    if is_last {
        tokio::spawn(come_to_an_end(world.clone(), handle));
    }
    tokio::select! {
        biased;
        Some(end) = ended.recv() => LifeEnd::FromOutside(end),
        ended = controller.run() => LifeEnd::ByItself(Box::new(ended)),
        () = sleep(if is_last { PROGRESS } else { PATIENCE }) => LifeEnd::Waiting,
    }
}

/// Lets everything go on, and stops what has no end of its own when everything is there.
async fn come_to_an_end(world: Shared, handle: Handle) {
    let inputs: Vec<usize> = (0..world.lock().plan.inputs.len()).collect();
    inputs.iter().for_each(|input| world.lock().resuming(*input));
    world.lock().may_be_paused.fill(false);
    let _ = handle.resume(&inputs).await;
    if world.lock().plan.is_endless() {
        while !world.lock().is_complete() {
            sleep(Duration::from_millis(100)).await;
        }
        handle.stop();
    }
}

fn compose(
    world: &Shared,
    is_last: bool,
    deliberate: Option<Deliberate>,
    state: &Path,
) -> Pipeline {
    let plan = world.lock().plan.clone();
    let mut settings = Settings::new(state);
    settings.delivery = plan.delivery();
    settings.tuning = plan.tuning();
    if is_last {
        // Late would not be well.
        settings.tuning.shutdown_timeout = PROGRESS;
    }
    let mut pipeline = Pipeline::new("simulated", settings).circuit(Tally::default());
    for (place, input) in plan.inputs.iter().enumerate() {
        let partitions = deliberate.and_then(Deliberate::of_partitions);
        let endpoint = SimulatedInput::new(world.clone(), place, partitions);
        pipeline.inputs.push(Input {
            name: format!("i{place}"),
            endpoint: Box::new(endpoint),
            tuning: input.tuning(),
            start_after: if input.waits { vec![place - 1] } else { Vec::new() },
        });
    }
    for place in 0..plan.outputs.len() {
        let output = Box::new(SimulatedOutput::new(world.clone(), place));
        pipeline.outputs.push(NamedOutput { name: format!("o{place}"), output });
    }
    let fault = deliberate.and_then(Deliberate::of_host);
    pipeline.host = Arc::new(SimulatedHost { world: world.clone(), fault });
    pipeline
}
