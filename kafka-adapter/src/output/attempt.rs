//! One attempt at a transaction: hands its records over, sends offsets along, and commits.
//!
//! Not here: what is done when an attempt fails (`writer`).

use std::time::{Duration, Instant};

use lockgate_core::{EndpointError, Record};
use rdkafka::error::RDKafkaErrorCode as Code;
use rdkafka::producer::BaseRecord;

use super::failure::{Failure, Remedy};
use super::producer::{Producer, Sent};
use super::refusal::{self, Refused, Verdict};
use super::route;
use super::start::Marker;
use super::topics::{Missing, Topics};
use super::writer::{CALL, LONG_STALL, Setback, Writer};
use crate::config::{KafkaOutputConfig, Kept, OnRefused, TopicChoice};

/// Between two looks at deliveries.
const LOOK: Duration = Duration::from_millis(1);
/// No delivery for so long is worth asking whether the transaction has failed.
const STALL: Duration = Duration::from_secs(2);
/// Deliveries are looked at each time that so many records were handed over.
const SERVE_EACH: usize = 1024;

/// What is to be done about a record before others can be handed over.
enum Obstacle {
    /// There is no room for it.
    Full,
    /// It is refused for good.
    Refused(Refused),
    /// It is not known whether its topic exists.
    Unknown(Code),
    Failed(Failure),
}

impl From<Failure> for Obstacle {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl Writer {
    /// Hands over what was not handed over in this attempt.
    pub(super) fn advance(&mut self) -> Result<(), Setback> {
        while self.cursor < self.window.steps().len() {
            if self.is_transactional()
                && self.begun.is_none()
                && self.window.to_write(self.cursor).next().is_some()
            {
                self.begin()?;
            }
            self.hand_over(self.cursor)?;
            self.cursor += 1;
        }
        Ok(())
    }

    fn begin(&mut self) -> Result<(), Setback> {
        if self.begun.is_none() {
            self.producer.begin()?;
            self.begun = Some(Instant::now());
        }
        Ok(())
    }

    /// Hands over the records of one step.
    fn hand_over(&mut self, index: usize) -> Result<(), Setback> {
        let mut skip = 0;
        loop {
            let Some((number, obstacle)) = self.hand_over_from(index, &mut skip) else {
                return Ok(());
            };
            match obstacle {
                Obstacle::Full => {
                    let before = self.producer.outstanding();
                    self.serve(LOOK)?;
                    if self.producer.has_failed_deliveries() && self.is_transactional() {
                        let failure = self.reason(Failure::abort(Code::State, "a delivery failed"));
                        return Err(self.judge(failure));
                    }
                    if before == 0 {
                        return Err(Setback::Failed(Failure::abort(Code::QueueFull, "no room")));
                    }
                }
                Obstacle::Unknown(code) => {
                    self.trouble(&Failure::abort(code, code.to_string()));
                    self.serve(Duration::ZERO)?;
                    self.rest()?;
                }
                Obstacle::Refused(refused) => self.refuse(number, refused)?,
                Obstacle::Failed(failure) => {
                    let failure = self.reason(failure);
                    return Err(self.judge(failure));
                }
            }
        }
    }

    /// Hands over records of a step, without the first `skip` of those that are to be written, which rises, until
    /// there is an obstacle.
    fn hand_over_from(&mut self, index: usize, skip: &mut usize) -> Option<(usize, Obstacle)> {
        let Self { producer, topics, window, maker, reached, .. } = self;
        for (number, record) in window.to_write(index).skip(*skip) {
            let sent = match window.refused(number) {
                None => send(producer, topics, &maker.config, number, &record),
                Some(refused) => {
                    send_dead_letter(producer, topics, &maker.config, number, &record, refused)
                }
            };
            if let Err(obstacle) = sent {
                return Some((number, obstacle));
            }
            *skip += 1;
            *reached = number + 1;
            if number % SERVE_EACH == 0 {
                producer.serve(Duration::ZERO);
            }
        }
        None
    }

    /// A record is refused from now on, unless that stops the pipeline.
    fn refuse(&mut self, number: usize, refused: Refused) -> Result<(), Setback> {
        let Some(record) = self.window.record(number) else { return Ok(()) };
        let error = match (&self.maker.config.on_refused, self.window.refused(number)) {
            (OnRefused::Stop, _) => refused.stops(&record),
            (OnRefused::DeadLetter(dead), Some(before)) => {
                before.stops_dead(&record, dead, &refused.reason)
            }
            (OnRefused::Skip | OnRefused::DeadLetter(_), _) => {
                self.window.refuse(number, refused);
                return Ok(());
            }
        };
        Err(Setback::Stop(error))
    }

