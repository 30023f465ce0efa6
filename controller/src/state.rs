//! The state directory: one SQLite database with the last checkpoint and the journal since.
//!
//! Every row of checkpoint and journal carries a hash of its own content, so that a damaged row is named
//! instead of believed.
//! Not here: when to write ([`Sequence`](crate::Sequence)) and on which thread (`journal.rs`).

mod error;
mod fault;
mod paused;
mod reader;
mod rows;
mod schema;
mod settings;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lockgate_core::{PartDigest, Position};
use rusqlite::{Connection, OpenFlags, Transaction, params};
use serde_json::Value as JsonValue;

use crate::lock::{LockError, StateLock};
use crate::sequence::{Checkpoint, JournalPart, JournaledStep};
use crate::status::JournalStatus;
pub use error::StateError;
pub use fault::StateFault;
use reader::Reader;
use rows::{encode_msgpack, journal_seal, seal};
use settings::Comparison;
pub use settings::{ChangeClass, Setting};

const DATABASE: &str = "state.db";

/// How long emptying the write-ahead log waits for others that read.
const PATIENCE_WITH_READERS: Duration = Duration::from_millis(100);

/// The last checkpoint, by names.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredCheckpoint {
    /// The last step it covers.
    pub step: u64,
    /// When it was stored, in milliseconds since the Unix epoch.
    pub stored_at_ms: u64,
    /// The circuit's state.
    pub circuit: Vec<u8>,
    /// The inputs' positions; `None` is the beginning.
    pub inputs: BTreeMap<String, Option<JsonValue>>,
    /// The outputs' positions.
    pub outputs: BTreeMap<String, JsonValue>,
}

/// A journaled step, whoever's it is.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedStep {
    /// Its number.
    pub step: u64,
    /// What each input gave.
    pub parts: Vec<NamedPart>,
}

/// One input's part of a journaled step. See [`JournalPart`].
#[derive(Clone, Debug, PartialEq)]
pub struct NamedPart {
    /// The input's name.
    pub input: String,
    /// Where the reader stood after the step, as it gave it.
    pub seek: Position,
    /// What the step consists of.
    pub replay: rmpv::Value,
    /// Count and hash of the records.
    pub digest: PartDigest,
}

/// A look into a state directory, without changing it.
#[derive(Clone, Debug, PartialEq)]
pub struct Inspection {
    /// The pipeline's name.
    pub pipeline: String,
    /// The last checkpoint; `None` if the first was never reached.
    pub checkpoint: Option<StoredCheckpoint>,
    /// The journaled steps, in order.
    pub journal: Vec<NamedStep>,
}

/// An open state directory. The lock is held as long as this lives.
#[derive(Debug)]
pub struct State {
    path: PathBuf,
    database: Connection,
    inputs: Vec<String>,
    outputs: Vec<String>,
    /// Whether steps are journaled; otherwise what an earlier run journaled goes with the next checkpoint.
    keeps_journal: bool,
    /// Of the database's file, to notice when it is taken away.
    inode: u64,
    /// The owner's settings and those of the last run.
    settings: Box<Comparison>,
    fault: Option<StateFault>,
    _lock: StateLock,
}

/// Whose state a directory is.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// The pipeline's name.
    pub pipeline: &'a str,
    /// The names of its inputs, in their order.
    pub inputs: &'a [String],
    /// The names of its outputs, in their order.
    pub outputs: &'a [String],
    /// Its other settings that are compared with those of the last run.
    pub settings: &'a [Setting],
    /// Whether its steps are journaled.
    pub keeps_journal: bool,
}

