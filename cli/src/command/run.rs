//! `lockgate run`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf, absolute};
use std::sync::Arc;
use std::time::Duration;

use lockgate_controller::Controller;

use crate::args::Run;
use crate::compose::{compose, facts};
use crate::control::{Advertised, Board, CurrentToken, Server, ServerSettings, Token};
use crate::exit::{Code, Failed};
use crate::log::Log;
use crate::operate::{Control, Open, Operation, Reloader, operate};
use crate::pipeline::{self, Delivery, Pipeline};
use crate::recorder::DirectoryRecorder;
use crate::terminal::Terminal;

/// How long those who look have to see why a run has failed: the page looks once a second.
const LAST_LOOK: Duration = Duration::from_secs(2);

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
    let file = whole(&args.pipeline);
    let name = pipeline.name.clone();
    let (board, asked) = Board::new(facts(&pipeline, &file));
    let board = Arc::new(board);
    let access = access(args, &pipeline)?;
    // It answers until it is dropped: to the last word of the run.
    let mut server = None;
    let mut token = None;
    let mut advertised = None;
    if let Some(Access { settings, token_file }) = access {
        let ca = settings.tls.as_ref().map(|tls| whole(&tls.certificate));
        let started = Server::start(settings, board.clone())?;
        let url = started.url();
        tracing::info!("control: {url}");
        // Without a state directory commands must be told where to ask.
        if pipeline.delivery != Delivery::None {
            let token_file = token_file.as_deref().map(whole);
            let said = Advertised { url, pid: std::process::id(), token_file, ca };
            advertised = Some((pipeline.state_dir.clone(), said));
        }
        token = Some(started.token());
        server = Some(started);
    }
    let apply = take_over(log, token.filter(|_| args.token_file.is_none()));
    let reloader = Arc::new(Reloader::new(file, pipeline, Box::new(overrides), apply));
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
    let control = Control { board: board.clone(), asked, reloader: reloader.clone(), advertised };
    let (terminal, compose) = (&terminal, &open);
    let ended = operate(Operation { pipeline: &name, terminal, compose, control: Some(control) });
    if let (Err(failed), Some(_)) = (&ended, &server) {
        board.failed(&failed.message, LAST_LOOK);
    }
    drop(server);
    ended
}

/// Where and how the run can be looked at and steered.
struct Access {
    settings: ServerSettings,
    token_file: Option<PathBuf>,
}

/// What the command line and the pipeline say about it; `None` if neither says anything.
fn access(args: &Run, pipeline: &Pipeline) -> Result<Option<Access>, Failed> {
    let control = pipeline.control.as_ref();
    if args.listen.is_none() && control.is_none() {
        if args.token_file.is_some() {
            let message = "--token-file: there is nothing to ask for it; add --listen, or `control` to the pipeline";
            return Err(Failed::new(Code::Usage, message));
        }
        return Ok(None);
    }
    let address = args.listen.or(control.map(|control| control.listen));
    let address = address.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let of_pipeline = control.and_then(|control| control.token.as_ref());
    let token = match (&args.token_file, of_pipeline) {
        (Some(file), _) => Some(Token::read(file)?),
        (None, of_pipeline) => of_pipeline.cloned(),
    };
    let token_file = args.token_file.clone();
    let token_file = token_file.or(control.and_then(|control| control.token_file.clone()));
    let tls = control.and_then(|control| control.tls.clone());
    Ok(Some(Access { settings: ServerSettings { address, token, tls }, token_file }))
}

/// What takes over settings beside the run: the log, and the server its token.
fn take_over(log: Log, token: Option<CurrentToken>) -> Box<dyn Fn(&Pipeline) + Send + Sync> {
    Box::new(move |pipeline| {
        log.set(&pipeline.log);
        let new = pipeline.control.as_ref().and_then(|control| control.token.as_ref());
        if let (Some(current), Some(new)) = (&token, new) {
            current.set(new.clone());
        }
    })
}

fn whole(path: &Path) -> PathBuf {
    absolute(path).unwrap_or_else(|_| path.to_owned())
}
