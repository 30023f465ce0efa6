//! One process at a time on a state directory: a kernel lock, which dies with its process.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// The held lock; released when dropped, or by the kernel when the process ends.
#[derive(Debug)]
pub(crate) struct StateLock {
    file: File,
    has_lived: bool,
}

/// Stands in the lock file behind the number of its last holder once there has been a database.
const LIVED: &str = " has a state.db";

/// Why the lock was not taken.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process holds it.
    InUse {
        /// Its number, and its name where the system tells.
        holder: String,
    },
    /// The directory or the file cannot be used.
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

/// Lets the next one in at once: a child process that was just forked may hold a copy of the handle for a
/// moment longer.
impl Drop for StateLock {
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

impl StateLock {
    /// Takes the lock of `directory`, which is created if there is none.
    pub(crate) fn take(directory: &Path) -> Result<Self, LockError> {
        let io = |what| move |source| LockError::Io { what, source };
        create(directory).map_err(io("creating the directory"))?;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(directory.join("lock")).map_err(io("opening the lock file"))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut text = String::new();
                let _ = file.read_to_string(&mut text);
                let pid = text.split_whitespace().next().unwrap_or_default();
                return Err(LockError::InUse { holder: describe(pid) });
            }
            Err(TryLockError::Error(source)) => return Err(io("locking the directory")(source)),
        }
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(io("reading the lock file"))?;
        let mut lock = Self { file, has_lived: text.ends_with(LIVED) };
        lock.write(lock.has_lived);
        Ok(lock)
    }

    /// Whether there has been a database in the directory.
    pub(crate) fn has_lived(&self) -> bool {
        self.has_lived
    }

    /// There is a database in the directory.
    pub(crate) fn mark_lived(&mut self) {
        if !std::mem::replace(&mut self.has_lived, true) {
            self.write(true);
        }
    }

    /// For people, and to notice a lost database: the lock itself is the kernel's, so a full disk only means
    /// that there is less to show.
    fn write(&mut self, has_lived: bool) {
        let text = format!("{}{}", std::process::id(), if has_lived { LIVED } else { "" });
        let _ = self.file.rewind();
        let _ = self.file.write_all(text.as_bytes());
        let _ = self.file.set_len(text.len() as u64);
    }
}

/// Creates `directory` and what is missing above it, durably.
fn create(directory: &Path) -> io::Result<()> {
    let missing =
        directory.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
    let missing: Vec<&Path> = missing.collect();
    fs::create_dir_all(directory)?;
    for created in missing {
        let parent = created.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

fn describe(pid: &str) -> String {
    if pid.is_empty() {
        return "that is just starting".into();
    }
    match fs::read_to_string(format!("/proc/{pid}/comm")) {
        Ok(name) => format!("{pid} ({})", name.trim()),
        Err(_) => pid.into(),
    }
}
