//! One round: from an empty folder to all records written, disturbed on the way.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;

use crate::clock::Clock;
use crate::compare::{Comparer, Comparison};
use crate::disk::{ReadOnly, SmallDisk};
use crate::log::{self, Stage};
use crate::outcome::{self, Files};
use crate::pair::{Input, Output, Pair};
use crate::pipeline::{GROWING, OUT, Pipeline, SESSION_MS, SHORT_TRANSACTION_MS, STATE};
use crate::process::{Manner, Process, Waited};
use crate::schedule::{Disturbance, Moment};
use crate::source::{Feeder, Place, Source};
use crate::tally::Tally;
use crate::world::World;

/// From asking for an end, or for all records, until it is a breach that it does not come.
const PATIENCE: Duration = Duration::from_secs(120);
/// Until something that is aimed at happens.
const AIMING: Duration = Duration::from_secs(4);

const STATE_MEGABYTES: u32 = 16;
const OUT_MEGABYTES: u32 = 64;

/// The exit code of a state directory that cannot be written.
const STORAGE: i32 = 74;
/// The exit code of a broker that cannot be reached.
const UNAVAILABLE: i32 = 69;

pub(crate) struct Round<'a> {
    world: &'a World,
    pair: Pair,
    source: &'a Source,
    /// Of an undisturbed run.
    usual: Duration,
    folder: PathBuf,
    name: String,
    /// The topic that is written.
    to: Option<String>,
    disks: Option<Disks>,
    feeder: Option<Feeder>,
    process: Option<Process>,
    clock: Option<Clock>,
    /// Whether a run has ended by itself, with all records read.
    is_done: bool,
    pub(crate) tally: Tally,
}

struct Disks {
    state: SmallDisk,
    out: Option<SmallDisk>,
}

/// Whether a disturbance came in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suffered {
    Happened,
    /// The run had ended before.
    TooLate,
}

impl<'a> Round<'a> {
    pub(crate) fn new(
        world: &'a World,
        pair: Pair,
        source: &'a Source,
        number: usize,
        usual: Duration,
        needs_small_disk: bool,
    ) -> Result<Self> {
        let folder = world.folder.join(pair.name()).join(format!("round-{number}"));
        fs::create_dir_all(folder.join("logs"))
            .with_context(|| format!("making {}", folder.display()))?;
        let name = format!("torture-{}-{}-{number}", std::process::id(), pair.name());
        let to = match pair.output {
            Output::Topic => Some(world.broker()?.topic("to")?),
            _ => None,
        };
        let feeder = match &source.place {
            Place::Growing(text) => Some(Feeder::start(
                &folder.join(GROWING),
                text.clone(),
                world.seed ^ number as u64,
            )?),
            _ => None,
        };
        let disks = if needs_small_disk {
            let out = match pair.output {
                Output::Topic => None,
                _ => Some(SmallDisk::mount(&folder.join(OUT), OUT_MEGABYTES)?),
            };
            Some(Disks { state: SmallDisk::mount(&folder.join(STATE), STATE_MEGABYTES)?, out })
        } else {
            None
        };
        Ok(Self {
            world,
            pair,
            source,
            usual,
            folder,
            name,
            to,
            disks,
            feeder,
            process: None,
            clock: None,
            is_done: false,
            tally: Tally::default(),
        })
    }

    pub(crate) fn has_small_disk(&self) -> bool {
        self.disks.is_some()
    }

