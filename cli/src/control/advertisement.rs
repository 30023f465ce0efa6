//! The file in a state directory by which commands find the process that runs on it.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exit::{Code, Failed};

/// The name of the file.
const NAME: &str = "control.json";

/// Where a process can be asked. There is no secret in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Advertised {
    /// The address, as a URL.
    pub(crate) url: String,
    /// The process.
    pub(crate) pid: u32,
    /// The file with the token that it wants.
    #[serde(default)]
    pub(crate) token_file: Option<PathBuf>,
    /// The file with the certificate by which to know it.
    #[serde(default)]
    pub(crate) ca: Option<PathBuf>,
}

impl Advertised {
    /// What the process says that runs, or ran, on this state directory; `None` if it says nothing.
    ///
    /// # Errors
    /// If the file cannot be read, or something else wrote it.
    pub(crate) fn read(state_dir: &Path) -> Result<Option<Self>, Failed> {
        let path = state_dir.join(NAME);
        let text = match fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => {
                return Err(Failed::storage(format!("reading {}", path.display()), &error));
            }
        };
        serde_json::from_slice(&text).map(Some).map_err(|error| {
            let message =
                format!("{} is damaged: {error}; say with --at where to ask", path.display());
            Failed::new(Code::Data, message)
        })
    }
}

/// The file while its process runs; removed when dropped.
#[derive(Debug)]
pub(crate) struct Advertisement {
    path: PathBuf,
    advertised: Advertised,
}

impl Advertisement {
    /// Writes it into the state directory, which is created if it is not there. Takes the place of what a process
    /// before left behind.
    ///
    /// # Errors
    /// If that cannot be done.
    pub(crate) fn write(state_dir: &Path, advertised: Advertised) -> Result<Self, Failed> {
        let path = state_dir.join(NAME);
        let write = || {
            fs::create_dir_all(state_dir)?;
            // Under its name it is complete.
            let begun = state_dir.join(format!(".{NAME}.{}", std::process::id()));
            let text = serde_json::to_vec(&advertised)?;
            fs::write(&begun, text)
                .and_then(|()| fs::rename(&begun, &path))
                .inspect_err(|_| drop(fs::remove_file(&begun)))
        };
        write().map_err(|error| Failed::storage(format!("writing {}", path.display()), &error))?;
        Ok(Self { path, advertised })
    }
}

impl Drop for Advertisement {
    fn drop(&mut self) {
        // Another process may have come.
        let state_dir = self.path.parent().unwrap_or(Path::new(""));
        if matches!(Advertised::read(state_dir), Ok(Some(now)) if now == self.advertised) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advertised(pid: u32) -> Advertised {
        Advertised { url: "http://127.0.0.1:1/".into(), pid, token_file: None, ca: None }
    }

    #[test]
    fn it_is_there_while_its_process_runs() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        assert_eq!(Advertised::read(&state).unwrap(), None);
        let first = Advertisement::write(&state, advertised(1)).unwrap();
        assert_eq!(Advertised::read(&state).unwrap(), Some(advertised(1)));
        let second = Advertisement::write(&state, advertised(2)).unwrap();
        drop(first);
        assert_eq!(Advertised::read(&state).unwrap(), Some(advertised(2)));
        drop(second);
        assert_eq!(fs::read_dir(&state).unwrap().count(), 0);
    }

    #[test]
    fn a_damaged_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(NAME), "{").unwrap();
        let failed = Advertised::read(dir.path()).unwrap_err();
        assert_eq!(failed.code, Code::Data);
        assert!(failed.message.contains("control.json is damaged"), "{}", failed.message);
    }
}
