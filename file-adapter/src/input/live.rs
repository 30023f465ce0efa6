//! A reader after its first `Extend`: reads files in order, queues what was read, hands it over.
//!
//! What is special about followed files is in [`follow`]. Not here: replays.

mod follow;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError};
use std::time::{Duration, Instant};

use lockgate_core::{
    Batch, EndpointError, FaultTolerance, InputConsumer, InputReaderCommand as Command, Partition,
    Resume,
};
use tracing::debug;

use self::follow::Follow;
use super::arena::Pool;
use super::cursor::{Applied, Cursor, Until};
use super::decode::Source;
use super::discover::Patterns;
use super::frame::Rules;
use super::gauges::Gauges;
use super::identity::{Fingerprint, Tail};
use super::plan::{Change, Plan, Planned, accept, refuse};
use super::position::{Begun, Mark, Range, printable, ranges_to_msgpack};
use super::progress::{Identity, Progress};
use super::queue::{End, FileId, Item, Queue, Share};
use super::reader::Wake;
use super::replay::Replayer;

/// How long following waits for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// How often to look without being told of a change.
    pub(super) poll: Duration,
    /// How long a file that was rotated away must be quiet: its writer may still hold it open.
    pub(super) quiet: Duration,
    /// How long, without a change, to keep an eye on what may still change: a finished file that no
    /// pattern finds, a compressed file that looks like the beginning of a copy.
    pub(super) linger: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let (second, minute) = (Duration::from_secs(1), Duration::from_secs(60));
        Self { poll: second, quiet: second, linger: minute }
    }
}

/// What a reader was opened with.
pub(super) struct Shared {
    pub(super) rules: Rules,
    pub(super) level: FaultTolerance,
    pub(super) consumer: Arc<dyn InputConsumer>,
    pub(super) pool: Pool,
    pub(super) patterns: Arc<Patterns>,
    pub(super) follow: bool,
    pub(super) timing: Timing,
    pub(super) gauges: Arc<Gauges>,
}

impl Shared {
    pub(super) fn report(&self, applied: impl IntoIterator<Item = Applied>) {
        for (policy, text) in applied {
            self.consumer.policy_applied(policy, text);
        }
    }
}

/// A file whose end was not handed over.
struct Tracked {
    identity: Identity,
    stage: Stage,
    /// Where to go on when it is opened; `None`: at its beginning.
    mark: Option<Mark>,
    cursor: Option<Box<Cursor>>,
    /// Its size on the disk when it was found, if it was new.
    found_len: u64,
    /// Followed files: how far the file on the disk was read when it became idle.
    seen: u64,
    /// Followed files: nothing is expected to be written to it any more.
    rotated: Option<Rotated>,
}

impl Tracked {
    /// The file as a position has it, standing at `mark`.
    fn begun(&self, mark: Mark) -> Begun {
        let Identity { name, path, inode, head } = self.identity.clone();
        Begun { name, path, inode, head, mark }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// There may be something to read: it is in `to_read`.
    Reading,
    /// It is at its end for now.
    Idle,
    /// It has the name of a file that must be finished first.
    Behind(FileId),
    /// Its end is in the queue.
    Ended,
}

/// When a file was rotated away.
#[derive(Clone, Copy, Debug)]
struct Rotated {
    at: Instant,
    /// When it was last seen to grow.
    grew: Instant,
}

impl Rotated {
    fn at(now: Instant) -> Self {
        Self { at: now, grew: now }
    }
}

/// How a file stands after a block was read.
enum After {
    More,
    AtEnd,
    /// It is not the one that was begun, and is tracked as another one now.
    Renewed,
}

/// **Invariant:** a file is in `to_read` if and only if its stage is `Reading`.
pub(super) struct Live {
    shared: Shared,
    replayer: Replayer,
    follow: Option<Follow>,
    /// How many files have been tracked so far.
    tracked: u64,
    files: BTreeMap<FileId, Tracked>,
    to_read: VecDeque<FileId>,
    queue: Queue,
    progress: Progress,
    running: bool,
    ended: bool,
}

impl Live {
    pub(super) fn new(shared: Shared, plan: Plan, replayer: Replayer, wakes: Sender<Wake>) -> Self {
        let follow = shared.follow.then(|| Follow::new(&shared.patterns, shared.timing, wakes));
        let mut live = Self {
            shared,
            replayer,
            follow,
            tracked: 0,
            files: BTreeMap::new(),
            to_read: VecDeque::new(),
            queue: Queue::default(),
            progress: Progress::new(plan.done),
            running: true,
            ended: false,
        };
        live.shared.report(plan.applied);
        live.shared.gauges.clear();
        for planned in plan.files {
            live.track(planned);
        }
        live
    }