    pub(crate) fn input(&self) -> Input {
        self.pair.input
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The log of the last run.
    pub(crate) fn last_log(&self) -> PathBuf {
        self.folder.join("logs").join(format!("{:04}.log", self.tally.runs))
    }

    fn start(&mut self, manner: Manner) -> Result<Process> {
        let pipeline = Pipeline {
            name: &self.name,
            pair: self.pair,
            source: self.source,
            servers: self.world.broker.as_ref().map_or("", |broker| &broker.servers),
            to: self.to.as_deref().unwrap_or_default(),
            manner,
        };
        fs::write(self.folder.join("pipeline.yaml"), pipeline.text())?;
        let mut command = Command::new(&self.world.program);
        command.args(["run", "pipeline.yaml"]).current_dir(&self.folder);
        if manner == Manner::Clock {
            let library = self.world.clock.as_ref().context("there is no libfaketime")?;
            self.clock = Some(Clock::of(&mut command, library, self.folder.join("clock"))?);
        }
        self.tally.runs += 1;
        Process::start(command, self.last_log(), manner)
    }

    /// Does it to the process that runs, or to a new one.
    pub(crate) fn suffer(&mut self, disturbance: &Disturbance) -> Result<Suffered> {
        if self.is_done {
            return Ok(Suffered::TooLate);
        }
        let manner = match disturbance {
            Disturbance::FreezeLong { .. } => Some(Manner::ShortTimeouts),
            Disturbance::Clock { .. } => Some(Manner::Clock),
            Disturbance::Broker { .. } => Some(Manner::Usual),
            _ => None,
        };
        let is_other = |process: &Process| manner.is_some_and(|manner| manner != process.manner);
        let must_be_new = *disturbance == Disturbance::ReadOnlyState;
        if self.process.as_ref().is_some_and(|process| must_be_new || is_other(process)) {
            self.kill()?;
        }
        if must_be_new {
            self.refuse_read_only()?;
            return self.happened(disturbance);
        }
        let mut part = Moment(1000);
        if let Some(process) = &self.process {
            // Some of the run is over.
            part = Moment(if process.begun.elapsed() > self.usual { 200 } else { 500 });
        } else {
            self.process = Some(self.start(manner.unwrap_or_default())?);
        }
        let usual = part.of(self.usual);
        let in_time = match disturbance {
            Disturbance::Kill { at } => self.reach(at.of(usual))?,
            Disturbance::KillInCheckpoint { number, stage, after } => {
                let is_there = self.aim(*stage, *number)?;
                thread::sleep(*after);
                is_there
            }
            Disturbance::Freeze { at, length } => {
                self.reach(at.of(usual))? && self.freeze(*length)?
            }
            Disturbance::FreezeLong { at } => {
                let longest = u64::from(SHORT_TRANSACTION_MS.max(SESSION_MS));
                self.reach(at.of(usual))? && self.freeze(Duration::from_millis(longest + 2500))?
            }
            Disturbance::FullState { at, length } => {
                self.reach(at.of(usual))? && self.fill(true, *length)?
            }
            Disturbance::FullOutput { at, length } => {
                self.reach(at.of(usual))? && self.fill(false, *length)?
            }
            Disturbance::Clock { at, seconds } => {
                let in_time = self.reach(at.of(usual))?;
                if let Some(clock) = &self.clock {
                    clock.jump(*seconds)?;
                }
                in_time
            }
            Disturbance::Broker { at, away } => {
                self.reach(at.of(usual))? && self.kill_broker(*away)?
            }
            Disturbance::ReadOnlyState => true,
        };
        if !in_time {
            return Ok(Suffered::TooLate);
        }
        self.happened(disturbance)
    }

    fn happened(&mut self, disturbance: &Disturbance) -> Result<Suffered> {
        match disturbance {
            Disturbance::Kill { .. } | Disturbance::KillInCheckpoint { .. } => {
                if !self.kill()? {
                    return Ok(Suffered::TooLate);
                }
            }
            other => *self.tally.others.entry(other.kind()).or_default() += 1,
        }
        Ok(Suffered::Happened)
    }

    /// Waits for this moment of the run; false if it has ended before.
    fn reach(&mut self, moment: Duration) -> Result<bool> {
        let deadline = Instant::now() + moment;
        let process = self.process.as_mut().context("nothing runs")?;
        let waited = process.wait(PATIENCE, |_| Ok(Instant::now() >= deadline))?;
        self.is_there(waited)
    }

    /// Waits for this stage of a checkpoint; false if the run has ended before.
    fn aim(&mut self, stage: Stage, number: u32) -> Result<bool> {
        let process = self.process.as_mut().context("nothing runs")?;
        let target = process.times(stage)? + number;
        let waited = process.wait(AIMING, |process| Ok(process.times(stage)? >= target))?;
        self.is_there(waited)
    }

    /// Waits until everything is open; false if the run has ended before.
    fn started(&mut self) -> Result<bool> {
        let process = self.process.as_mut().context("nothing runs")?;
        let waited = process.wait(PATIENCE, Process::has_started)?;
        ensure!(waited != Waited::TooLong, "it does not start");
        self.is_there(waited)
    }

    fn is_there(&mut self, waited: Waited) -> Result<bool> {
        if waited == Waited::Ended {
            self.take_end()?;
        }
        // What is aimed at may not come: nothing is left to be read. Then this is as good a moment as any.
        Ok(waited != Waited::Ended)
    }

    /// The process has ended by itself, or will.
    fn take_end(&mut self) -> Result<()> {
        let process = self.process.take().context("nothing runs")?;
        let ends = self.pair.input.ends() || process.manner == Manner::ToTheEnd;
        let (code, _) = process.end(PATIENCE)?;
        if code == 0 {
            ensure!(ends, "it ended with exit code 0 though its input never ends");
            self.is_done = true;
        }
        Ok(())
    }

    /// Whether there was anything to kill.
    fn kill(&mut self) -> Result<bool> {
        let Some(process) = self.process.take() else { return Ok(false) };
        let (allowed, ends) = (process.allowed.clone(), self.pair.input.ends());
        let (ended, text) = process.kill()?;
        if let Some(status) = ended {
            if let Some(breach) = log::judge(status.code(), &text, &allowed) {
                bail!(breach);
            }
            self.is_done = status.success() && ends;
            return Ok(false);
        }
        if text.contains("panicked at") {
            bail!("there was a panic before it was killed");
        }
        self.tally.killed(log::stage(&text));
        Ok(true)
    }

    fn freeze(&mut self, length: Duration) -> Result<bool> {
        let process = self.process.as_ref().context("nothing runs")?;
        process.signal(Signal::STOP)?;
        thread::sleep(length);
        process.signal(Signal::CONT)?;
        Ok(true)
    }

    fn fill(&mut self, state: bool, length: Duration) -> Result<bool> {
        // A start on a full disk is refused, which is another story.
        if !self.started()? {
            return Ok(false);
        }
        let disks = self.disks.as_ref().context("there is no small disk")?;
        let disk = if state { Some(&disks.state) } else { disks.out.as_ref() };
        let disk = disk.context("there is no small disk")?;
        disk.fill()?;
        thread::sleep(length);
        disk.free()?;
        Ok(true)
    }

    fn kill_broker(&mut self, away: Duration) -> Result<bool> {
        // One that is not there at the start ends the program, which is another story.
        if !self.started()? {
            return Ok(false);
        }
        if let Some(process) = &mut self.process {
            process.allowed.push(UNAVAILABLE);
        }
        let broker = self.world.broker()?;
        broker.kill()?;
        thread::sleep(away);
        broker.start_again()?;
        Ok(true)
    }

    /// A start must say so and change nothing.
    fn refuse_read_only(&mut self) -> Result<()> {
        let read_only = ReadOnly::make(&self.folder.join(STATE))?;
        let mut process = self.start(Manner::Usual)?;
        process.allowed = vec![STORAGE];
        let ended = process.end(PATIENCE);
        drop(read_only);
        ended.map(drop).context("with a state directory that cannot be written")
    }

    /// Runs to the end, undisturbed.
    pub(crate) fn finish(&mut self) -> Result<()> {
        if let Some(feeder) = self.feeder.take() {
            feeder.finish()?;
        }
        for _ in 0..3 {
            if self.is_done {
                return Ok(());
            }
            if self.process.is_none() {
                self.process = Some(self.start(Manner::Usual)?);
            }
            if self.pair.input.ends() {
                self.take_end()?;
            } else if self.wait_for_all()? {
                self.stop()?;
            }
        }
        ensure!(self.is_done, "it does not come to its end in three runs");
        Ok(())
    }

    /// Waits until all records are there, where that can be seen; false if the run ends.
    fn wait_for_all(&mut self) -> Result<bool> {
        let begun = Instant::now();
        loop {
            let process = self.process.as_mut().context("nothing runs")?;
            let pause = Instant::now() + Duration::from_millis(200);
            let waited = process.wait(PATIENCE, |_| Ok(Instant::now() > pause))?;
            if !self.is_there(waited)? {
                return Ok(false);
            }
            // The last segment appears when the input ends.
            let is_enough =
                self.pair.output.is_segments() && begun.elapsed() > Duration::from_secs(1);
            if is_enough || self.present()? == self.expected() {
                return Ok(true);
            }
            ensure!(
                begun.elapsed() < PATIENCE,
                "after {PATIENCE:?} only {} of {} records are there",
                self.present()?,
                self.expected()
            );
        }
    }

    fn present(&self) -> Result<u64> {
        if self.pair.output.is_segments() {
            return Ok(0);
        }
        let mut comparer = Comparer::new(&self.source.each);
        let (out, to) = (self.folder.join(OUT), self.to.as_deref().unwrap_or_default());
        outcome::take(self.world, self.pair.output, &out, to, &mut comparer)?;
        Ok(comparer.present())
    }

    fn expected(&self) -> u64 {
        self.source.each.iter().map(|records| u64::from(*records)).sum()
    }

    /// In order. What was followed is then read to its end.
    fn stop(&mut self) -> Result<()> {
        let process = self.process.take().context("nothing runs")?;
        process.signal(Signal::TERM)?;
        process.end(PATIENCE).context("after SIGTERM")?;
        if matches!(self.source.place, Place::Growing(_)) {
            self.process = Some(self.start(Manner::ToTheEnd)?);
            self.take_end()?;
        }
        self.is_done = true;
        Ok(())
    }

    /// Compares what there is with what should be.
    pub(crate) fn compare(&self) -> Result<Comparison> {
        let (out, to) = (self.folder.join(OUT), self.to.as_deref().unwrap_or_default());
        outcome::compare(self.world, self.pair.output, &out, to, &self.source.each)
    }

    pub(crate) fn files(&self) -> Result<Files> {
        outcome::files(&self.folder.join(OUT))
    }

    /// Nothing is left of it.
    pub(crate) fn remove(mut self) -> Result<()> {
        self.process = None;
        self.disks = None;
        if let Some(to) = self.to.take() {
            self.world.broker()?.delete(&to);
        }
        fs::remove_dir_all(&self.folder)
            .with_context(|| format!("removing {}", self.folder.display()))
    }

    /// Leaves everything where it is, also what lies on small disks, which go with this process.
    pub(crate) fn keep(&mut self) {
        self.process = None;
        self.feeder = None;
        if self.disks.is_some() {
            for name in [STATE, OUT] {
                let copy = self.folder.join(format!("{name}.kept"));
                let _ = Command::new("cp").arg("-a").arg(self.folder.join(name)).arg(copy).status();
            }
        }
    }
}
