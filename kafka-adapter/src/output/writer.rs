//! The thread that writes: takes steps, keeps them until they are there, and decides what is done about failures.
//!
//! Not here: how one attempt at a transaction is made (`attempt`).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lockgate_core::{EndpointError, OutputReporter};
use rdkafka::error::RDKafkaErrorCode as Code;

use super::desk::{Desk, Next};
use super::failure::{Failure, Remedy};
use super::offsets::Known;
use super::producer::Producer;
use super::start::{Maker, Marker};
use super::topics::Topics;
use super::window::Window;
use crate::config::OnRefused;
use crate::group::GroupCommits;

/// Longest that a call of the client may take before the thread looks up.
pub(super) const CALL: Duration = Duration::from_millis(500);
/// How long making a producer anew may take before it is tried again from the start.
const RENEW: Duration = Duration::from_secs(10);
/// The client is listened to at least so often.
const LISTEN: Duration = Duration::from_millis(500);
/// Between two attempts at first, and at most.
const BACKOFF: Duration = Duration::from_millis(50);
const MAX_BACKOFF: Duration = Duration::from_secs(2);
/// How long a group may not know the reader before it is given up.
const GROUP_PATIENCE: Duration = Duration::from_secs(30);
/// No answer for so long is told.
pub(super) const LONG_STALL: Duration = Duration::from_secs(10);
/// What is left open at the end is aborted, if that can be done so fast.
const FAREWELL: Duration = Duration::from_millis(300);

/// Why an attempt ended early.
pub(super) enum Setback {
    /// The output is dropped.
    Stopped,
    /// Nothing more can be written.
    Stop(EndpointError),
    /// More records are refused than was known.
    Refused,
    /// A record is refused, and it is not known which: each is to be sent by itself.
    Careful,
    /// The producer or the transaction failed.
    Failed(Failure),
}

impl From<Failure> for Setback {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Everything that the thread owns.
pub(super) struct Writer {
    pub(super) maker: Maker,
    pub(super) desk: Arc<Desk>,
    pub(super) reporter: Arc<dyn OutputReporter>,
    pub(super) producer: Producer,
    /// Where the last step is kept, unless a group's offsets say it.
    pub(super) marker: Option<Marker>,
    /// Readers whose offsets travel in the transactions, by their place in the pipeline.
    pub(super) groups: BTreeMap<usize, GroupCommits>,
    pub(super) known: Known,
    pub(super) topics: Topics,
    pub(super) window: Window,
    /// The first step of the window that was not handed over in this attempt.
    pub(super) cursor: usize,
    /// How many records of the window, refused ones included, were dealt with in this attempt.
    pub(super) reached: usize,
    /// Records whose delivery failed in this attempt.
    pub(super) unwritten: Vec<usize>,
    /// Since when a transaction is open.
    pub(super) begun: Option<Instant>,
    /// Each record is sent by itself.
    pub(super) careful: bool,
    /// Whether this producer gave records up of which it is not known whether the brokers have them.
    pub(super) is_unclear: bool,
    pub(super) timing: WriterTiming,
    /// The last step that is known to be there.
    pub(super) committed: u64,
    /// The last step of a transaction of which it may not be known whether it was committed.
    pub(super) attempted: u64,
    in_trouble: bool,
    /// Since when calls are not answered in time.
    slow: Option<Instant>,
    backoff: Duration,
    /// Since when the group does not know the reader.
    group_trouble: Option<Instant>,
}

/// How long a writer waits for what.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriterTiming {
    /// A transaction is kept open so long.
    pub(super) interval: Duration,
    /// The brokers let it be open so long.
    pub(super) transaction: Duration,
}

impl Writer {
    /// With nothing written yet.
    pub(super) fn new(
        maker: Maker,
        desk: Arc<Desk>,
        reporter: Arc<dyn OutputReporter>,
        producer: Producer,
        timing: WriterTiming,
    ) -> Self {
        Self {
            maker,
            desk,
            reporter,
            producer,
            marker: None,
            groups: BTreeMap::new(),
            known: Known::default(),
            topics: Topics::default(),
            window: Window::default(),
            cursor: 0,
            reached: 0,
            unwritten: Vec::new(),
            begun: None,
            careful: false,
            is_unclear: false,
            timing,
            committed: 0,
            attempted: 0,
            in_trouble: false,
            slow: None,
            backoff: BACKOFF,
            group_trouble: None,
        }
    }

