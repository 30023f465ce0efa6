//! Reading a recording: what it is about, its parts, its records, and whether they are what was delivered.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use lockgate_core::{Batch, Framing, PartDigest, PartHasher};
use parquet::schema::types::SchemaDescriptor;

use super::about::About;
use super::check::Chain;
use super::decode::{Mode, Rows};
use super::error::RecordingError;
use super::fault::{Fault, FaultKind};
use super::footer::{self, Ending, Footer, MAGIC, Place};
use super::group::{Group, Source};
use super::part::Part;
use super::rebuild::Rebuild;
use super::schema;

/// A recording that is read. Clones share the file and the index.
#[derive(Clone)]
pub struct Recording {
    source: Arc<Source>,
    about: About,
    parts: Arc<[Part]>,
    groups: Arc<[Group]>,
    complete: bool,
}

impl Recording {
    /// Opens the recording at `path`. One that was cut short, by a crash or while it was copied, has everything
    /// up to the last row group that is complete; [`complete`](Self::complete) tells.
    ///
    /// # Errors
    /// If the file cannot be read, is no recording, is one of a later format, or is damaged.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let source = Source::open(path)?;
        let not_ours = |found: &str| {
            Err(RecordingError::NotARecording { path: path.to_path_buf(), found: found.to_owned() })
        };
        let length = source.length();
        let magic = MAGIC.len() as u64;
        if length < magic || source.read(0..magic)? != MAGIC[..] {
            return not_ours(&format!(
                "its {length} bytes do not begin with {}",
                MAGIC.escape_ascii()
            ));
        }
        let schema = schema::schema().map_err(|error| RecordingError::Bug {
            path: path.to_path_buf(),
            what: error.to_string(),
        })?;
        let last = match footer::ending_at(&source, &schema, length, false)? {
            Ending::Footer(footer) => Some(*footer),
            Ending::Foreign => return not_ours("it is a Parquet file that something else wrote"),
            Ending::Nothing => footer::last_inner(&source, &schema, length)?,
        };
        let Some(mut last) = last else {
            return not_ours(
                "it begins like a Parquet file and has no intact footer, as if it had been cut off in its first \
                 bytes",
            );
        };
        let complete = last.place == Place::Last;
        let (mut parts, mut groups) = (Vec::new(), Vec::new());
        if complete {
            (parts, groups) = (std::mem::take(&mut last.parts), std::mem::take(&mut last.groups));
        } else {
            let footers = chain(&source, &schema, &last)?;
            for footer in footers {
                parts.extend(footer.parts);
                groups.extend(footer.groups);
            }
            parts.append(&mut last.parts);
            groups.append(&mut last.groups);
        }
        let records = total(parts.iter().map(|part| part.digest.records));
        if records.and(total(groups.iter().map(|group| group.rows))).is_none() {
            return Err(RecordingError::damaged(
                path,
                "its parts have more records than can be counted",
            ));
        }
        let (source, about) = (Arc::new(source), last.about);
        Ok(Self { source, about, parts: parts.into(), groups: groups.into(), complete })
    }

    /// What it says about itself.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Whether it was finished. If not, it ends where the last row group was made durable.
    pub fn complete(&self) -> bool {
        self.complete
    }

    /// Its parts, in the order of delivery.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Number of records of all parts.
    pub fn records(&self) -> u64 {
        self.parts.iter().map(|part| part.digest.records).sum()
    }

    /// Length of the file in bytes.
    pub fn bytes(&self) -> u64 {
        self.source.length()
    }

    /// Reads the parts of `range` (clipped to those that there are), each with its number. Only row groups that
    /// hold one of them are read, one at a time. Memory: one row group as it is stored, and one part.
    ///
    /// What comes out is what was written, or an error. That it is what was delivered, its digest proves, which is
    /// for whoever takes the part to compare.
    pub fn read(&self, range: Range<usize>) -> Parts {
        let end = range.end.min(self.parts.len());
        let start = range.start.min(end);
        let row: u64 = self.parts[..start].iter().map(|part| part.digest.records).sum();
        let (mut group, mut first_row) = (0, 0);
        while let Some(rows) = self.groups.get(group).map(|group| group.rows)
            && first_row + rows <= row
        {
            first_row += rows;
            group += 1;
        }
        let rows =
            Rows::new(self.source.clone(), self.groups.clone(), Mode::Replay, group, first_row);
        let rebuild = Rebuild::new(self.about.framing);
        let compare = !self.groups.iter().all(Group::has_hash);
        let (recording, skip) = (self.clone(), row - first_row);
        Parts { recording, rows, rebuild, skip, range: start..end, compare }
    }

    /// Reads everything and finds the first place that is not what was delivered, `None` if all is.
    ///
    /// # Errors
    /// If the file cannot be read, or is damaged in a way that leaves no record to name.
    pub fn verify(&self) -> Result<Option<Fault>, RecordingError> {
        let mut rows = Rows::new(self.source.clone(), self.groups.clone(), Mode::Verify, 0, 0);
        let mut part_check = PartCheck::new(self.about.framing);
        for (number, part) in self.parts.iter().enumerate() {
            if let Some(fault) = part_check.run(&mut rows, number, part)? {
                return Ok(Some(fault));
            }
        }
        let mut surplus = None;
        let last = self.parts.len().saturating_sub(1);
        rows.advance(1, |stored| {
            surplus = Some(Fault::new(last, stored.step, Some(&stored.row), FaultKind::Surplus));
            false
        })?;
        match rows.take_altered().filter(|_| surplus.is_none()) {
            Some(altered) => Err(altered),
            None => Ok(surplus),
        }
    }
}

