//! The `lockgate` program: parses what was typed, composes a pipeline, runs it and says what happened.

mod args;
mod client;
mod command;
mod compose;
mod control;
mod envelope;
mod excerpt;
mod exit;
#[cfg(fuzzing)]
pub mod fuzzing;
mod log;
mod mask;
mod operate;
mod pipeline;
mod progress;
mod recorder;
mod signals;
mod subject;
mod supervisor;
mod terminal;

use std::io::Write;

use clap::Parser;

use args::{Args, Command};
use exit::{Code, Failed};

/// Does what the arguments of this process ask for, and ends it with the exit code that says how that went.
pub fn main() -> ! {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let wanted = !error.use_stderr();
            let _ = error.print();
            Code::exit(if wanted { Code::Done } else { Code::Usage });
        }
    };
    let done = std::panic::catch_unwind(|| perform(args.command));
    match done {
        Ok(Ok(code)) => Code::exit(code),
        Ok(Err(Failed { code, message })) => {
            let _ = writeln!(std::io::stderr(), "lockgate: {message}");
            Code::exit(code);
        }
        // The panic has been printed.
        Err(_) => Code::exit(Code::Bug),
    }
}

fn perform(command: Command) -> Result<Code, Failed> {
    match command {
        Command::Run(run) => command::run(&run)?,
        Command::Record(record) => command::record(&record)?,
        Command::Replay(replay) => command::replay(&replay)?,
        Command::Verify { what } => command::verify(&what)?,
        Command::Show(show) => command::show(&show)?,
        Command::Diff(diff) => return command::diff(&diff),
        Command::Check { pipeline } => command::check(&pipeline)?,
        Command::Init { directory } => command::init(&directory)?,
        Command::Status { at, json } => command::status(&at, json)?,
        Command::Top(at) => command::top(&at)?,
        Command::Tap(tap) => command::tap(&tap)?,
        Command::Pause(choice) => command::pause(&choice)?,
        Command::Resume(choice) => command::resume(&choice)?,
        Command::Checkpoint(at) => command::checkpoint(&at)?,
        Command::Suspend(at) => command::suspend(&at)?,
        Command::Stop(at) => command::stop(&at)?,
        Command::Reload(at) => command::reload(&at)?,
        Command::Schema => command::schema()?,
        Command::Inspect { state_dir, json } => command::inspect(&state_dir, json)?,
    }
    Ok(Code::Done)
}
