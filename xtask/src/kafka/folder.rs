//! Where a cluster keeps its files: all below cargo's target folder.
//!
//! Not for what is in them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::cargo::target_folder;

/// The folder of one cluster, and what all clusters share.
pub(super) struct Folder {
    top: PathBuf,
    own: PathBuf,
}

impl Folder {
    /// The usual cluster has no name.
    pub(super) fn of(name: Option<&str>) -> Result<Self> {
        let top = target_folder()?.join("kafka");
        let own = name.map_or_else(|| top.clone(), |name| top.join("clusters").join(name));
        Ok(Self { top, own })
    }

    /// The jars of Kafka, which outlive a wipe.
    pub(super) fn jars(&self) -> PathBuf {
        self.top.join("jars")
    }

    pub(super) fn state(&self) -> PathBuf {
        self.own.join("state.json")
    }

    /// The folder of a broker's settings, which Docker mounts as a whole.
    pub(super) fn settings_folder(&self, node: u32) -> PathBuf {
        self.own.join("config").join(node.to_string())
    }

    pub(super) fn settings(&self, node: u32) -> PathBuf {
        self.settings_folder(node).join("server.properties")
    }

    pub(super) fn data(&self, node: u32) -> PathBuf {
        self.own.join("data").join(node.to_string())
    }

    pub(super) fn log(&self, node: u32) -> PathBuf {
        self.own.join("logs").join(format!("broker-{node}.log"))
    }

    /// Where Kafka unpacks the native parts of its codecs, which a killed broker leaves behind.
    pub(super) fn scratch(&self) -> PathBuf {
        self.own.join("tmp")
    }

    /// Held while a verb changes the cluster, so that two do not at once.
    pub(super) fn lock(&self) -> Result<File> {
        lock(&self.own.join("lock"))
    }

    /// Held while jars are fetched.
    pub(super) fn lock_jars(&self) -> Result<File> {
        lock(&self.top.join("jars.lock"))
    }

    /// Deletes everything of the cluster, its state last.
    pub(super) fn wipe(&self) -> Result<()> {
        for folder in ["data", "logs", "config", "tmp"] {
            remove(&self.own.join(folder), |path| fs::remove_dir_all(path))?;
        }
        remove(&self.state(), |path| fs::remove_file(path))
    }

    #[cfg(test)]
    pub(super) fn at(top: PathBuf) -> Self {
        Self { own: top.clone(), top }
    }
}

fn lock(path: &Path) -> Result<File> {
    let shown = path.display();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    }
    let file = File::create(path).with_context(|| format!("creating {shown}"))?;
    file.lock().with_context(|| format!("locking {shown}"))?;
    Ok(file)
}

fn remove(path: &Path, remove: impl Fn(&Path) -> std::io::Result<()>) -> Result<()> {
    match remove(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("deleting {}", path.display()))
        }
        _ => Ok(()),
    }
}
