//! Tapes: everything that is recorded of one input, in one recording or in several that follow one another, and
//! an input that gives it again.
//!
//! A run that is recorded begins a new recording each time it starts. What no checkpoint covered comes again then,
//! so a later recording takes the place of the earlier ones from its first step on. Not here: how a recording is
//! written and read ([`recording`](crate::recording)).

mod cursor;
mod input;
mod pace;
mod place;
mod reader;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lockgate_core::{Batch, Part, Step};

use crate::recording::{About, Part as RecordedPart, Parts, Recording, RecordingError};

pub use input::TapeInput;
pub use pace::Speed;

const EXTENSION: &str = "parquet";

/// Where the recordings of a run are: in one directory, `<input>-<number>.parquet` each.
pub fn piece_path(directory: &Path, input: &str, number: u32) -> PathBuf {
    directory.join(format!("{input}-{number:04}.{EXTENSION}"))
}

/// The input and the number in a name as [`piece_path`] gives it.
pub fn piece_name(path: &Path) -> Option<(String, u32)> {
    if path.extension()? != EXTENSION {
        return None;
    }
    let (input, number) = path.file_stem()?.to_str()?.rsplit_once('-')?;
    Some((input.to_owned(), number.parse().ok()?))
}

/// The recordings in a directory, by input, in their order.
///
/// # Errors
/// If the directory cannot be read.
pub fn pieces(directory: &Path) -> Result<BTreeMap<String, Vec<(u32, PathBuf)>>, RecordingError> {
    let failed =
        |source| RecordingError::Storage { doing: "read", path: directory.to_path_buf(), source };
    let mut pieces: BTreeMap<String, Vec<(u32, PathBuf)>> = BTreeMap::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if let Some((input, number)) = piece_name(&path) {
            pieces.entry(input).or_default().push((number, path));
        }
    }
    pieces.values_mut().for_each(|pieces| pieces.sort());
    Ok(pieces)
}

/// Everything that is recorded of one input. Clones share the files and the index.
#[derive(Clone, Default)]
pub struct Tape {
    recordings: Arc<[Recording]>,
    parts: Arc<[RecordedPart]>,
    /// Of each part that another recording begins with: the recording, and the part's number in it.
    ranges: Arc<[Piece]>,
}

/// Parts that adjoin in one recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    recording: usize,
    /// The number of the first of them on the tape.
    first: usize,
    len: usize,
}

impl Tape {
    /// Opens what is at `path`: one recording, or of a directory those of `input`, which need not be named if the
    /// directory has recordings of one input only.
    ///
    /// # Errors
    /// As [`open`](Self::open), and if there are none of the input, or of several.
    pub fn find(path: &Path, input: Option<&str>) -> Result<Self, RecordingError> {
        if !path.is_dir() {
            return Self::open(&[path.to_path_buf()]);
        }
        let mut found = pieces(path)?;
        let names: Vec<String> = found.keys().cloned().collect();
        let wanted = match (input, &names[..]) {
            (Some(input), _) => input,
            (None, [only]) => only.as_str(),
            (None, _) => "",
        };
        let Some(pieces) = found.remove(wanted) else {
            let names = if names.is_empty() { "no input".into() } else { names.join(", ") };
            let of = input.map_or_else(String::new, |input| format!(", none of {input}"));
            return Err(RecordingError::NotARecording {
                path: path.to_path_buf(),
                found: format!("the directory has recordings of {names}{of}; say of which"),
            });
        };
        let paths: Vec<PathBuf> = pieces.into_iter().map(|(_, path)| path).collect();
        Self::open(&paths)
    }

    /// Opens recordings of one input, in their order.
    ///
    /// # Errors
    /// As [`Recording::open`], and if the recordings do not follow one another.
    pub fn open(paths: &[PathBuf]) -> Result<Self, RecordingError> {
        let mut recordings = Vec::with_capacity(paths.len());
        for path in paths {
            match Recording::open(path) {
                Ok(recording) => recordings.push(recording),
                // It was begun when the run was killed: nothing can be in it.
                Err(RecordingError::NotARecording { .. }) if paths.len() > 1 && is_bud(path) => {}
                Err(error) => return Err(error),
            }
        }
        let mut kept: Vec<(usize, usize)> = Vec::new();
        for (number, recording) in recordings.iter().enumerate() {
            let Some(first) = recording.parts().first() else { continue };
            if let Some(step) = first.step {
                for (earlier, len) in &mut kept {
                    let parts: &[RecordedPart] = &recordings[*earlier].parts()[..*len];
                    *len = parts.partition_point(|part| part.step.is_some_and(|s| s < step));
                }
            }
            kept.push((number, recording.parts().len()));
        }
        let (mut parts, mut ranges) = (Vec::new(), Vec::new());
        for (recording, len) in kept.into_iter().filter(|(_, len)| *len > 0) {
            ranges.push(Piece { recording, first: parts.len(), len });
            parts.extend_from_slice(&recordings[recording].parts()[..len]);
        }
        check_order(paths, &parts)?;
        Ok(Self { recordings: recordings.into(), parts: parts.into(), ranges: ranges.into() })
    }

