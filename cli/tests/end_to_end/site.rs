//! A folder with a pipeline in it, and the program running on it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// How long anything may take before a test gives up.
pub(crate) const DEADLINE: Duration = Duration::from_secs(240);

pub(crate) struct Site {
    dir: TempDir,
}

impl Site {
    /// A folder with this pipeline file.
    pub(crate) fn new(pipeline: &str) -> Self {
        let site = Self { dir: TempDir::new().unwrap() };
        site.write("pipeline.yaml", pipeline);
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn append(&self, name: &str, content: &str) {
        let mut file = fs::File::options().append(true).open(self.path(name)).unwrap();
        std::io::Write::write_all(&mut file, content.as_bytes()).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap()
    }

    /// The program with these arguments, in this folder.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lockgate"));
        command.args(args).current_dir(self.dir.path()).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs the program to its end.
    pub(crate) fn lockgate(&self, args: &[&str]) -> Ended {
        let output = self.command(args).output().unwrap();
        Ended::of(output, self.dir.path())
    }

    /// Runs the pipeline to its end, which must be a good one.
    pub(crate) fn run(&self) -> Ended {
        let ended = self.lockgate(&["run", "pipeline.yaml"]);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        ended
    }

    /// Starts the pipeline.
    pub(crate) fn start(&self) -> Running {
        self.start_with(&[])
    }

    /// Starts the pipeline with further arguments.
    pub(crate) fn start_with(&self, args: &[&str]) -> Running {
        self.begin(&[&["run", "pipeline.yaml"], args].concat())
    }

    /// Starts the program with these arguments.
    pub(crate) fn begin(&self, args: &[&str]) -> Running {
        self.begin_command(self.command(args))
    }

    /// Starts this program.
    pub(crate) fn begin_command(&self, mut command: Command) -> Running {
        command.stderr(fs::File::create(self.path("stderr.log")).unwrap());
        Running { child: command.spawn().unwrap(), folder: self.dir.path().into() }
    }

    /// Names and contents of the files in a folder, hidden ones left out, sorted by name.
    pub(crate) fn files(&self, folder: &str) -> Vec<(String, Vec<u8>)> {
        let Ok(entries) = fs::read_dir(self.path(folder)) else { return Vec::new() };
        let entries = entries.map(|entry| entry.unwrap());
        let mut files: Vec<_> = entries
            .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
            .filter(|(name, path)| !name.starts_with('.') && path.is_file())
            .map(|(name, path)| (name, fs::read(path).unwrap()))
            .collect();
        files.sort();
        files
    }

    /// Bytes in a folder, hidden files included; files that vanish meanwhile do not count.
    pub(crate) fn size(&self, folder: &str) -> u64 {
        let Ok(entries) = fs::read_dir(self.path(folder)) else { return 0 };
        entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|file| file.len()).sum()
    }
}

/// A process that has ended.
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    /// With the folder's path written as DIR.
    pub(crate) stderr: String,
}

impl Ended {
    fn of(output: Output, folder: &Path) -> Self {
        let text = |bytes: Vec<u8>| {
            let text = String::from_utf8(bytes).unwrap();
            text.replace(&folder.display().to_string(), "DIR")
        };
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

/// A process that is running; killed when dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    folder: PathBuf,
}

impl Running {
    /// Waits until `reached`, which is looked at again and again; false if the process ended before.
    pub(crate) fn until(&mut self, mut reached: impl FnMut() -> bool) -> bool {
        let begun = Instant::now();
        loop {
            if reached() {
                return true;
            }
            if self.child.try_wait().unwrap().is_some() {
                return false;
            }
            assert!(begun.elapsed() < DEADLINE, "waited too long; {}", self.stderr());
            std::thread::sleep(Duration::from_micros(500)); // polls: the progress of another process
        }
    }

    /// Waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        self.until(|| false);
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        let folder = self.folder.display().to_string();
        let stderr = self.stderr().replace(&folder, "DIR");
        Ended { code, stdout: String::new(), stderr }
    }

    /// `kill -9`; whether the process was still there.
    pub(crate) fn kill(mut self) -> bool {
        let running = self.child.try_wait().unwrap().is_none();
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        running
    }

    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status().unwrap();
        assert!(status.success());
    }

    /// Where its standard error goes.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("stderr.log")
    }

    pub(crate) fn stderr(&self) -> String {
        fs::read_to_string(self.log()).unwrap_or_default()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
