//! Small file systems that can be full, which takes root, and folders that cannot be written.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// What fills it.
const BALLAST: &str = ".ballast";

/// A file system in memory of its own at a folder; unmounted when dropped.
pub(crate) struct SmallDisk {
    folder: PathBuf,
}

impl SmallDisk {
    pub(crate) fn mount(folder: &Path, megabytes: u32) -> Result<Self> {
        fs::create_dir_all(folder)?;
        tool(
            Command::new("mount")
                .args(["-t", "tmpfs", "-o", &format!("size={megabytes}m")])
                .args(["tmpfs".as_ref(), folder.as_os_str()]),
        )?;
        Ok(Self { folder: folder.into() })
    }

    /// Until not a byte more fits.
    pub(crate) fn fill(&self) -> Result<()> {
        let mut ballast = File::create(self.folder.join(BALLAST))?;
        for piece in [1 << 20, 1 << 12, 1] {
            let zeros = vec![0; piece];
            loop {
                match ballast.write_all(&zeros) {
                    Ok(()) => {}
                    Err(error) if error.kind() == ErrorKind::StorageFull => break,
                    Err(error) => return Err(error).context("filling a disk"),
                }
            }
        }
        Ok(())
    }

    pub(crate) fn free(&self) -> Result<()> {
        match fs::remove_file(self.folder.join(BALLAST)) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(error).context("freeing a disk")
            }
            _ => Ok(()),
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        if let Err(error) = tool(Command::new("umount").arg(&self.folder)) {
            eprintln!("warning: {error:#}");
        }
    }
}

/// A folder that cannot be written, until this is dropped: mounted so, or by its permissions, which do not bind root.
pub(crate) struct ReadOnly {
    folder: PathBuf,
    is_mounted: bool,
}

impl ReadOnly {
    pub(crate) fn make(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let is_mounted = may_mount();
        if is_mounted {
            tool(Command::new("mount").arg("--bind").args([folder, folder]))?;
        }
        // From here on it is undone, whatever fails.
        let read_only = Self { folder: folder.into(), is_mounted };
        if is_mounted {
            tool(Command::new("mount").args(["-o", "remount,bind,ro"]).arg(folder))?;
        } else {
            tool(Command::new("chmod").args(["-R", "a-w"]).arg(folder))?;
        }
        Ok(read_only)
    }
}

impl Drop for ReadOnly {
    fn drop(&mut self) {
        let undone = if self.is_mounted {
            tool(Command::new("umount").arg(&self.folder))
        } else {
            tool(Command::new("chmod").args(["-R", "u+w"]).arg(&self.folder))
        };
        if let Err(error) = undone {
            eprintln!("warning: {error:#}");
        }
    }
}

fn tool(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("starting {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {said}");
    Ok(())
}

/// Unmounts what an interrupted run has left below a folder.
pub(crate) fn unmount_all(folder: &Path) {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let places = mounts.lines().filter_map(|line| line.split(' ').nth(1)).map(Path::new);
    for place in places.filter(|place| place.starts_with(folder)) {
        if let Err(error) = tool(Command::new("umount").arg(place)) {
            eprintln!("warning: {error:#}");
        }
    }
}

/// Whether we may mount.
pub(crate) fn may_mount() -> bool {
    rustix::process::geteuid().is_root()
}
