//! Where it all happens: the programs, a folder of our own for data and state, and processes that are timed.

use std::fmt::Display;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// A line of the input files, its end included.
pub(crate) const LINE_BYTES: u64 = 200;

/// The folder with the programs, and what was asked for.
pub(crate) struct Site {
    /// How many rounds count.
    pub(crate) rounds: u32,
    /// What amounts are multiplied by.
    pub(crate) size: f64,
    programs: PathBuf,
    work: TempDir,
}

/// What a process said, and how long it took from its start to its end.
pub(crate) struct Ran {
    pub(crate) took: Duration,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Site {
    pub(crate) fn new(rounds: u32, size: f64) -> Result<Self> {
        let itself = std::env::current_exe().context("finding this program")?;
        let programs = itself.parent().context("this program is in no folder")?.to_owned();
        ensure!(
            programs.join("lockgate").exists(),
            "there is no lockgate beside {}: start this by `cargo xtask bench`",
            itself.display()
        );
        let results = Self::results_beside(&programs)?;
        let work = tempfile::Builder::new().prefix("work-").tempdir_in(results)?;
        Ok(Self { rounds, size, programs, work })
    }

    /// Where nothing is run.
    #[cfg(test)]
    pub(crate) fn sketch(rounds: u32) -> Self {
        let work = tempfile::tempdir().unwrap();
        Self { rounds, size: 1.0, programs: work.path().to_owned(), work }
    }

    fn results_beside(programs: &Path) -> Result<PathBuf> {
        let target = programs.parent().context("the programs are in no target folder")?;
        let folder = target.join("bench");
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(folder)
    }

    /// Where results go that are not published.
    pub(crate) fn results(&self) -> Result<PathBuf> {
        Self::results_beside(&self.programs)
    }

    /// The documents of the repository that this was started in.
    pub(crate) fn docs(&self) -> Result<PathBuf> {
        let docs = PathBuf::from("docs");
        ensure!(docs.is_dir(), "there is no folder docs here: start this by `cargo xtask bench`");
        Ok(docs)
    }

    /// The amount as it is wanted.
    pub(crate) fn scaled(&self, amount: u64) -> u64 {
        ((amount as f64 * self.size) as u64).max(1)
    }

    /// The program as it is shipped.
    pub(crate) fn lockgate(&self) -> Command {
        Command::new(self.programs.join("lockgate"))
    }

    /// Runs a pipeline file with its state in the folder.
    pub(crate) fn lockgate_run(&self, pipeline: &Path, state: &Path) -> Command {
        let mut command = self.lockgate();
        command.arg("run").arg(pipeline).arg("--state-dir").arg(state);
        command
    }

    /// This program with a sub-command.
    pub(crate) fn itself<T: Display>(&self, words: impl IntoIterator<Item = T>) -> Command {
        let mut command = Command::new(self.programs.join("lockgate-bench"));
        command.args(words.into_iter().map(|word| word.to_string()));
        command
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.work.path().join(name)
    }

    /// The target folder, for what is worth keeping between two runs.
    pub(crate) fn target(&self) -> Result<PathBuf> {
        Ok(self.programs.parent().context("the programs are in no target folder")?.to_owned())
    }

    /// The path of a folder or file that is not there now.
    pub(crate) fn gone(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        match removed {
            Err(error) if path.exists() => {
                Err(error).with_context(|| format!("removing {}", path.display()))
            }
            _ => Ok(path),
        }
    }

    /// Writes a pipeline file; its name is that of the pipeline.
    pub(crate) fn pipeline(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.path(&format!("{name}.yaml"));
        fs::write(&path, format!("name: {name}\n{text}"))
            .with_context(|| format!("writing {}", path.display()))?;
        Ok(path)
    }

    /// A file with so many lines of [`LINE_BYTES`], made unless it is there.
    pub(crate) fn lines(&self, lines: u64) -> Result<PathBuf> {
        let path = self.path(&format!("lines-{lines}.log"));
        if path.exists() {
            return Ok(path);
        }
        let file = File::create(&path).with_context(|| format!("creating {}", path.display()))?;
        let mut file = BufWriter::with_capacity(1 << 20, file);
        let filler = "lockgate ".repeat(30);
        let filler = &filler[..LINE_BYTES as usize - 13];
        for number in 0..lines {
            writeln!(file, "{number:012}{filler}")?;
        }
        // On the disk before anything is timed: a journal would have to wait for it.
        file.into_inner().map_err(|error| error.into_error())?.sync_all()?;
        Ok(path)
    }

    /// Runs a process to its end.
    pub(crate) fn time(&self, mut command: Command) -> Result<Ran> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let begun = Instant::now();
        let ended = command.output().with_context(|| format!("starting {command:?}"))?;
        let took = begun.elapsed();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (stdout, stderr) = (text(&ended.stdout), text(&ended.stderr));
        ensure!(ended.status.success(), "{command:?} failed ({}): {stderr}{stdout}", ended.status);
        Ok(Ran { took, stdout, stderr })
    }

    /// How much of an amount a second the process does.
    pub(crate) fn speed(&self, amount: u64, command: Command) -> Result<f64> {
        Ok(amount as f64 / self.time(command)?.took.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_their_length() {
        let site = Site::sketch(1);
        let text = fs::read_to_string(site.lines(3).unwrap()).unwrap();
        let lengths: Vec<_> = text.split_inclusive('\n').map(str::len).collect();
        assert_eq!(lengths, [LINE_BYTES as usize; 3]);
    }

    #[test]
    fn what_fails_is_an_error_with_what_it_said() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo too bad >&2; exit 3"]);
        let error = Site::sketch(1).time(command).err().unwrap().to_string();
        assert!(error.contains("too bad") && error.contains('3'), "{error}");
    }

    #[test]
    fn what_is_to_be_gone_is_gone() {
        let site = Site::sketch(1);
        fs::create_dir(site.path("a")).unwrap();
        fs::write(site.path("b"), "").unwrap();
        for name in ["a", "b", "c"] {
            assert!(!site.gone(name).unwrap().exists());
        }
    }
}