    fn track(&mut self, planned: Planned) -> FileId {
        let stage = self.first_stage(FileId(self.tracked), &planned.name);
        self.track_as(planned, stage)
    }

    fn track_as(&mut self, planned: Planned, stage: Stage) -> FileId {
        let id = FileId(self.tracked);
        self.tracked += 1;
        let Planned { name, found, mark, head } = planned;
        self.shared.gauges.track(id, &name, &found.path, mark.as_ref());
        let identity = Identity { name, path: found.path, inode: found.inode, head };
        if let Some(mark) = mark {
            let tail = Tail::stored(mark.offset, mark.tail);
            self.progress.resume(id, identity.clone(), tail, mark.member);
        }
        if stage == Stage::Reading {
            self.to_read.push_back(id);
        }
        let (cursor, seen, rotated, found_len) = (None, 0, None, found.len);
        let file = Tracked { identity, stage, mark, cursor, found_len, seen, rotated };
        self.files.insert(id, file);
        id
    }

    /// A followed file is not begun before the one that had its name is finished: the offsets of a name
    /// must not go back while they still go on.
    fn first_stage(&mut self, id: FileId, name: &str) -> Stage {
        let Some(follow) = &mut self.follow else { return Stage::Reading };
        let before = follow.names.insert(name.to_owned(), id);
        let before = before.and_then(|before| Some((before, self.files.get_mut(&before)?)));
        match before {
            Some((before, file)) if file.stage != Stage::Ended => {
                file.rotated.get_or_insert_with(|| Rotated::at(Instant::now()));
                Stage::Behind(before)
            }
            _ => Stage::Reading,
        }
    }

    /// Until `Disconnect`.
    pub(super) fn run(mut self, commands: &Receiver<Wake>) -> Result<(), EndpointError> {
        self.announce();
        loop {
            if self.follow.as_ref().is_some_and(Follow::is_due) {
                self.look_around()?;
            }
            let wake = if self.may_read() {
                match commands.try_recv() {
                    Err(TryRecvError::Empty) => {
                        self.read()?;
                        continue;
                    }
                    Err(TryRecvError::Disconnected) => return Ok(()),
                    Ok(wake) => wake,
                }
            } else if let Some(follow) = &self.follow {
                match commands.recv_timeout(follow.until_due()) {
                    Err(RecvTimeoutError::Timeout) => continue,
                    Err(RecvTimeoutError::Disconnected) => return Ok(()),
                    Ok(wake) => wake,
                }
            } else {
                match commands.recv() {
                    Err(_) => return Ok(()),
                    Ok(wake) => wake,
                }
            };
            match wake {
                Wake::Changed => self.follow.iter_mut().for_each(Follow::changed),
                Wake::Command(Command::Extend) => {
                    self.running = true;
                    self.announce();
                }
                Wake::Command(Command::Pause) => self.running = false,
                Wake::Command(Command::Queue { checkpoint_requested }) => {
                    self.hand_over(checkpoint_requested);
                }
                Wake::Command(Command::Disconnect) => return Ok(()),
                Wake::Command(Command::Replay { .. }) => {
                    let what = "a file input that is running was sent Replay";
                    return Err(EndpointError::Bug(what.into()));
                }
            }
        }
    }

    /// At most one block is read beyond what may be announced.
    fn may_read(&self) -> bool {
        self.running && self.queue.is_announced() && !self.to_read.is_empty()
    }

    /// Reads one block.
    fn read(&mut self) -> Result<(), EndpointError> {
        let Some(id) = self.to_read.front().copied() else { return Ok(()) };
        let Some(mut cursor) = self.open(id, false)? else {
            // It is looked for again; or it was renewed, and is no longer in `to_read`.
            if self.to_read.front() == Some(&id) {
                self.to_read.pop_front();
                self.file(id)?.stage = Stage::Idle;
            }
            self.announce();
            return Ok(());
        };
        let until = if self.shared.follow { Until::EndForNow } else { Until::End };
        match self.read_block(id, &mut cursor, until)? {
            After::More => self.file(id)?.cursor = Some(cursor),
            After::AtEnd if self.shared.follow => {
                self.to_read.pop_front();
                self.rest(id, cursor)?;
            }
            After::AtEnd => self.finish(id, &cursor)?,
            After::Renewed => {}
        }
        self.announce();
        Ok(())
    }