impl State {
    /// Opens the state directory at `path`, or creates it.
    ///
    /// A directory of another owner, or of this one with changes that need consent (see [`ChangeClass`]), is refused
    /// unless `accept_changes`; what changed is stored together with the next checkpoint.
    ///
    /// # Errors
    /// See [`StateError`]; nothing is changed then.
    pub fn open(path: &Path, owner: Owner<'_>, accept_changes: bool) -> Result<Self, StateError> {
        let mut lock = StateLock::take(path).map_err(|error| match error {
            LockError::InUse { holder } => StateError::InUse { path: path.into(), holder },
            LockError::Io { what, source } => {
                StateError::Storage { path: path.into(), what, source: source.into() }
            }
        })?;
        schema::ensure(path, owner.pipeline, lock.has_lived())?;
        // From now on a missing database is a loss, not a first start.
        lock.mark_lived();
        let database = schema::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        schema::check(path, &database)?;
        let mut state = Self {
            path: path.into(),
            database,
            inputs: owner.inputs.to_vec(),
            outputs: owner.outputs.to_vec(),
            keeps_journal: owner.keeps_journal,
            inode: schema::inode(path)?,
            settings: Box::default(),
            fault: None,
            _lock: lock,
        };
        state.check_whole()?;
        state.settings = Box::new(state.compare(owner, accept_changes)?);
        if let Some(input) =
            state.journaled_inputs()?.into_iter().find(|name| !owner.inputs.contains(name))
            && owner.keeps_journal
        {
            return Err(StateError::InputGone { path: path.into(), input });
        }
        // What a process that was killed had written may not have reached the disk; from here on it is relied on.
        match state.empty_log() {
            // The log was made durable before anything was moved.
            Err(StateError::Full { .. }) => {}
            emptied => emptied?,
        }
        Ok(state)
    }

    /// Looks into the state directory at `path`; another process may be working on it.
    ///
    /// # Errors
    /// If there is none, or it is damaged.
    pub fn inspect(path: &Path) -> Result<Inspection, StateError> {
        if !path.join(DATABASE).exists() {
            return Err(StateError::Missing { path: path.into() });
        }
        let database = schema::connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        schema::check(path, &database)?;
        // One transaction, so that all of it is of one moment.
        let moment = database.unchecked_transaction();
        let moment = moment.map_err(|error| schema::classify(path, "reading it", error))?;
        let reader = Reader { path, database: &moment };
        Ok(Inspection {
            pipeline: reader.meta("pipeline")?.unwrap_or_default(),
            checkpoint: reader.checkpoint()?,
            journal: reader.journal(0, u32::MAX)?,
        })
    }

    /// Whether a checkpoint has to be stored before anything is read: the first one, or one that makes changes
    /// last.
    ///
    /// # Errors
    /// If the checkpoint is damaged.
    pub fn is_unsettled(&self) -> Result<bool, StateError> {
        let foreign_journal = !self.keeps_journal && !self.journaled_inputs()?.is_empty();
        Ok(self.settings.is_urgent || foreign_journal || self.checkpoint()?.is_none())
    }

