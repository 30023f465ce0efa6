//! The database file: how it comes to be, how it is opened, and what its errors mean.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, params};

use super::paused::PAUSED;
use super::rows::seal;
use super::{DATABASE, StateError};

/// How long a call waits for another process that works on the database.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The version of the layout.
pub(super) const FORMAT: &str = "3";

const TABLES: &str = "
    CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL, seal INTEGER NOT NULL) STRICT;
    CREATE TABLE checkpoint (
        step INTEGER NOT NULL, stored_at_ms INTEGER NOT NULL, circuit BLOB NOT NULL,
        seal INTEGER NOT NULL
    ) STRICT;
    CREATE TABLE position (
        kind TEXT NOT NULL, name TEXT NOT NULL, position TEXT, seal INTEGER NOT NULL,
        PRIMARY KEY (kind, name)
    ) STRICT;
    CREATE TABLE journal (
        step INTEGER NOT NULL, input TEXT NOT NULL, seek TEXT NOT NULL, whole INTEGER NOT NULL,
        replay BLOB NOT NULL, records INTEGER NOT NULL, hash INTEGER NOT NULL, seal INTEGER NOT NULL,
        PRIMARY KEY (step, input)
    ) STRICT, WITHOUT ROWID;
";

/// Creates the database if there is none. It appears under its name only when it is complete, so a
/// crash leaves either none or a good one, and an empty file is never taken for a new start.
pub(super) fn ensure(path: &Path, pipeline: &str, has_lived: bool) -> Result<(), StateError> {
    let storage = |what: &'static str| {
        move |error: io::Error| StateError::Storage {
            path: path.into(),
            what,
            source: error.into(),
        }
    };
    let database = path.join(DATABASE);
    // A link that leads nowhere, say to a volume that is not mounted, is not a new start.
    match fs::symlink_metadata(&database) {
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(storage("looking for the database")(error)),
    }
    if path.join(format!("{DATABASE}-wal")).exists() {
        let what = format!("there is a {DATABASE}-wal but no {DATABASE}");
        return Err(StateError::Damaged { path: path.into(), what });
    }
    if has_lived {
        let what =
            format!("{DATABASE} is missing, but a pipeline has run on this directory before");
        return Err(StateError::Damaged { path: path.into(), what });
    }
    let new = path.join(format!("{DATABASE}.new"));
    match fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(storage("removing an unfinished database")(error));
        }
        _ => {}
    }
    // Until it has its name a crash may leave anything of it, so it needs no journal of its own.
    let create = || {
        let mut connection = Connection::open(&new)?;
        connection.pragma_update(None, "journal_mode", "OFF")?;
        let transaction = connection.transaction()?;
        transaction.execute_batch(TABLES)?;
        write_fact(&transaction, "format", FORMAT)?;
        write_fact(&transaction, "pipeline", pipeline)?;
        write_fact(&transaction, PAUSED, "[]")?;
        transaction.commit()?;
        connection.close().map_err(|(_, error)| error)
    };
    create().map_err(|error| classify(path, "creating the database", error))?;
    let sync = |path: &Path| File::open(path).and_then(|file| file.sync_all());
    sync(&new).map_err(storage("writing the database"))?;
    fs::rename(&new, &database).map_err(storage("naming the database"))?;
    sync(path).map_err(storage("writing the directory"))
}

/// The inode of the database's file.
pub(super) fn inode(path: &Path) -> Result<u64, StateError> {
    let found = fs::metadata(path.join(DATABASE));
    found.map(|found| found.ino()).map_err(|error| StateError::Storage {
        path: path.into(),
        what: "looking for the database",
        source: error.into(),
    })
}

/// Makes sure that the database's file is still in its place: what is stored in one that was removed is
/// lost.
pub(super) fn check_place(path: &Path, expected: u64) -> Result<(), StateError> {
    match inode(path) {
        Ok(found) if found == expected => Ok(()),
        _ => {
            let what = format!("{DATABASE} was removed or replaced while a pipeline ran on it");
            Err(StateError::Damaged { path: path.into(), what })
        }
    }
}

pub(super) fn connect(path: &Path, flags: OpenFlags) -> Result<Connection, StateError> {
    let file = path.join(DATABASE);
    let size = fs::metadata(&file).map(|metadata| metadata.len());
    if size.is_ok_and(|size| size == 0) {
        return Err(StateError::Damaged {
            path: path.into(),
            what: format!("{DATABASE} is empty"),
        });
    }
    let open = || {
        let connection =
            Connection::open_with_flags(&file, flags | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
        connection.busy_timeout(PATIENCE)?;
        if flags.contains(OpenFlags::SQLITE_OPEN_READ_WRITE) {
            connection.pragma_update(None, "journal_mode", "WAL")?;
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        Ok(connection)
    };
    open().map_err(|error| classify(path, "opening the database", error))
}

/// Checks that the database is whole and of a format that this program reads.
pub(super) fn check(path: &Path, database: &Connection) -> Result<(), StateError> {
    let damaged = |what: String| StateError::Damaged { path: path.into(), what };
    let verdict: String = database
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|error| classify(path, "checking the database", error))?;
    if verdict != "ok" {
        return Err(damaged(format!("{DATABASE} is damaged: {verdict}")));
    }
    let found: String = database
        .query_row("SELECT value FROM meta WHERE key = 'format'", [], |row| row.get(0))
        .map_err(|error| damaged(format!("{DATABASE} is not a lockgate state: {error}")))?;
    if found != FORMAT {
        return Err(StateError::Format { path: path.into(), found });
    }
    // All of them: one that is not found under its name any more must not be taken for one that never was.
    match broken_fact(database).map_err(|error| classify(path, "checking the database", error))? {
        Some(key) => Err(damaged(format!("{DATABASE} is damaged: the fact {key:?}"))),
        None => Ok(()),
    }
}

/// Stores a fact about the directory.
pub(super) fn write_fact(database: &Connection, key: &str, value: &str) -> rusqlite::Result<()> {
    let sql = "INSERT OR REPLACE INTO meta (key, value, seal) VALUES (?1, ?2, ?3)";
    let seal = seal(&[key.as_bytes(), value.as_bytes()]);
    database.prepare_cached(sql)?.execute(params![key, value, seal]).map(|_| ())
}

/// The first fact whose seal is broken.
fn broken_fact(database: &Connection) -> rusqlite::Result<Option<String>> {
    let mut statement = database.prepare("SELECT key, value, seal FROM meta")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (key, value): (String, String) = (row.get(0)?, row.get(1)?);
        if seal(&[key.as_bytes(), value.as_bytes()]) != row.get::<_, i64>(2)? {
            return Ok(Some(key));
        }
    }
    Ok(None)
}

pub(super) fn classify(path: &Path, what: &'static str, error: rusqlite::Error) -> StateError {
    let path = path.into();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StateError::Full { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            StateError::Damaged { path, what: format!("{DATABASE} is damaged: {error}") }
        }
        _ => StateError::Storage { path, what, source: error.into() },
    }
}