    /// Reads a block into the queue.
    fn read_block(
        &mut self,
        id: FileId,
        cursor: &mut Cursor,
        until: Until,
    ) -> Result<After, EndpointError> {
        if self.shared.follow
            && change_behind(cursor.source(), cursor.source().raw_pos(), cursor.tail())?.is_some()
            && let Ok(scan) = self.shared.patterns.scan()
        {
            self.move_to_copy(id, cursor, &scan.found)?;
        }
        let (position, raw_pos) = (cursor.position(), cursor.source().raw_pos());
        let tail = cursor.tail().clone();
        let reading = cursor.read(&self.shared.pool, until);
        // Looked at after the block, so that the block cannot be of what the file holds since.
        let change = change_behind(cursor.source(), raw_pos, &tail)?;
        let change = match &reading {
            Ok(reading) if reading.is_another => change.or(Some(Change::Replaced)),
            _ => change,
        };
        if let Some(change) = change {
            let tail = Fingerprint::of(b"");
            self.not_the_one(id, Mark { offset: position, tail, member: None }, change)?;
            return Ok(After::Renewed);
        }
        let reading = reading?;
        self.shared.report(reading.applied);
        for piece in reading.pieces {
            self.queue.push(Item::records(id, piece));
        }
        Ok(if reading.at_end { After::AtEnd } else { After::More })
    }

    /// The file was read to its end.
    fn finish(&mut self, id: FileId, cursor: &Cursor) -> Result<(), EndpointError> {
        let next = cursor.source().pos();
        debug!(file = printable(cursor.source().path()), bytes = next, "read to its end");
        let members = cursor.member().into_iter().collect();
        self.end(Item::end(id, next, members, End::Done))
    }

    /// The file ends with `item`; those that waited for that can be read.
    fn end(&mut self, item: Item) -> Result<(), EndpointError> {
        let id = item.file;
        self.queue.push(item);
        let file = self.file(id)?;
        (file.stage, file.cursor) = (Stage::Ended, None);
        if self.to_read.front() == Some(&id) {
            self.to_read.pop_front();
        } else {
            self.to_read.retain(|other| *other != id);
        }
        self.release_name(id);
        Ok(())
    }

    /// The next file of its name can be read.
    fn release_name(&mut self, id: FileId) {
        let Some(follow) = &mut self.follow else { return };
        follow.names.retain(|_, last| *last != id);
        for (next, file) in &mut self.files {
            if file.stage == Stage::Behind(id) {
                file.stage = Stage::Reading;
                self.to_read.push_back(*next);
            }
        }
    }

