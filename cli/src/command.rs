//! The commands, one file each.

mod check;
mod diff;
mod init;
mod inspect;
mod record;
mod replay;
mod run;
mod schema;
mod show;
mod status;
mod steer;
mod tap;
mod top;
mod verify;

pub(crate) use check::check;
#[cfg(fuzzing)]
pub(crate) use check::describe;
pub(crate) use diff::diff;
pub(crate) use init::init;
pub(crate) use inspect::inspect;
pub(crate) use record::{From, To, record};
pub(crate) use replay::replay;
pub(crate) use run::run;
pub(crate) use schema::schema;
pub(crate) use show::{Line, show};
pub(crate) use status::status;
pub(crate) use steer::{checkpoint, pause, reload, resume, stop, suspend};
pub(crate) use tap::tap;
pub(crate) use top::top;
pub(crate) use verify::verify;

use crate::exit::Failed;

/// Writes `text` to standard output; a reader that has gone away is no failure.
fn print(text: &str) -> Result<(), Failed> {
    offer(text).map(|_| ())
}

/// Writes `text` to standard output, and says whether there is still a reader.
fn offer(text: &str) -> Result<bool, Failed> {
    use std::io::{ErrorKind, Write};
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failed::storage("writing to standard output", &error)),
    }
}
