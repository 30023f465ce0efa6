//! The commands, one file each.

mod check;
mod init;
mod inspect;
mod record;
mod replay;
mod run;
mod schema;

pub(crate) use check::check;
pub(crate) use init::init;
pub(crate) use inspect::inspect;
pub(crate) use record::{From, To, record};
pub(crate) use replay::replay;
pub(crate) use run::run;
pub(crate) use schema::schema;

use crate::exit::Failed;

/// Writes `text` to standard output; a reader that has gone away is no failure.
fn print(text: &str) -> Result<(), Failed> {
    use std::io::{ErrorKind, Write};
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failed::storage("writing to standard output", &error))
        }
        _ => Ok(()),
    }
}