    /// The last checkpoint, `None` before the first.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn checkpoint(&self) -> Result<Option<StoredCheckpoint>, StateError> {
        self.reader().checkpoint()
    }

    /// The last journaled step.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn last_journaled(&self) -> Result<Option<u64>, StateError> {
        let last = self
            .database
            .query_row("SELECT max(step) FROM journal", [], |row| row.get::<_, Option<i64>>(0));
        let last = last.map_err(|error| schema::classify(&self.path, "reading it", error))?;
        Ok(last.map(i64::cast_unsigned))
    }

    /// At most `limit` journaled steps after step `after`, in order.
    ///
    /// # Errors
    /// If a row is damaged, or belongs to an input that is gone.
    pub fn journaled(&self, after: u64, limit: u32) -> Result<Vec<JournaledStep>, StateError> {
        let steps = self.reader().journal(after, limit)?;
        let numbers = steps.iter().map(|step| step.step);
        if let Some((expected, _)) = (after + 1..).zip(numbers).find(|(a, b)| a != b) {
            return Err(self
                .reader()
                .damaged(format!("step {expected} is missing from the journal")));
        }
        let numbered = |part: NamedPart| {
            let NamedPart { input: name, seek, replay, digest } = part;
            let input = self.inputs.iter().position(|input| *input == name);
            let input = input
                .ok_or_else(|| StateError::InputGone { path: self.path.clone(), input: name })?;
            Ok(JournalPart { input, seek, replay, digest })
        };
        let numbered = |NamedStep { step, parts }| {
            let parts: Result<Vec<_>, StateError> = parts.into_iter().map(numbered).collect();
            let mut parts = parts?;
            parts.sort_by_key(|part| part.input);
            Ok(JournaledStep { step, parts })
        };
        steps.into_iter().map(numbered).collect()
    }

    /// How much is journaled since the last checkpoint.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn journal_size(&self) -> Result<JournalStatus, StateError> {
        let sql = "SELECT count(DISTINCT step), coalesce(sum(length(seek) + length(replay)), 0)
                   FROM journal";
        let size = self.database.query_row(sql, [], |row| {
            Ok(JournalStatus {
                steps: row.get::<_, i64>(0)?.cast_unsigned(),
                bytes: row.get::<_, i64>(1)?.cast_unsigned(),
            })
        });
        size.map_err(|error| schema::classify(&self.path, "reading it", error))
    }

    /// Makes `steps` durable, all or none. Gives how many bytes that took.
    ///
    /// # Errors
    /// [`StateError::Full`] if the same call may come again.
    pub fn append(&mut self, steps: &[JournaledStep]) -> Result<u64, StateError> {
        if self.has(StateFault::AnsweredEarly) && steps.len() > 1 {
            return Ok(0);
        }
        let inputs = &self.inputs;
        let mut bytes = 0;
        in_transaction(&self.path, &mut self.database, "writing the journal", |transaction| {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO journal (step, input, seek, whole, replay, records, hash, seal)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            )?;
            for step in steps {
                for part in &step.parts {
                    let input = &inputs[part.input];
                    let (seek, whole) = (part.seek.json().to_string(), part.seek.is_whole());
                    let replay = encode_msgpack(&part.replay);
                    bytes += (seek.len() + replay.len()) as u64;
                    let place = (step.step, step.parts.len());
                    let seal = journal_seal(place, input, &seek, whole, &replay, part.digest);
                    let PartDigest { records, hash } = part.digest;
                    let (records, hash) = (records.cast_signed(), hash.cast_signed());
                    let step = step.step.cast_signed();
                    insert
                        .execute(params![step, input, seek, whole, replay, records, hash, seal])?;
                }
            }
            Ok(())
        })?;
        Ok(bytes)
    }

    /// Stores `checkpoint` in place of the last one and trims the journal, all or nothing. Gives the bytes of its
    /// content.
    ///
    /// # Errors
    /// [`StateError::Full`] if the same call may come again.
    pub fn store(&mut self, checkpoint: &Checkpoint, stored_at_ms: u64) -> Result<u64, StateError> {
        let mut bytes = checkpoint.circuit.len() as u64;
        schema::check_place(&self.path, self.inode)?;
        let (inputs, outputs) = (&self.inputs, &self.outputs);
        let mut last_journaled = if self.keeps_journal { checkpoint.step } else { i64::MAX as u64 };
        if self.has(StateFault::TrimmedTooFar) {
            last_journaled = last_journaled.saturating_add(1);
        }
        if self.has(StateFault::TrimmedApart) {
            let sql = "DELETE FROM journal WHERE step <= ?1";
            let _ = self.database.execute(sql, [last_journaled.cast_signed()]);
        }
        let settings = &self.settings.to_store;
        in_transaction(&self.path, &mut self.database, "storing a checkpoint", |transaction| {
            let step = checkpoint.step;
            let sql = "DELETE FROM journal WHERE step <= ?1";
            transaction.prepare_cached(sql)?.execute([last_journaled.cast_signed()])?;
            for (key, settings) in settings {
                schema::write_fact(transaction, key, settings)?;
            }
            transaction.prepare_cached("DELETE FROM checkpoint")?.execute([])?;
            transaction.prepare_cached("DELETE FROM position")?.execute([])?;
            let at = stored_at_ms;
            let sql = "INSERT INTO checkpoint (step, stored_at_ms, circuit, seal) VALUES (?1, ?2, ?3, ?4)";
            transaction.prepare_cached(sql)?.execute(params![
                step.cast_signed(),
                at.cast_signed(),
                checkpoint.circuit,
                seal(&[&step.to_le_bytes(), &at.to_le_bytes(), &checkpoint.circuit]),
            ])?;
            let mut insert = transaction.prepare_cached(
                "INSERT INTO position (kind, name, position, seal) VALUES (?1, ?2, ?3, ?4)",
            )?;
            let mut insert = |kind: &str, name: &String, position: Option<String>| {
                let text = position.as_deref().unwrap_or_default();
                bytes += text.len() as u64;
                let seal =
                    seal(&[&step.to_le_bytes(), kind.as_bytes(), name.as_bytes(), text.as_bytes()]);
                insert.execute(params![kind, name, position, seal])
            };
            for (name, seek) in inputs.iter().zip(&checkpoint.seeks) {
                insert("input", name, seek.as_ref().map(JsonValue::to_string))?;
            }
            for (name, position) in outputs.iter().zip(&checkpoint.positions) {
                insert("output", name, Some(position.to_string()))?;
            }
            Ok(())
        })?;
        self.empty_log()?;
        self.settings.is_urgent = false;
        self.settings.to_store.clear();
        Ok(bytes)
    }

    /// What is damaged where a position is missing that every checkpoint has.
    pub fn lacks_position(&self, endpoint: &str) -> StateError {
        self.reader().damaged(format!("the position of {endpoint} is missing"))
    }

    /// Moves what the write-ahead log has into the database: a log that is damaged counts as one that ends there, and
    /// what was promised must not depend on it. Whoever reads the database just then keeps that from happening, this
    /// time, and is not waited for; the log is durable all the same.
    fn empty_log(&self) -> Result<(), StateError> {
        let what = "moving the write-ahead log into the database";
        let classify = |error| schema::classify(&self.path, what, error);
        self.database.busy_timeout(PATIENCE_WITH_READERS).map_err(classify)?;
        let sql = "PRAGMA wal_checkpoint(TRUNCATE)";
        let is_busy = self.database.query_row(sql, [], |row| row.get::<_, bool>(0));
        self.database.busy_timeout(schema::PATIENCE).map_err(classify)?;
        if is_busy.map_err(classify)? {
            tracing::warn!("somebody else reads the state directory, whose log grows meanwhile");
            let log = self.path.join(format!("{DATABASE}-wal"));
            let synced = File::open(log).and_then(|log| log.sync_all());
            let path = self.path.clone();
            synced.map_err(|error| StateError::Storage { path, what, source: error.into() })?;
        }
        Ok(())
    }

    /// Checks that nothing is missing that must be there.
    fn check_whole(&self) -> Result<(), StateError> {
        let checkpoint = self.checkpoint()?;
        let query = |sql| {
            let found = self.database.query_row(sql, [], |row| row.get::<_, Option<i64>>(0));
            found.map_err(|error| schema::classify(&self.path, "checking the database", error))
        };
        let first = query("SELECT min(step) FROM journal")?.map(i64::cast_unsigned);
        let damaged = |what: String| Err(self.reader().damaged(what));
        // They come with the first checkpoint.
        match (checkpoint, self.has_settings()?) {
            (None, true) => damaged("the checkpoint is missing".into()),
            (Some(checkpoint), _) if first.is_some_and(|first| first <= checkpoint.step) => {
                let step = checkpoint.step;
                damaged(format!("the journal has steps that the checkpoint at step {step} covers"))
            }
            (Some(_), false) => damaged("the settings of the last run are missing".into()),
            (None, false) | (Some(_), true) => Ok(()),
        }
    }

    fn journaled_inputs(&self) -> Result<Vec<String>, StateError> {
        let query = || {
            let mut statement = self.database.prepare("SELECT DISTINCT input FROM journal")?;
            let names = statement.query_map([], |row| row.get(0))?;
            names.collect::<rusqlite::Result<Vec<String>>>()
        };
        query().map_err(|error| schema::classify(&self.path, "reading it", error))
    }

    fn reader(&self) -> Reader<'_> {
        Reader { path: &self.path, database: &self.database }
    }

    /// The changes of settings that had to be accepted, one line each.
    pub fn accepted_changes(&self) -> &[String] {
        &self.settings.accepted
    }

    /// The changes of settings that need nobody's consent, one line each.
    pub fn noticed_changes(&self) -> &[String] {
        &self.settings.noticed
    }
}

fn in_transaction(
    path: &Path,
    database: &mut Connection,
    what: &'static str,
    work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<()>,
) -> Result<(), StateError> {
    let attempt = || {
        let transaction = database.transaction()?;
        work(&transaction)?;
        transaction.commit()
    };
    attempt().map_err(|error| schema::classify(path, what, error))
}

#[cfg(test)]
mod tests;
