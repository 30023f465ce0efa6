//! One process of the program: started, watched through its log, frozen and killed.

use std::fs::{self, File};
use std::io::{ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use crate::log::{self, Said, Stage};

/// Between two looks.
const GLANCE: Duration = Duration::from_micros(300);

/// A process; killed when dropped.
pub(crate) struct Process {
    child: Child,
    pub(crate) log: PathBuf,
    pub(crate) begun: Instant,
    /// What its pipeline was started with.
    pub(crate) manner: Manner,
    /// The exit codes that it may end with by itself.
    pub(crate) allowed: Vec<i32>,
    seen: Seen,
}

/// How it is run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Manner {
    #[default]
    Usual,
    /// Transactions may last for a moment only.
    ShortTimeouts,
    /// With a clock of its own.
    Clock,
    /// A file that was followed is read to its end.
    ToTheEnd,
}

/// What was read of the log so far.
#[derive(Default)]
struct Seen {
    length: u64,
    /// The last line, if it had no end yet.
    rest: Vec<u8>,
    has_started: bool,
    /// How often each stage of a checkpoint was begun.
    stages: [u32; 3],
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waited {
    Reached,
    /// The process ended before.
    Ended,
    TooLong,
}

impl Process {
    pub(crate) fn start(mut command: Command, log: PathBuf, manner: Manner) -> Result<Self> {
        let file = File::create(&log).with_context(|| format!("creating {}", log.display()))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(file);
        command.env("LOCKGATE_LOG", log::WANTED);
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let (begun, seen) = (Instant::now(), Seen::default());
        Ok(Self { child, log, begun, manner, allowed: vec![0], seen })
    }

    /// Waits until `reached`, which is looked at again and again.
    pub(crate) fn wait(
        &mut self,
        most: Duration,
        mut reached: impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<Waited> {
        let begun = Instant::now();
        loop {
            if reached(self)? {
                return Ok(Waited::Reached);
            }
            if self.child.try_wait()?.is_some() {
                return Ok(Waited::Ended);
            }
            if begun.elapsed() > most {
                return Ok(Waited::TooLong);
            }
            thread::sleep(GLANCE);
        }
    }

    /// Whether everything is open.
    pub(crate) fn has_started(&mut self) -> Result<bool> {
        self.look()?;
        Ok(self.seen.has_started)
    }

    /// How often it has begun this stage of a checkpoint.
    pub(crate) fn times(&mut self, stage: Stage) -> Result<u32> {
        self.look()?;
        Ok(self.seen.stages[stage as usize])
    }

    fn look(&mut self) -> Result<()> {
        let mut file = File::open(&self.log)?;
        file.seek(SeekFrom::Start(self.seen.length))?;
        let begun = self.seen.rest.len();
        let read = file.read_to_end(&mut self.seen.rest)?;
        self.seen.length += read as u64;
        let new = &self.seen.rest;
        let Some(end) = new[begun..].iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let lines: Vec<u8> = self.seen.rest.drain(..=begun + end).collect();
        for line in String::from_utf8_lossy(&lines).lines() {
            if let Some(Said::Begun(stage)) = log::said(line) {
                self.seen.stages[stage as usize] += 1;
            }
            self.seen.has_started |= line.contains(" INFO started ");
        }
        Ok(())
    }

    pub(crate) fn signal(&self, signal: Signal) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        let pid = pid.context("a process without a number")?;
        kill_process(pid, signal).with_context(|| format!("sending {signal:?}"))
    }

    /// `kill -9`; how it had ended if it was faster, and its log.
    pub(crate) fn kill(mut self) -> Result<(Option<ExitStatus>, String)> {
        match self.child.kill() {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::InvalidInput => {}
            Err(error) => return Err(error).context("kill -9"),
        }
        let status = self.child.wait()?;
        let was_faster = status.signal() != Some(Signal::KILL.as_raw());
        Ok((was_faster.then_some(status), self.text()))
    }

    /// Waits for the end; code and log, unless it ends in a way that nobody documents or expects.
    pub(crate) fn end(mut self, most: Duration) -> Result<(i32, String)> {
        if self.wait(most, |_| Ok(false))? == Waited::TooLong {
            bail!("it does not end: {most:?} were not enough");
        }
        let code = self.child.wait()?.code();
        let text = self.text();
        if let Some(breach) = log::judge(code, &text, &self.allowed) {
            bail!(breach);
        }
        Ok((code.unwrap_or_default(), text))
    }

    /// Its log.
    pub(crate) fn text(&self) -> String {
        read_log(&self.log)
    }
}

/// A log as far as it is text.
pub(crate) fn read_log(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
