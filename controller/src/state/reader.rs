//! Reads rows and checks their seals.

use std::collections::BTreeMap;
use std::path::Path;

use lockgate_core::{PartDigest, Position};
use rusqlite::{Connection, OptionalExtension, params};

use super::rows::{decode_json, decode_msgpack, journal_seal, seal};
use super::{NamedPart, NamedStep, StateError, StoredCheckpoint, schema};

/// A database to be read.
pub(super) struct Reader<'a> {
    pub(super) path: &'a Path,
    pub(super) database: &'a Connection,
}

struct JournalRow {
    step: u64,
    input: String,
    seek: String,
    is_whole: bool,
    replay: Vec<u8>,
    digest: PartDigest,
    seal: i64,
}

impl Reader<'_> {
    pub(super) fn meta(&self, key: &str) -> Result<Option<String>, StateError> {
        self.database
            .query_row("SELECT value FROM meta WHERE key = ?1", [key], |row| row.get(0))
            .optional()
            .map_err(|error| schema::classify(self.path, "reading it", error))
    }

    pub(super) fn checkpoint(&self) -> Result<Option<StoredCheckpoint>, StateError> {
        let row = self.database.query_row(
            "SELECT step, stored_at_ms, circuit, seal FROM checkpoint",
            [],
            |row| {
                let (step, at): (i64, i64) = (row.get(0)?, row.get(1)?);
                let (circuit, seal): (Vec<u8>, i64) = (row.get(2)?, row.get(3)?);
                Ok((step.cast_unsigned(), at.cast_unsigned(), circuit, seal))
            },
        );
        let row =
            row.optional().map_err(|error| schema::classify(self.path, "reading it", error))?;
        let Some((step, stored_at_ms, circuit, stored_seal)) = row else { return Ok(None) };
        if seal(&[&step.to_le_bytes(), &stored_at_ms.to_le_bytes(), &circuit]) != stored_seal {
            return Err(self.damaged(format!("the checkpoint at step {step} is damaged")));
        }
        let (mut inputs, mut outputs) = (BTreeMap::new(), BTreeMap::new());
        for (kind, name, position) in self.positions(step)? {
            let what = || format!("the position of {kind} {name}");
            let decoded = position.map(|text| decode_json(&text)).transpose();
            let decoded =
                decoded.map_err(|_| self.damaged(format!("{} cannot be read", what())))?;
            match (kind.as_str(), decoded) {
                ("input", position) => {
                    inputs.insert(name, position);
                }
                (_, Some(position)) => {
                    outputs.insert(name, position);
                }
                (_, None) => return Err(self.damaged(format!("{} is missing", what()))),
            }
        }
        Ok(Some(StoredCheckpoint { step, stored_at_ms, circuit, inputs, outputs }))
    }

    fn positions(&self, step: u64) -> Result<Vec<(String, String, Option<String>)>, StateError> {
        type Row = (String, String, Option<String>, i64);
        let query = || {
            let mut statement =
                self.database.prepare("SELECT kind, name, position, seal FROM position")?;
            let rows = statement
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
            rows.collect::<rusqlite::Result<Vec<Row>>>()
        };
        let rows = query().map_err(|error| schema::classify(self.path, "reading it", error))?;
        rows.into_iter()
            .map(|(kind, name, position, stored_seal)| {
                let text = position.as_deref().unwrap_or_default();
                let fields: [&[u8]; 4] =
                    [&step.to_le_bytes(), kind.as_bytes(), name.as_bytes(), text.as_bytes()];
                match seal(&fields) == stored_seal {
                    true => Ok((kind, name, position)),
                    false => Err(self.damaged(format!("the position of {kind} {name} is damaged"))),
                }
            })
            .collect()
    }

    pub(super) fn journal(&self, after: u64, limit: u32) -> Result<Vec<NamedStep>, StateError> {
        let query = || {
            let mut statement = self.database.prepare_cached(
                "SELECT step, input, seek, whole, replay, records, hash, seal FROM journal
                 WHERE step IN (SELECT DISTINCT step FROM journal WHERE step > ?1 ORDER BY step LIMIT ?2)
                 ORDER BY step, input",
            )?;
            let rows = statement.query_map(params![after.cast_signed(), limit], |row| {
                let step: i64 = row.get(0)?;
                let (records, hash): (i64, i64) = (row.get(5)?, row.get(6)?);
                Ok(JournalRow {
                    step: step.cast_unsigned(),
                    input: row.get(1)?,
                    seek: row.get(2)?,
                    is_whole: row.get(3)?,
                    replay: row.get(4)?,
                    digest: PartDigest {
                        records: records.cast_unsigned(),
                        hash: hash.cast_unsigned(),
                    },
                    seal: row.get(7)?,
                })
            })?;
            rows.collect::<rusqlite::Result<Vec<JournalRow>>>()
        };
        let rows = query().map_err(|error| schema::classify(self.path, "reading it", error))?;
        let steps = rows.chunk_by(|a, b| a.step == b.step).map(|rows| {
            let parts = rows.iter().map(|row| self.journal_part(row, rows.len()));
            Ok(NamedStep { step: rows[0].step, parts: parts.collect::<Result<_, StateError>>()? })
        });
        steps.collect()
    }

    /// One of so many parts of a step.
    fn journal_part(&self, row: &JournalRow, parts: usize) -> Result<NamedPart, StateError> {
        let JournalRow { step, input, seek, is_whole, replay, digest, seal } = row;
        let damaged =
            || self.damaged(format!("the journal of step {step}, input {input} is damaged"));
        if journal_seal((*step, parts), input, seek, *is_whole, replay, *digest) != *seal {
            return Err(damaged());
        }
        let seek = decode_json(seek).map_err(|_| damaged())?;
        let seek = if *is_whole { Position::Whole(seek) } else { Position::Change(seek) };
        let replay = decode_msgpack(replay).ok_or_else(damaged)?;
        Ok(NamedPart { input: input.clone(), seek, replay, digest: *digest })
    }

    pub(super) fn damaged(&self, what: String) -> StateError {
        StateError::Damaged { path: self.path.into(), what }
    }
}
