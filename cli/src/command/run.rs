//! `lockgate run`.

use std::path::absolute;
use std::sync::Arc;

use lockgate_controller::Controller;

use crate::args::Run;
use crate::compose::{compose, facts};
use crate::control::Board;
use crate::exit::Failed;
use crate::log::Log;
use crate::operate::{Control, Open, Operation, Reloader, operate};
use crate::pipeline::{self, Pipeline};
use crate::recorder::DirectoryRecorder;
use crate::terminal::Terminal;

pub(crate) fn run(args: &Run) -> Result<(), Failed> {
    let mut pipeline = pipeline::load(&args.pipeline)?;
    let state_dir = args.state_dir.clone();
    let overrides = move |pipeline: &mut Pipeline| {
        if let Some(state_dir) = &state_dir {
            pipeline.state_dir.clone_from(state_dir);
        }
    };
    overrides(&mut pipeline);
    let terminal = Terminal::start();
    let log = Log::start(&terminal, &pipeline.log)?;
    // The file must stay the same one when the process changes its directory.
    let file = absolute(&args.pipeline).unwrap_or_else(|_| args.pipeline.clone());
    let name = pipeline.name.clone();
    let (board, asked) = Board::new(facts(&pipeline, &file));
    let board = Arc::new(board);
    let reloader = Arc::new(Reloader::new(file, pipeline, Box::new(overrides), log));
    let open = || {
        let pipeline = reloader.current();
        let mut composed = compose(&pipeline, args.accept)?;
        if let Some(directory) = &args.record {
            composed.recorder = Some(Box::new(DirectoryRecorder::new(directory, &pipeline)?));
        }
        for brokers in pipeline.brokers() {
            tracing::info!("connecting to Kafka at {brokers}");
        }
        Ok(Box::new(move || Controller::open(composed)) as Open)
    };
    let control = Control { board, asked, reloader: reloader.clone() };
    operate(Operation {
        pipeline: &name,
        terminal: &terminal,
        compose: &open,
        control: Some(control),
    })
}