    /// Opens a file, unless it is open. `None`: a followed file that is not there or, unless it is to be
    /// taken `as_it_is`, next to empty, or that is not the one that was begun and has been renewed.
    fn open(&mut self, id: FileId, as_it_is: bool) -> Result<Option<Box<Cursor>>, EndpointError> {
        let file = self.file(id)?;
        if let Some(cursor) = file.cursor.take() {
            return Ok(Some(cursor));
        }
        let (mark, name, inode) = (file.mark, file.identity.name.clone(), file.identity.inode);
        if let Some(mark) = mark
            && let Some(cursor) = self.replayer.take_open(inode)
            && cursor.is_at(&name, mark.offset)
        {
            return Ok(Some(Box::new(cursor)));
        }
        let opened = match Source::open(&self.file(id)?.identity.path) {
            Ok(opened) => opened,
            Err(error) if self.shared.follow && is_absent(&error) => return Ok(None),
            Err(error) if self.shared.follow && mark.is_none() => {
                let path = self.file(id)?.identity.path.clone();
                self.set_aside(&path, &error);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if opened.inode != inode {
            if self.shared.follow {
                // It has another path now.
                return Ok(None);
            }
            if mark.is_none() {
                let path = printable(opened.source.path());
                return Err(EndpointError::Data(format!(
                    "{path} was replaced after it was found and before it was read; start again"
                )));
            }
        }
        if self.shared.follow && mark.is_none() && opened.is_undecided() && !as_it_is {
            // Too little to tell whether it will be compressed.
            self.file(id)?.seen = opened.len;
            return Ok(None);
        }
        let source = opened.source;
        debug!(file = printable(source.path()), mark = ?mark, "opened");
        let partition = Arc::new(Partition { source: name, number: None });
        let rules = self.shared.rules;
        let file = self.file(id)?;
        let cursor = match mark {
            None => {
                file.identity.head = Fingerprint::of(&opened.head);
                Cursor::new(partition, rules, source)
            }
            Some(mark) if file.identity.head.begins(&opened.head) => {
                Cursor::go_on(partition, rules, source, mark)?
            }
            Some(mark) => {
                self.not_the_one(id, mark, Change::Replaced)?;
                return Ok(None);
            }
        };
        Ok(Some(Box::new(cursor)))
    }

    /// A file is not the one that was begun.
    fn not_the_one(&mut self, id: FileId, mark: Mark, change: Change) -> Result<(), EndpointError> {
        let begun = self.file(id)?.begun(mark);
        if !self.shared.follow {
            return Err(refuse(&begun, change));
        }
        self.renew(id, mark.offset, accept(&begun, change))
    }

    fn file(&mut self, id: FileId) -> Result<&mut Tracked, EndpointError> {
        let bug = || EndpointError::Bug("a file input lost track of a file".into());
        self.files.get_mut(&id).ok_or_else(bug)
    }

    /// Announces what the limits allow, and the end.
    fn announce(&mut self) {
        if !self.running {
            return;
        }
        let consumer = &self.shared.consumer;
        let announced = self.queue.announce(consumer.limits());
        if announced.records > 0 {
            consumer.buffered(announced);
        }
        let end = self.to_read.is_empty() && self.queue.is_announced() && !self.shared.follow;
        if end && !self.ended {
            self.ended = true;
            consumer.eoi();
        }
    }

    fn hand_over(&mut self, checkpoint_requested: bool) {
        let most = self.shared.consumer.max_batch_size();
        let share = if checkpoint_requested {
            self.queue.share_to_checkpoint(most, self.progress.midway())
        } else {
            Share::of_records(most)
        };
        let mut batches: Vec<Batch> = Vec::new();
        let mut ranges: Vec<(FileId, Range)> = Vec::new();
        for item in self.queue.take(share) {
            if let Some(file) = self.files.get(&item.file) {
                self.progress.hand_over(&item, &file.identity, &mut ranges);
            }
            if item.end.is_some() {
                self.files.remove(&item.file);
                self.shared.gauges.forget(item.file);
            } else if let Some((position, compressed)) = self.progress.reached(item.file) {
                self.shared.gauges.reach(item.file, position, compressed);
            }
            batches.extend(item.batch);
        }
        let resume = self.resume(ranges, checkpoint_requested);
        self.shared.consumer.extended(batches, resume);
        self.announce();
    }

    fn resume(&self, ranges: Vec<(FileId, Range)>, checkpoint_requested: bool) -> Resume {
        let seek = || self.progress.seek().to_json().into();
        match self.shared.level {
            FaultTolerance::ExactlyOnce => {
                let ranges: Vec<_> = ranges.into_iter().map(|(_, range)| range).collect();
                Resume::Replay { seek: seek(), replay: ranges_to_msgpack(&ranges) }
            }
            // Nothing is stored at this level; only a request is worth the answer.
            FaultTolerance::None if !checkpoint_requested => Resume::Barrier,
            _ if self.progress.midway().is_empty() => Resume::Seek { seek: seek() },
            _ => Resume::Barrier,
        }
    }
}

/// What became of a file that was read to `raw_pos`, where it ended with `tail`, as far as its length and
/// those bytes tell.
fn change_behind(
    source: &Source,
    raw_pos: u64,
    tail: &Tail,
) -> Result<Option<Change>, EndpointError> {
    let len = source.raw_len()?;
    if len < raw_pos {
        return Ok(Some(Change::Truncated { len }));
    }
    if source.is_compressed() {
        return Ok(None);
    }
    let start = tail.end() - tail.bytes().len() as u64;
    let same = source.bytes_at(start, tail.bytes().len())? == tail.bytes();
    Ok((!same).then_some(Change::Replaced))
}

fn is_absent(error: &EndpointError) -> bool {
    let EndpointError::Unavailable { source, .. } = error else { return false };
    let error = source.downcast_ref::<std::io::Error>();
    error.is_some_and(|error| error.kind() == std::io::ErrorKind::NotFound)
}