    /// What the recordings say about themselves; `None` if there is none.
    pub fn about(&self) -> Option<&About> {
        self.recordings.first().map(Recording::about)
    }

    /// Whether the last recording was finished. If not, it ends where it was made durable last.
    pub fn complete(&self) -> bool {
        self.recordings.last().is_none_or(Recording::complete)
    }

    /// What was given to each step, or each block of records where steps are not known.
    pub fn parts(&self) -> &[RecordedPart] {
        &self.parts
    }

    /// Number of records.
    pub fn records(&self) -> u64 {
        self.parts.iter().map(|part| part.digest.records).sum()
    }

    /// The recordings that it consists of.
    pub fn recordings(&self) -> &[Recording] {
        &self.recordings
    }

    /// By what it begins with: by this a position knows the tape that it is of.
    fn id(&self) -> String {
        self.parts.first().map_or_else(String::new, |part| format!("{:016x}", part.digest.hash))
    }

    /// Reads the parts from this one on, each with its number. Whether a part has its digest is for whoever takes it
    /// to check.
    pub fn read(&self, first: usize) -> TapeParts {
        TapeParts { tape: self.clone(), next: first, reading: None }
    }

    /// The steps of a circuit with this input alone. Where no steps are known each block of records is one, and they
    /// are counted from 1.
    pub fn steps(&self) -> impl Iterator<Item = Result<Step, RecordingError>> + use<> {
        let parts = self.parts.clone();
        self.read(0).map(move |part| {
            let (number, batches) = part?;
            let step = parts[number].step.unwrap_or(number as u64 + 1);
            Ok(Step { number: step, parts: vec![Part { input: 0, batches, seek: None }] })
        })
    }
}

/// Whether a file is too short to hold more than the beginning of a recording.
pub fn is_bud(path: &Path) -> bool {
    const LONGEST: u64 = 64 << 10;
    fs::metadata(path).is_ok_and(|found| found.len() < LONGEST)
}

fn check_order(paths: &[PathBuf], parts: &[RecordedPart]) -> Result<(), RecordingError> {
    let follows = |pair: &[RecordedPart]| match (pair[0].step, pair[1].step) {
        (Some(before), Some(after)) => before < after,
        (before, after) => before.is_none() && after.is_none(),
    };
    match parts.windows(2).find(|pair| !follows(pair)) {
        None => Ok(()),
        Some(pair) => {
            let shown = |part: &RecordedPart| {
                part.step.map_or("a part without a step".into(), |step| format!("step {step}"))
            };
            let found = format!("{} follows {}", shown(&pair[1]), shown(&pair[0]));
            Err(RecordingError::Damaged { path: paths[0].clone(), found })
        }
    }
}

/// Parts of a tape, each with its number and its records; from [`Tape::read`].
pub struct TapeParts {
    tape: Tape,
    next: usize,
    /// What is read of the present recording.
    reading: Option<Parts>,
}

impl Iterator for TapeParts {
    type Item = Result<(usize, Vec<Batch>), RecordingError>;

    fn next(&mut self) -> Option<Self::Item> {
        let number = self.next;
        if number >= self.tape.parts.len() {
            return None;
        }
        let reading = match &mut self.reading {
            Some(reading) => reading,
            none => {
                let after = self.tape.ranges.partition_point(|piece| piece.first <= number);
                let Piece { recording, first, len } = self.tape.ranges[after - 1];
                none.insert(self.tape.recordings[recording].read(number - first..len))
            }
        };
        match reading.next() {
            Some(Ok((_, batches))) => {
                self.next += 1;
                Some(Ok((number, batches)))
            }
            Some(Err(error)) => {
                self.next = self.tape.parts.len();
                Some(Err(error))
            }
            None => {
                self.reading = None;
                self.next()
            }
        }
    }
}