    pub(super) fn is_transactional(&self) -> bool {
        self.maker.transactional_id.is_some()
    }

    /// Writes until it is told to end, or cannot go on.
    pub(super) fn run(mut self) {
        /// Also when the thread panics nobody waits for it.
        struct End(Arc<Desk>);
        impl Drop for End {
            fn drop(&mut self) {
                self.0.end();
            }
        }
        let end = End(self.desk.clone());
        let ended = self.write_on();
        if self.begun.is_some() {
            self.farewell();
        }
        if let Err(Setback::Stop(error)) = ended {
            self.desk.fail(error);
        }
        drop(self);
        drop(end);
    }

    fn write_on(&mut self) -> Result<(), Setback> {
        loop {
            let due = self.window.due(self.timing.interval);
            let tick = Instant::now() + LISTEN;
            match self.desk.next(due.map_or(tick, |due| due.min(tick))) {
                Next::Stop => return Ok(()),
                Next::Take(step) => {
                    self.window.add(step, Instant::now());
                    if let Err(setback) = self.advance() {
                        self.overcome(setback)?;
                    }
                }
                Next::Flush => self.settle()?,
                Next::Due => self.listen(),
            }
            let is_due = due.is_some_and(|due| due <= Instant::now());
            if !self.window.is_empty() && (is_due || self.window.is_full()) {
                self.settle()?;
            }
        }
    }

    /// Commits what there is, in as many attempts as it takes.
    fn settle(&mut self) -> Result<(), Setback> {
        while !self.window.is_empty() {
            match self.commit() {
                Ok(()) => self.settled()?,
                Err(setback) => self.overcome(setback)?,
            }
        }
        Ok(())
    }

    /// The window is there for good.
    fn settled(&mut self) -> Result<(), Setback> {
        let policy = match self.maker.config.on_refused {
            OnRefused::DeadLetter(_) => "refused_dead_letter",
            OnRefused::Stop | OnRefused::Skip => "refused_skipped",
        };
        for (number, refused) in self.window.all_refused() {
            if let Some(record) = self.window.record(*number) {
                self.reporter.policy_applied(policy, refused.text(&record));
            }
        }
        for (input, told) in self.known.to_tell(self.window.steps()) {
            if let Some(commits) = self.groups.get(&input) {
                commits.commit(told.turn);
            }
        }
        self.known.told(self.window.steps());
        self.committed = self.window.last_step().unwrap_or(self.committed);
        self.attempted = self.committed;
        let (steps, bytes) = (self.window.steps().len(), self.window.bytes());
        self.window.clear();
        self.start_over();
        (self.backoff, self.slow, self.group_trouble) = (BACKOFF, None, None);
        if std::mem::take(&mut self.in_trouble) {
            self.reporter.recovered();
        }
        // Last: whoever waits for it finds everything told.
        self.desk.finish(steps, bytes);
        if std::mem::take(&mut self.careful) {
            self.renew()?;
        }
        Ok(())
    }

    /// Does what it takes so that another attempt can be made.
    fn overcome(&mut self, setback: Setback) -> Result<(), Setback> {
        let failure = match setback {
            Setback::Refused => return self.undo(),
            Setback::Careful => {
                self.undo()?;
                self.careful = true;
                return self.renew();
            }
            Setback::Failed(failure) => failure,
            end @ (Setback::Stopped | Setback::Stop(_)) => return Err(end),
        };
        let remedy = failure.remedy();
        tracing::debug!(?remedy, %failure, "writing to Kafka");
        match remedy {
            Remedy::Forbidden => Err(self.forbidden(failure)),
            Remedy::GiveUpMember => Err(self.superseded(failure.into())),
            Remedy::AskMember if !self.groups.is_empty() => self.ask_member(failure),
            Remedy::Fenced if !self.gave_up_by_brokers() => Err(self.fenced(failure)),
            Remedy::Fenced | Remedy::Renew => {
                if !self.groups.is_empty() {
                    return Err(self.superseded(failure.into()));
                }
                self.trouble(&failure);
                self.rest()?;
                self.renew()
            }
            Remedy::Abort | Remedy::Repeat | Remedy::AskMember => {
                self.trouble(&failure);
                self.undo()?;
                self.rest()
            }
        }
    }