    /// Why the transaction has failed of which `failure` only says that it has. The client tells when it is to commit,
    /// which it cannot any more.
    fn reason(&self, failure: Failure) -> Failure {
        let is_reason = !matches!(failure.code, Code::Fail | Code::State);
        if is_reason || failure.is_fatal || !self.is_transactional() {
            return failure;
        }
        match self.producer.commit(CALL) {
            Err(reason) if reason.remedy() != Remedy::Repeat => reason,
            _ => failure,
        }
    }

    /// What `failure` comes from, as far as failed deliveries tell.
    fn judge(&mut self, failure: Failure) -> Setback {
        if failure.is_fatal {
            return Setback::Failed(failure);
        }
        match self.judge_deliveries() {
            Err(setback) => setback,
            Ok(()) => Setback::Failed(failure),
        }
    }

    /// What failed deliveries say about records.
    pub(super) fn judge_deliveries(&mut self) -> Result<(), Setback> {
        self.producer.serve(Duration::ZERO);
        let (mut is_refused, mut is_suspected) = (false, false);
        for (number, code) in self.producer.failed_deliveries() {
            self.unwritten.push(number);
            match refusal::verdict(code) {
                Verdict::Unrelated => {
                    self.is_unclear = true;
                    continue;
                }
                Verdict::Suspected if !self.careful => {
                    is_suspected = true;
                    continue;
                }
                Verdict::Refused | Verdict::Suspected => is_refused = true,
            }
            let reason = refusal::reason(code);
            let topic = (self.window.record(number))
                .and_then(|record| route::topic(&self.maker.config.topic, &record).ok())
                .map(str::to_owned);
            self.refuse(number, Refused { topic, reason })?;
        }
        match (is_suspected, is_refused) {
            (true, _) => Err(Setback::Careful),
            (false, true) => Err(Setback::Refused),
            (false, false) => Ok(()),
        }
    }

    /// Writes the rest and makes everything durable.
    pub(super) fn commit(&mut self) -> Result<(), Setback> {
        self.advance()?;
        if !self.is_transactional() {
            return self.deliver();
        }
        self.send_offsets()?;
        if self.begun.is_none() {
            return Ok(());
        }
        self.deliver()?;
        loop {
            let Err(failure) = self.producer.commit(CALL) else { return Ok(()) };
            if failure.remedy() != Remedy::Repeat {
                return Err(self.judge(failure));
            }
            self.passing_trouble(&failure);
            self.serve(LOOK)?;
        }
    }

    /// Tells the brokers that everything up to `step` is there, before anything is written.
    pub(super) fn mark(
        &self,
        marker: &Marker,
        step: u64,
        patience: Duration,
    ) -> Result<(), EndpointError> {
        let member = marker.member()?;
        let until = Instant::now() + patience;
        let mark = || {
            self.producer.begin()?;
            let offsets = marker.offsets(step);
            let again =
                |failure: &Failure| failure.remedy() == Remedy::Repeat && Instant::now() < until;
            while let Err(failure) = self.producer.send_offsets(&offsets, &member, CALL) {
                if !again(&failure) {
                    return Err(failure);
                }
            }
            while let Err(failure) = self.producer.commit(CALL) {
                if !again(&failure) {
                    return Err(failure);
                }
            }
            Ok(())
        };
        mark().map_err(|failure: Failure| EndpointError::Unavailable {
            what: format!(
                "telling the Kafka brokers {} the last step of group {}",
                self.maker.brokers(),
                marker.group
            ),
            source: failure.into(),
        })
    }

    /// Adds to the transaction how far it goes.
    fn send_offsets(&mut self) -> Result<(), Setback> {
        if let (Some(marker), Some(step)) = (&self.marker, self.window.last_step()) {
            let member = marker.member().map_err(Setback::Stop)?;
            let offsets = marker.offsets(step);
            self.begin()?;
            self.attempted = step;
            while let Err(failure) = self.producer.send_offsets(&offsets, &member, CALL) {
                self.repeat(failure)?;
            }
        }
        for (input, told) in self.known.to_tell(self.window.steps()) {
            if told.offsets.is_empty() {
                continue;
            }
            self.begin()?;
            loop {
                let member = self.groups.get(&input).and_then(|commits| commits.member());
                let Some(member) = member else {
                    return Err(self.superseded("the reader is no member of the group".into()));
                };
                match self.producer.send_offsets(&told.offsets, &member, CALL) {
                    Ok(()) => break,
                    Err(failure) => self.repeat(failure)?,
                }
            }
        }
        Ok(())
    }

