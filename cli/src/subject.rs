//! What a command is asked to look at: recordings, a state directory, or some other file.
//!
//! Not here: what is in it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use lockgate_file_adapter::tape::{Tape, piece_name, pieces};

use crate::exit::{Code, Failed};

/// The file that makes a directory a state directory.
const DATABASE: &str = "state.db";

/// The extension of recordings, and what they begin with.
const EXTENSION: &str = "parquet";
const MAGIC: &[u8; 4] = b"PAR1";

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// One recording.
    Recording(PathBuf),
    /// What `lockgate run --record` wrote.
    Recordings(PathBuf),
    /// A state directory.
    State(PathBuf),
    /// Anything else that can be read.
    File(PathBuf),
}

impl Subject {
    /// # Errors
    /// If there is nothing at `path`, or nothing that is known.
    pub(crate) fn of(path: &Path) -> Result<Self, Failed> {
        let shown = path.display();
        let wrong = |what: &str| Failed::new(Code::Usage, format!("{shown} {what}"));
        let found = fs::metadata(path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => wrong("does not exist"),
            _ => Failed::storage(format!("looking at {shown}"), &error),
        })?;
        let path = path.to_path_buf();
        if !found.is_dir() {
            // Pipes can be read once only.
            let recorded = found.is_file() && is_recording(&path)?;
            return Ok(if recorded { Self::Recording(path) } else { Self::File(path) });
        }
        match (path.join(DATABASE).exists(), !pieces(&path)?.is_empty()) {
            (true, false) => Ok(Self::State(path)),
            (false, true) => Ok(Self::Recordings(path)),
            (true, true) => Err(wrong(
                "is a state directory that has recordings in it; name one of them, or move them elsewhere",
            )),
            (false, false) => Err(wrong(
                "is neither a directory of recordings, named INPUT-NUMBER.parquet, nor a state directory, which has \
                 state.db",
            )),
        }
    }

    /// In words.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Recording(_) => "a recording",
            Self::Recordings(_) => "a directory of recordings",
            Self::State(_) => "a state directory",
            Self::File(_) => "a file that is no recording",
        }
    }

    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Recording(path)
            | Self::Recordings(path)
            | Self::State(path)
            | Self::File(path) => path,
        }
    }

    /// Its recordings in their order, by input; only those of `input` if one is named. There is at least one.
    ///
    /// # Errors
    /// If there are none, or none of that input.
    pub(crate) fn pieces(
        &self,
        input: Option<&str>,
    ) -> Result<BTreeMap<String, Vec<PathBuf>>, Failed> {
        let shown = self.path().display();
        match self {
            Self::Recording(path) => {
                let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let name = piece_name(path).map_or_else(stem, |(input, _)| input);
                let name = input.map_or(name, str::to_owned);
                Ok(BTreeMap::from([(name, vec![path.clone()])]))
            }
            Self::Recordings(path) => {
                let mut found = pieces(path)?;
                let names: Vec<String> = found.keys().cloned().collect();
                if let Some(input) = input {
                    found.retain(|name, _| name == input);
                }
                if found.is_empty() {
                    let (input, names) = (input.unwrap_or_default(), names.join(", "));
                    let message = format!("--input {input}: {shown} has recordings of {names}");
                    return Err(Failed::new(Code::Usage, message));
                }
                let paths = |pieces: Vec<(u32, PathBuf)>| pieces.into_iter().map(|(_, path)| path);
                Ok(found.into_iter().map(|(name, all)| (name, paths(all).collect())).collect())
            }
            Self::State(_) | Self::File(_) => {
                let kind = self.kind();
                let message = format!("{shown} is {kind}; give a recording or a directory of them");
                Err(Failed::new(Code::Usage, message))
            }
        }
    }

    /// As [`pieces`](Self::pieces), opened.
    ///
    /// # Errors
    /// As well if one cannot be read.
    pub(crate) fn tapes(&self, input: Option<&str>) -> Result<BTreeMap<String, Tape>, Failed> {
        let pieces = self.pieces(input)?.into_iter();
        pieces.map(|(name, paths)| Ok((name, Tape::open(&paths)?))).collect()
    }
}

fn is_recording(path: &Path) -> Result<bool, Failed> {
    if path.extension().is_some_and(|extension| extension == EXTENSION) {
        return Ok(true);
    }
    let begin = || {
        let mut bytes = Vec::new();
        File::open(path)?.take(MAGIC.len() as u64).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let begin =
        begin().map_err(|error| Failed::storage(format!("reading {}", path.display()), &error))?;
    Ok(begin == MAGIC)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thing_is_known_for_what_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["state", "runs", "both", "empty"] {
            fs::create_dir(at(name)).unwrap();
        }
        for name in ["state/state.db", "both/state.db", "both/a-1.parquet", "runs/a-b-0002.parquet"]
        {
            fs::write(at(name), "").unwrap();
        }
        fs::write(at("copy"), "PAR1...").unwrap();
        fs::write(at("out.log"), "PAR").unwrap();
        let kind = |name: &str| Subject::of(&at(name)).map(|subject| subject.kind());
        assert_eq!(kind("state").unwrap(), "a state directory");
        assert_eq!(kind("runs").unwrap(), "a directory of recordings");
        assert_eq!(kind("runs/a-b-0002.parquet").unwrap(), "a recording");
        assert_eq!(kind("copy").unwrap(), "a recording");
        assert_eq!(kind("out.log").unwrap(), "a file that is no recording");
        for (name, said) in [("both", "has recordings in it"), ("empty", "neither"), ("no", "not")]
        {
            let failed = kind(name).unwrap_err();
            assert_eq!(failed.code, Code::Usage);
            assert!(failed.message.contains(said), "{}", failed.message);
        }
        let inputs = |name: &str, input| Subject::of(&at(name)).unwrap().pieces(input);
        let names = |name: &str| inputs(name, None).unwrap().into_keys().collect::<Vec<_>>();
        assert_eq!(names("runs"), ["a-b"]);
        assert_eq!(names("runs/a-b-0002.parquet"), ["a-b"]);
        assert_eq!(names("copy"), ["copy"]);
        let failed = inputs("runs", Some("c")).unwrap_err();
        assert!(failed.message.ends_with("runs has recordings of a-b"), "{}", failed.message);
        assert_eq!(inputs("out.log", None).unwrap_err().code, Code::Usage);
    }
}