    /// Whether the brokers may have ended the transaction because it was open too long, which looks the same as
    /// if somebody else had.
    fn gave_up_by_brokers(&self) -> bool {
        self.begun.is_some_and(|begun| begun.elapsed() >= self.timing.transaction)
    }

    /// The group does not know the reader as it was told: waits until it is known again.
    fn ask_member(&mut self, failure: Failure) -> Result<(), Setback> {
        let since = *self.group_trouble.get_or_insert_with(Instant::now);
        self.undo()?;
        let has_members = self.groups.values().all(|commits| commits.member().is_some());
        if !has_members || since.elapsed() > GROUP_PATIENCE {
            return Err(self.superseded(failure.into()));
        }
        self.rest()
    }

    /// The reader has lost its partitions to another member of the group.
    pub(super) fn superseded(&self, source: lockgate_core::BoxError) -> Setback {
        let names: Vec<String> =
            self.known.to_tell(self.window.steps()).into_values().map(|told| told.group).collect();
        let what = format!(
            "writing with the offsets of group {} to the Kafka brokers {}: another member has taken over, and \
             what was not committed is given up",
            names.join(", "),
            self.maker.brokers()
        );
        Setback::Stop(EndpointError::Superseded { what, source })
    }

    fn fenced(&self, failure: Failure) -> Setback {
        if !self.groups.is_empty() {
            return self.superseded(failure.into());
        }
        Setback::Stop(self.rival(failure.into()))
    }

    /// Another process writes what this one is to write.
    pub(super) fn rival(&self, source: lockgate_core::BoxError) -> EndpointError {
        let id = self.maker.transactional_id.as_deref().unwrap_or_default();
        let what = format!(
            "writing to the Kafka brokers {}: another process writes with the same transactional id {id}, so \
             with a copy of this state directory, and this one stops. Let only one of them run",
            self.maker.brokers()
        );
        EndpointError::Unavailable { what, source }
    }

    fn forbidden(&self, failure: Failure) -> Setback {
        let what = format!(
            "writing to the Kafka brokers {}: a right is missing. Needed are Write on the topics{}",
            self.maker.brokers(),
            match (&self.maker.transactional_id, &self.marker) {
                (Some(id), Some(_)) => format!(
                    ", Write and Describe on transactional id {id}, and Read on the group of that name and on \
                     the topic under which the last step is kept"
                ),
                (Some(id), None) => format!(
                    ", Write and Describe on transactional id {id}, and Read on the groups and topics read"
                ),
                (None, _) => String::new(),
            }
        );
        Setback::Stop(EndpointError::Unavailable { what, source: failure.into() })
    }

    /// Aborts the transaction; without transactions, finds out what has to be written again.
    fn undo(&mut self) -> Result<(), Setback> {
        if !self.is_transactional() {
            let judged = self.judge_deliveries();
            self.window.again_failed(std::mem::take(&mut self.unwritten), self.reached);
            (self.cursor, self.reached) = (0, 0);
            return self.judged(judged, false);
        }
        while self.begun.is_some() {
            match self.producer.abort(CALL) {
                Ok(()) => self.begun = None,
                Err(failure) if failure.remedy() == Remedy::Repeat => {
                    self.passing_trouble(&failure);
                    self.serve(Duration::from_millis(10))?;
                }
                Err(failure) if !self.groups.is_empty() => {
                    return Err(self.superseded(failure.into()));
                }
                Err(failure)
                    if failure.remedy() == Remedy::Fenced && !self.gave_up_by_brokers() =>
                {
                    return Err(self.fenced(failure));
                }
                Err(failure) => {
                    self.trouble(&failure);
                    return self.renew();
                }
            }
        }
        // What the brokers said about records may have come only now.
        let judged = self.judge_deliveries();
        self.start_over();
        // The client would number what it writes next like what it has given up. If that was written after all, the
        // brokers take the next for it and drop it, though they say that they have it. Another producer has its own
        // numbers.
        self.judged(judged, self.is_unclear)
    }

    /// Goes on to another attempt after what was found out about records, by another producer if need be.
    fn judged(&mut self, judged: Result<(), Setback>, must_renew: bool) -> Result<(), Setback> {
        let is_suspected = match judged {
            Ok(()) | Err(Setback::Refused) => false,
            Err(Setback::Careful) => true,
            Err(other) => return Err(other),
        };
        self.careful |= is_suspected;
        if must_renew || is_suspected { self.renew() } else { Ok(()) }
    }