    /// Goes on to the same call again, if that is what is to be done about its failure.
    fn repeat(&mut self, failure: Failure) -> Result<(), Setback> {
        if failure.remedy() != Remedy::Repeat {
            return Err(self.judge(failure));
        }
        self.passing_trouble(&failure);
        self.serve(Duration::ZERO)?;
        self.rest()
    }

    /// Waits until everything that was handed over is delivered.
    fn deliver(&mut self) -> Result<(), Setback> {
        let (mut outstanding, mut since) = (self.producer.outstanding(), Instant::now());
        while outstanding > 0 && !self.producer.has_failed_deliveries() {
            self.serve(LOOK)?;
            let left = self.producer.outstanding();
            if left != outstanding {
                (outstanding, since) = (left, Instant::now());
            } else if since.elapsed() > STALL && self.is_transactional() {
                // Committing waits for the rest too, and says if there is nothing to wait for.
                return Ok(());
            } else if since.elapsed() > LONG_STALL {
                let text = format!("no answer for {} s", LONG_STALL.as_secs());
                self.trouble(&Failure::abort(Code::RequestTimedOut, text));
            }
        }
        if !self.producer.has_failed_deliveries() {
            return Ok(());
        }
        if !self.is_transactional() {
            // All that will fail is to be known before anything is written again.
            while self.producer.outstanding() > 0 {
                self.serve(LOOK)?;
            }
        }
        let failure = self.producer.failed_with(Failure::abort(Code::Fail, "a delivery failed"));
        let failure = self.reason(failure);
        Err(self.judge(failure))
    }
}

/// Hands a record over to the client.
fn send(
    producer: &mut Producer,
    topics: &mut Topics,
    config: &KafkaOutputConfig,
    number: usize,
    record: &Record<'_>,
) -> Result<(), Obstacle> {
    let topic = route::topic(&config.topic, record).map_err(Obstacle::Refused)?;
    let partition = route::partition(config.partition, record);
    let refused =
        |reason: String| Obstacle::Refused(Refused { topic: Some(topic.to_owned()), reason });
    // A fixed topic was looked at in the beginning.
    if partition.is_some() || !matches!(config.topic, TopicChoice::Fixed(_)) {
        topics.check(producer, topic, partition).map_err(|missing| match missing {
            Missing::Refused(reason) => refused(reason),
            Missing::Unknown(code) => Obstacle::Unknown(code),
        })?;
    }
    let mut out: BaseRecord<'_, [u8], [u8], usize> = BaseRecord::with_opaque_to(topic, number);
    out.partition = partition.and_then(|number| i32::try_from(number).ok());
    out.key = if config.key == Kept::Kept { record.key } else { None };
    out.payload = record.value;
    out.timestamp = route::timestamp(config, record);
    out.headers = route::headers(config.headers, record).map_err(refused)?;
    match producer.send(out)? {
        Sent::Taken => Ok(()),
        Sent::Full => Err(Obstacle::Full),
        Sent::Refused(code) => Err(refused(refusal::reason(code))),
    }
}

/// Does with a refused record what the policy says.
fn send_dead_letter(
    producer: &mut Producer,
    topics: &mut Topics,
    config: &KafkaOutputConfig,
    number: usize,
    record: &Record<'_>,
    refused: &Refused,
) -> Result<(), Obstacle> {
    let OnRefused::DeadLetter(dead) = &config.on_refused else { return Ok(()) };
    let refused_too =
        |reason: String| Obstacle::Refused(Refused { topic: Some(dead.clone()), reason });
    topics.check(producer, dead, None).map_err(|missing| match missing {
        Missing::Refused(reason) => refused_too(reason),
        Missing::Unknown(code) => Obstacle::Unknown(code),
    })?;
    let mut out: BaseRecord<'_, [u8], [u8], usize> = BaseRecord::with_opaque_to(dead, number);
    (out.key, out.payload) = (record.key, record.value);
    out.timestamp = route::timestamp(config, record);
    out.headers = Some(route::dead_letter_headers(&refused.text(record), record));
    match producer.send(out)? {
        Sent::Taken => Ok(()),
        Sent::Full => Err(Obstacle::Full),
        Sent::Refused(code) => Err(refused_too(refusal::reason(code))),
    }
}
