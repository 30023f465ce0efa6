//! Input data of known content, made once for all pairs that read it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::broker::PARTITIONS;
use crate::pair::Input;
use crate::record;
use crate::world::World;

/// Records of one source.
const EACH: u32 = 40_000;
/// Of the only source of a file that grows.
const FOLLOWED: u32 = 100_000;
/// Of one partition.
const OF_PARTITION: u32 = 30_000;

/// What is read.
pub(crate) struct Source {
    pub(crate) input: Input,
    /// How many records each source has.
    pub(crate) each: Vec<u32>,
    pub(crate) place: Place,
}

/// Where it lies.
pub(crate) enum Place {
    /// In the files of this folder.
    Folder(PathBuf),
    /// In a file of each round, which gets this text bit by bit.
    Growing(Arc<Vec<u8>>),
    /// In this directory, where a run was recorded.
    Recording(PathBuf),
    Topic(String),
}

impl Source {
    pub(crate) fn make(world: &World, input: Input) -> Result<Self> {
        let folder = world.folder.join("input").join(input.name());
        fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        let three = vec![EACH; 3];
        let (each, place) = match input {
            Input::Plain => {
                plain(&folder)?;
                (three, Place::Folder(folder))
            }
            Input::Gzip => {
                for source in 0..3 {
                    let mut file = File::create(folder.join(format!("{source}.log.gz")))?;
                    for part in cut(&record::lines(source, 0..EACH)) {
                        let mut encoder = GzEncoder::new(&mut file, Compression::fast());
                        encoder.write_all(part)?;
                        encoder.finish()?;
                    }
                }
                (three, Place::Folder(folder))
            }
            Input::Zstd => {
                for source in 0..3 {
                    let mut file = File::create(folder.join(format!("{source}.log.zst")))?;
                    for part in cut(&record::lines(source, 0..EACH)) {
                        file.write_all(&zstd::encode_all(part, 1)?)?;
                    }
                }
                (three, Place::Folder(folder))
            }
            Input::Followed => {
                let text = record::lines(0, 0..FOLLOWED);
                (vec![FOLLOWED], Place::Growing(Arc::new(text)))
            }
            Input::Recording => {
                let take = folder.join("take");
                let _ = fs::remove_dir_all(&folder);
                fs::create_dir_all(folder.join("in"))?;
                plain(&folder.join("in"))?;
                record_run(world, &folder)?;
                (three, Place::Recording(take))
            }
            Input::Topic | Input::Group => {
                let broker = world.broker()?;
                let topic = broker.topic("from")?;
                broker.fill(&topic, OF_PARTITION)?;
                (vec![OF_PARTITION; PARTITIONS as usize], Place::Topic(topic))
            }
        };
        Ok(Self { input, each, place })
    }
}

fn plain(folder: &Path) -> Result<()> {
    for source in 0..3 {
        fs::write(folder.join(format!("{source}.log")), record::lines(source, 0..EACH))?;
    }
    Ok(())
}

/// Members and frames that end anywhere.
fn cut(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.chunks(text.len() / 5 + 1)
}

/// A recording of three plain files.
fn record_run(world: &World, folder: &Path) -> Result<()> {
    let pipeline = "name: recorded\nmin_batch_records: 300\nmax_batch_records: 500\n\
                    inputs: {in: {file: {paths: \"in/*\"}}}\noutputs: {out: {null: {}}}\n";
    fs::write(folder.join("pipeline.yaml"), pipeline)?;
    let mut command = Command::new(&world.program);
    command.args(["run", "pipeline.yaml", "--record", "take"]).current_dir(folder);
    let output = command.output().context("starting lockgate")?;
    if !output.status.success() {
        bail!("nothing was recorded: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

/// Lets a file grow, cut anywhere; ended when dropped.
pub(crate) struct Feeder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Feeder {
    pub(crate) fn start(path: &Path, text: Arc<Vec<u8>>, seed: u64) -> Result<Self> {
        let mut file = File::create(path).with_context(|| format!("making {}", path.display()))?;
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let thread = thread::spawn(move || {
            let mut random = fastrand::Rng::with_seed(seed);
            let mut rest = text.as_slice();
            while !rest.is_empty() && !told.load(Ordering::Relaxed) {
                let (piece, after) = rest.split_at(random.usize(1..80_000).min(rest.len()));
                file.write_all(piece).context("feeding a file")?;
                rest = after;
                thread::sleep(Duration::from_millis(random.u64(0..20)));
            }
            Ok(())
        });
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Waits until all is there.
    pub(crate) fn finish(mut self) -> Result<()> {
        let thread = self.thread.take().context("fed twice")?;
        thread.join().ok().context("the feeder of a file failed")?
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