    fn start_over(&mut self) {
        self.window.again();
        self.unwritten.clear();
        (self.cursor, self.reached, self.begun) = (0, 0, None);
    }

    /// Makes the producer anew, and finds out what is there.
    fn renew(&mut self) -> Result<(), Setback> {
        if !self.is_transactional() {
            self.producer.purge(Duration::from_secs(1));
            self.undo()?;
        }
        loop {
            let desk = self.desk.clone();
            let stops = move || desk.stops();
            let made = self.maker.producer(self.careful).and_then(|producer| {
                self.maker.init(&producer, RENEW, &stops)?;
                let marker = match &self.marker {
                    Some(marker) => marker.read(RENEW, &stops)?,
                    None => None,
                };
                Ok((producer, marker))
            });
            match made {
                Ok((producer, marker)) => {
                    (self.producer, self.is_unclear) = (producer, false);
                    return self.renewed(marker);
                }
                Err(_) if self.desk.stops() => return Err(Setback::Stopped),
                Err(EndpointError::Unavailable { what, source }) => {
                    self.tell(EndpointError::Unavailable { what, source });
                    self.rest()?;
                }
                Err(error) => return Err(Setback::Stop(error)),
            }
        }
    }

    /// A new producer is there, and the brokers know `marker` as the last step.
    fn renewed(&mut self, marker: Option<u64>) -> Result<(), Setback> {
        if !self.is_transactional() {
            return Ok(());
        }
        match marker {
            Some(step) if step == self.attempted && step != self.committed => self.settled(),
            Some(step) if step != self.committed => {
                let known = self.committed;
                let source = format!("the last step that is there is {step}, not {known}").into();
                Err(Setback::Stop(self.rival(source)))
            }
            _ => {
                self.start_over();
                Ok(())
            }
        }
    }

    /// Lets the client tell what has happened, waiting so long for more.
    pub(super) fn serve(&mut self, wait: Duration) -> Result<(), Setback> {
        self.producer.serve(wait);
        let mut reason = None;
        for (code, text) in self.producer.reports() {
            match code {
                Code::AllBrokersDown | Code::Authentication | Code::SaslAuthenticationFailed => {
                    let text = reason.take().unwrap_or(text);
                    self.trouble(&Failure::abort(code, text));
                }
                _ => {
                    tracing::debug!(?code, "{text}");
                    reason = Some(text);
                }
            }
        }
        if self.desk.stops() { Err(Setback::Stopped) } else { Ok(()) }
    }

    /// The same while nothing is waited for: an outage is none of this output's trouble yet.
    fn listen(&mut self) {
        self.producer.serve(Duration::ZERO);
        drop(self.producer.reports());
        if let Some(marker) = &self.marker {
            marker.serve();
        }
    }

    /// Tells that something does not work, once until it does.
    pub(super) fn trouble(&mut self, failure: &Failure) {
        let what = format!("writing to the Kafka brokers {}", self.maker.brokers());
        self.tell(EndpointError::Unavailable { what, source: failure.clone().into() });
    }

    /// The same, unless it is only that an answer takes its time.
    pub(super) fn passing_trouble(&mut self, failure: &Failure) {
        let since = *self.slow.get_or_insert_with(Instant::now);
        if failure.code != Code::OperationTimedOut || since.elapsed() > LONG_STALL {
            self.trouble(failure);
        }
    }

    fn tell(&mut self, error: EndpointError) {
        if !std::mem::replace(&mut self.in_trouble, true) {
            self.reporter.trouble(error);
        }
    }

    /// Waits before another attempt, longer each time.
    pub(super) fn rest(&mut self) -> Result<(), Setback> {
        let time = self.backoff;
        self.backoff = (self.backoff * 2).min(MAX_BACKOFF);
        if self.desk.pause(time) { Err(Setback::Stopped) } else { Ok(()) }
    }

    /// Readers do not have to wait for a transaction that nobody will end.
    fn farewell(&mut self) {
        let until = Instant::now() + FAREWELL;
        while let Err(failure) = self.producer.abort(Duration::from_millis(50)) {
            if failure.remedy() != Remedy::Repeat || Instant::now() >= until {
                tracing::debug!(%failure, "the last transaction is left to the brokers");
                return;
            }
            self.producer.serve(Duration::from_millis(1));
        }
    }
}