/// `None` if the sum does not fit.
fn total(mut counts: impl Iterator<Item = u64>) -> Option<u64> {
    counts.try_fold(0, u64::checked_add)
}

/// The inner footers before `last`, in the order of the file.
fn chain(
    source: &Source,
    schema: &SchemaDescriptor,
    last: &Footer,
) -> Result<Vec<Footer>, RecordingError> {
    let mut footers = Vec::new();
    let mut place = last.place;
    // Each ends at or before the start of the one after it, so this comes to an end.
    while let Place::Inner { before: Some(before) } = place {
        let Ending::Footer(footer) = footer::ending_at(source, schema, before, true)? else {
            let found =
                format!("the footer that should end at byte {before} is not as it was written");
            return Err(RecordingError::damaged(source.path(), found));
        };
        place = footer.place;
        footers.push(*footer);
    }
    footers.reverse();
    Ok(footers)
}

/// Parts of a recording, each with its number and its records; from [`Recording::read`].
pub struct Parts {
    recording: Recording,
    rows: Rows,
    rebuild: Rebuild,
    /// Rows before the first part in its row group.
    skip: u64,
    range: Range<usize>,
    /// Whether another program wrote the file, so that only the digests tell if it is the same.
    compare: bool,
}

impl Iterator for Parts {
    type Item = Result<(usize, Vec<Batch>), RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let number = self.range.next()?;
        let result = self.part(number);
        if result.is_err() {
            self.range = 0..0;
        }
        Some(result.map(|batches| (number, batches)))
    }
}

impl Parts {
    fn part(&mut self, number: usize) -> Result<Vec<Batch>, RecordingError> {
        let mut left = self.recording.parts[number].digest.records;
        if left > 0 {
            self.rows.skip(std::mem::take(&mut self.skip))?;
        }
        let path = self.recording.source.path();
        while left > 0 {
            let mut nonsense = None;
            let rebuild = &mut self.rebuild;
            let taken = self.rows.advance(left, |stored| match rebuild.push(&stored.row) {
                Ok(()) => true,
                Err(why) => {
                    let kind = FaultKind::Nonsense(why);
                    nonsense = Some(Fault::new(number, None, Some(&stored.row), kind));
                    false
                }
            })?;
            if let Some(fault) = nonsense {
                return Err(RecordingError::damaged(path, fault.to_string()));
            }
            if taken == 0 {
                let fault = Fault::new(number, None, None, FaultKind::Missing);
                return Err(RecordingError::damaged(path, fault.to_string()));
            }
            left -= taken;
        }
        let batches = self.rebuild.finish();
        let part = &self.recording.parts[number];
        if self.compare && PartDigest::of(&batches) != part.digest {
            let fault = Fault::new(number, part.step, None, FaultKind::Digest);
            return Err(RecordingError::damaged(path, fault.to_string()));
        }
        Ok(batches)
    }
}

/// Compares parts with what was recorded of them.
struct PartCheck {
    chain: Chain,
    rebuild: Rebuild,
}

impl PartCheck {
    fn new(framing: Option<Framing>) -> Self {
        Self { chain: Chain::default(), rebuild: Rebuild::new(framing) }
    }

    fn run(
        &mut self,
        rows: &mut Rows,
        number: usize,
        part: &Part,
    ) -> Result<Option<Fault>, RecordingError> {
        let Self { chain, rebuild } = self;
        let mut hasher = PartHasher::default();
        let mut left = part.digest.records;
        chain.restart();
        while left > 0 {
            let mut fault = None;
            let taken = rows.advance(left, |stored| {
                let row = &stored.row;
                let kind = if chain.next(row) != stored.check {
                    FaultKind::Record
                } else if stored.step != part.step {
                    FaultKind::Step
                } else if let Err(why) = rebuild.push(row) {
                    FaultKind::Nonsense(why)
                } else {
                    return true;
                };
                fault = Some(Fault::new(number, part.step, Some(row), kind));
                false
            })?;
            if fault.is_some() {
                return Ok(fault);
            }
            if taken == 0 {
                return Ok(Some(Fault::new(number, part.step, None, FaultKind::Missing)));
            }
            left -= taken;
            rebuild.drain().for_each(|batch| hasher.update(&batch));
        }
        rebuild.finish().iter().for_each(|batch| hasher.update(batch));
        let differs = hasher.finish() != part.digest;
        Ok(differs.then(|| Fault::new(number, part.step, None, FaultKind::Digest)))
    }
}
