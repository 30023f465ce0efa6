//! The partitions of a reader: where each is read from, how far it was read, and copying its records.
//!
//! Not here: how much may be read, and what becomes of the records.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lockgate_core::{
    Batch, BatchBuilder, BufferSize, EndpointError, Header, InputConsumer, NewRecord, Partition,
};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{CommitMode, Consumer, RebalanceProtocol};
use rdkafka::error::{KafkaError, KafkaResult, RDKafkaErrorCode as Code};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList, TopicPartitionListElem};

use super::epochs::common_end;
use super::gauges::Gauges;
use super::native::{Arrival, Commits, PartitionQueue, set_last_epoch};
use super::plan::cut;
use super::position::Epoch;
use super::signal::Raised;
use crate::client::Name;
use crate::client::{self, Client, Events, Rebalance};
use crate::waker::Waker;

/// The client is listened to at least so often.
const LISTEN: Duration = Duration::from_millis(500);

/// One partition.
pub(super) struct Part {
    pub(super) partition: Arc<Partition>,
    pub(super) queue: PartitionQueue,
    /// That of the other client, once the partition was moved.
    resting: Option<PartitionQueue>,
    /// Whether the client for busy partitions reads it.
    pub(super) in_lane: bool,
    /// Everything before this offset has been copied, or is known not to be there.
    pub(super) position: u64,
    /// The last record before the position, where its leader's epoch is known.
    pub(super) epoch: Option<Epoch>,
    /// Why the log holds the position no longer, if it was found to be so.
    pub(super) lost: Option<Lost>,
    /// Whether the client reads it.
    pub(super) is_assigned: bool,
    /// Whether the library may take an error for a message that was read, and go on behind it after a rebalance.
    pub(super) is_displaced: bool,
    /// Where the log ended when its end was last seen; records may have come since.
    pub(super) seen_end: Option<u64>,
}

/// Why a position cannot be gone on from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// Other records lie before it than those that were read.
    Truncated,
    /// It lies before the log or behind it.
    OutOfRange,
}

/// Records that were copied, and their offsets.
#[derive(Default)]
pub(super) struct Copied {
    pub(super) batch: Option<Batch>,
    pub(super) offsets: Vec<u64>,
}

impl Part {
    pub(super) fn topic(&self) -> &str {
        &self.partition.source
    }

    pub(super) fn name(&self) -> Name {
        (self.topic().to_owned(), self.number())
    }

    pub(super) fn number(&self) -> u32 {
        self.partition.number.unwrap_or_default()
    }

    /// Copies what was taken from the queue into one batch: as long as `admits` takes each record, and not from
    /// the offset `until` on. What is not copied stays taken.
    ///
    /// # Errors
    /// If the partition cannot be read on. What may pass is reported to `consumer`.
    pub(super) fn copy(
        &mut self,
        until: Option<u64>,
        consumer: &dyn InputConsumer,
        mut admits: impl FnMut(BufferSize) -> bool,
    ) -> Result<Copied, EndpointError> {
        let mut builder = BatchBuilder::new(self.partition.clone());
        let mut offsets = Vec::new();
        let mut spare: Vec<Header<'static>> = Vec::new();
        while until.is_none_or(|until| self.position < until)
            && let Some(arrival) = self.queue.front()
        {
            let record = match arrival {
                Arrival::Record(record) => record,
                Arrival::End(end) => {
                    self.position = self.position.max(end);
                    self.seen_end = Some(end);
                    self.queue.pop();
                    continue;
                }
                Arrival::Failed(code, reason) => {
                    self.is_displaced = true;
                    self.queue.pop();
                    consumer.error(false, self.failure(code, &reason)?);
                    continue;
                }
            };
            let (offset, epoch) = (record.offset, record.leader_epoch);
            if offset < self.position {
                self.queue.pop();
                continue;
            }
            if let Some(until) = until.filter(|until| offset >= *until) {
                self.position = self.position.max(until);
                break;
            }
            let mut headers = spare;
            self.queue.headers(&mut headers);
            let record = NewRecord { headers: &headers, ..record };
            let fits = admits(size(&record)) && builder.push(record).is_ok();
            spare = emptied(headers);
            if !fits {
                break;
            }
            offsets.push(offset);
            self.position = offset + 1;
            self.epoch = epoch.map(|number| Epoch { number, end: offset + 1 });
            self.queue.pop();
        }
        let batch = (!builder.is_empty()).then(|| builder.build());
        Ok(Copied { batch, offsets })
    }

    /// An error of the partition that passes.
    ///
    /// # Errors
    /// The same, if it does not pass.
    fn failure(&mut self, code: Code, reason: &str) -> Result<EndpointError, EndpointError> {
        let (partition, position) = (&self.partition, self.position);
        match code {
            Code::AutoOffsetReset | Code::OffsetOutOfRange => {
                Err(EndpointError::Data(if let Some(common) = common_end(reason) {
                    self.lost = Some(Lost::Truncated);
                    cut(self.topic(), self.number(), position, self.epoch, common)
                } else {
                    self.lost = Some(Lost::OutOfRange);
                    format!(
                        "{partition} cannot be read on from offset {position}: it is no longer in the log ({reason})"
                    )
                }))
            }
            Code::BrokerTransportFailure
            | Code::AllBrokersDown
            | Code::OperationTimedOut
            | Code::RequestTimedOut
            | Code::NetworkException
            | Code::LeaderNotAvailable
            | Code::NotLeaderForPartition
            | Code::ReplicaNotAvailable
            | Code::KafkaStorageError
            | Code::UnknownLeaderEpoch
            | Code::FencedLeaderEpoch
            | Code::OffsetNotAvailable
            // What a broker says that has stumbled over itself. The next answer is another one.
            | Code::Unknown
            | Code::TopicAuthorizationFailed => Ok(EndpointError::Unavailable {
                what: format!("reading {partition} from offset {position} on"),
                source: reason.into(),
            }),
            code => Err(EndpointError::Data(format!(
                "{partition} cannot be read on from offset {position}: {reason} ({code:?})"
            ))),
        }
    }
}

/// As [`Batch::bytes`] counts it.
fn size(record: &NewRecord<'_>) -> BufferSize {
    let field = |field: Option<&[u8]>| field.map_or(0, <[u8]>::len);
    let headers = record.headers.iter().map(|header| header.name.len() + field(header.value));
    let bytes = field(record.key) + field(record.value) + headers.sum::<usize>();
    BufferSize { records: 1, bytes: bytes as u64 }
}

/// The same memory without what it borrowed.
fn emptied(mut headers: Vec<Header<'_>>) -> Vec<Header<'static>> {
    headers.clear();
    headers.into_iter().map(|_| Header { name: b"", value: None }).collect()
}

/// All partitions of a reader, which are numbered from 0 in the order in which they came, and the client that
/// reads them.
pub(super) struct Source {
    /// Before the client: their queues are gone before it is.
    pub(super) parts: Vec<Part>,
    numbers: BTreeMap<Name, usize>,
    client: Arc<Client>,
    lane: Option<Lane>,
    /// What has come since it was looked.
    pub(super) raised: Raised,
    waker: Waker,
    /// Set when a client has something to say.
    speaks: Arc<AtomicBool>,
    listened: Instant,
    /// The group that was joined, if one was.
    group: Option<String>,
    gauges: Arc<Gauges>,
}

/// A client for busy partitions, which has nothing to do with the quiet ones.
struct Lane {
    config: ClientConfig,
    /// Made when it is first needed.
    client: Option<Arc<Client>>,
    look: Duration,
    looked: Instant,
}

/// What has to be waited for when a partition is moved: that the client begins to ask whether the log is still the same.
const MOVE: Duration = Duration::from_secs(1);

/// The client, which says when it has something to say.
fn speaking(mut client: Client, speaks: &Arc<AtomicBool>, waker: &Waker) -> Arc<Client> {
    let (flag, wakes) = (speaks.clone(), waker.clone());
    client.set_nonempty_callback(move || {
        flag.store(true, Ordering::Release);
        wakes.wake();
    });
    Arc::new(client)
}

impl Source {
    pub(super) fn new(client: Client, waker: Waker) -> Self {
        let speaks = Arc::new(AtomicBool::new(true));
        let (client, listened) = (speaking(client, &speaks, &waker), Instant::now());
        let (parts, numbers) = (Vec::new(), BTreeMap::new());
        let gauges = Arc::new(Gauges::new(&client));
        Self {
            parts,
            numbers,
            client,
            lane: None,
            raised: Raised::default(),
            waker,
            speaks,
            listened,
            group: None,
            gauges,
        }
    }

    /// Busy partitions may be read by a client of their own, made with `config`; which ones is looked at every `look`.
    pub(super) fn with_lane(mut self, config: ClientConfig, look: Duration) -> Self {
        self.lane = Some(Lane { config, client: None, look, looked: Instant::now() });
        self
    }

    /// Whether it is time to look which partitions are busy.
    pub(super) fn look_is_due(&mut self) -> bool {
        let Some(lane) = &mut self.lane else { return false };
        let is_due = lane.looked.elapsed() >= lane.look;
        if is_due {
            lane.looked = Instant::now();
        }
        is_due
    }

    /// From now on the client for busy partitions reads these, or, unless they go `into` its lane, the one for all does:
    /// each from its place on. What was fetched and not copied is fetched again.
    pub(super) fn change_lane(
        &mut self,
        indexes: &[usize],
        into: bool,
    ) -> Result<(), EndpointError> {
        let Some(lane) = &mut self.lane else { return Ok(()) };
        if indexes.is_empty() {
            return Ok(());
        }
        let busy = match &lane.client {
            Some(client) => client.clone(),
            None => {
                let client = speaking(client::create(&lane.config)?, &self.speaks, &self.waker);
                self.gauges.ask(&client);
                lane.client.insert(client).clone()
            }
        };
        let (from, to) = if into { (&self.client, &busy) } else { (&busy, &self.client) };
        let (mut left, mut joined) = (TopicPartitionList::new(), TopicPartitionList::new());
        let mut after = TopicPartitionList::new();
        for index in indexes {
            let part = &mut self.parts[*index];
            let (topic, number) = (part.partition.source.as_str(), part.number());
            left.add_partition(topic, number as i32);
            let place = client::at(part.position);
            client::add(&mut joined, topic, number, place).map_err(refused)?;
            if let Some(Epoch { number: epoch, end }) = part.epoch {
                client::add(&mut after, topic, number, client::at(end)).map_err(refused)?;
                set_last_epoch(&mut after, epoch);
            }
            let queue = match part.resting.take() {
                Some(queue) => queue,
                None => {
                    PartitionQueue::new(to, topic, number, *index, (&self.raised, &self.waker))?
                }
            };
            part.queue.clear();
            part.resting = Some(std::mem::replace(&mut part.queue, queue));
            (part.in_lane, part.is_displaced) = (into, false);
        }
        let moved: Vec<_> = indexes.iter().map(|index| self.parts[*index].name()).collect();
        tracing::debug!(?moved, into_lane = into, "partitions are read by another client");
        from.incremental_unassign(&left).map_err(refused)?;
        to.incremental_assign(&joined).map_err(refused)?;
        if after.count() > 0 {
            // As after a start (`read_after`). What cannot be asked now shows when records are read.
            let asked = to.seek_partitions(after, MOVE).map_err(refused)?;
            for part in asked.elements() {
                if let Err(error) = part.error() {
                    tracing::debug!("{}[{}]: {error}", part.topic(), part.partition());
                }
            }
        }
        Ok(())
    }

    /// What shows people where the partitions stand.
    pub(super) fn gauges(&self) -> Arc<Gauges> {
        self.gauges.clone()
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }

    /// Joins the consumer group.
    pub(super) fn subscribe(
        &mut self,
        group: &str,
        topics: &[String],
    ) -> Result<(), EndpointError> {
        self.group = Some(group.to_owned());
        let topics: Vec<&str> = topics.iter().map(String::as_str).collect();
        self.client.subscribe(&topics).map_err(|error| {
            EndpointError::Configuration(format!(
                "topics: {topics:?} cannot be subscribed to: {error}"
            ))
        })
    }

    /// Whether others may own what the group had given to this member.
    pub(super) fn is_lost(&self) -> bool {
        self.client.assignment_lost()
    }

    /// The partition begins anew at `offset`; nothing of before is left.
    pub(super) fn start_at(&mut self, index: usize, offset: u64) {
        let part = &mut self.parts[index];
        part.queue.clear();
        (part.position, part.is_assigned, part.seen_end) = (offset, true, None);
        part.epoch = None;
    }

    /// Makes the library go on at our own places, where it may have got them wrong.
    pub(super) fn put_right(&mut self) -> Result<(), EndpointError> {
        if !self.parts.iter().any(|part| part.is_displaced && part.is_assigned) {
            return Ok(());
        }
        let displaced = self.parts.iter_mut().filter(|part| part.is_displaced && part.is_assigned);
        let places = displaced.map(|part| {
            part.is_displaced = false;
            part.queue.clear();
            let part = &*part;
            (part.topic(), part.number(), part.position)
        });
        let list = client::offsets(places).map_err(unanswered)?;
        // Without waiting: the library does it before it fetches again.
        self.client.seek_partitions(list, Duration::ZERO).map_err(unanswered).map(drop)
    }

    /// Answers the group: these partitions are read, each from its place on.
    pub(super) fn answer_assign(
        &self,
        names: &[Name],
        places: &BTreeMap<Name, u64>,
    ) -> Result<(), EndpointError> {
        let mut list = TopicPartitionList::new();
        for name in names {
            let offset = places.get(name).map_or(Offset::Beginning, |offset| client::at(*offset));
            client::add(&mut list, &name.0, name.1, offset).map_err(unanswered)?;
        }
        let answered = match self.client.rebalance_protocol() {
            RebalanceProtocol::Cooperative => self.client.incremental_assign(&list),
            _ => self.client.assign(&list),
        };
        answered.map_err(unanswered)
    }

    /// Answers the group: these partitions are given up; `None`: all.
    pub(super) fn answer_revoke(&mut self, names: Option<&[Name]>) -> Result<(), EndpointError> {
        let given_up = |part: &Part| names.is_none_or(|names| names.contains(&part.name()));
        let mut list = TopicPartitionList::new();
        for part in self.parts.iter_mut().filter(|part| part.is_assigned && given_up(part)) {
            list.add_partition(&part.partition.source, part.number() as i32);
            part.is_assigned = false;
        }
        let answered = match self.client.rebalance_protocol() {
            RebalanceProtocol::Cooperative => self.client.incremental_unassign(&list),
            _ => self.client.unassign(),
        };
        answered.map_err(unanswered)
    }

    /// For commits that nobody waits for.
    pub(super) fn commits(&self) -> Result<Commits, EndpointError> {
        let none = || EndpointError::Bug("the Kafka client gives no queue for commits".into());
        Commits::new(&self.client).ok_or_else(none)
    }

    /// Commits offsets and waits until they are.
    pub(super) fn commit_now<'a>(
        &self,
        offsets: impl Iterator<Item = (&'a str, u32, u64)>,
    ) -> KafkaResult<()> {
        self.client.commit(&client::offsets(offsets)?, CommitMode::Sync)
    }

    /// Adds a partition that will be read from `position`; its place.
    pub(super) fn add(
        &mut self,
        topic: &str,
        number: u32,
        position: u64,
    ) -> Result<usize, EndpointError> {
        let queue = PartitionQueue::new(
            &self.client,
            topic,
            number,
            self.parts.len(),
            (&self.raised, &self.waker),
        )?;
        let partition = Arc::new(Partition { source: topic.to_owned(), number: Some(number) });
        self.numbers.insert((topic.to_owned(), number), self.parts.len());
        self.parts.push(Part {
            partition,
            queue,
            resting: None,
            in_lane: false,
            position,
            epoch: None,
            lost: None,
            is_assigned: false,
            is_displaced: false,
            seen_end: None,
        });
        Ok(self.parts.len() - 1)
    }

    pub(super) fn find(&self, topic: &str, number: u32) -> Option<usize> {
        self.numbers.get(&(topic.to_owned(), number)).copied()
    }

    /// Makes the client read partitions, each from an offset on. Those that it reads already and that have come
    /// no further go on.
    pub(super) fn read_from(&mut self, places: &[(usize, u64)]) -> Result<(), EndpointError> {
        let (mut leave, mut join) = (TopicPartitionList::new(), TopicPartitionList::new());
        let mut left = Vec::new();
        for (index, offset) in places {
            let part = &mut self.parts[*index];
            if part.is_assigned && part.position <= *offset {
                part.position = *offset;
                continue;
            }
            let (topic, number) = (part.partition.source.clone(), part.number() as i32);
            if part.is_assigned {
                leave.add_partition(&topic, number);
                left.push(*index);
            }
            client::add(&mut join, &topic, part.number(), client::at(*offset)).map_err(
                |error| {
                    EndpointError::Bug(format!(
                        "{topic}[{number}] cannot be read from {offset}: {error}"
                    ))
                },
            )?;
            (part.position, part.is_assigned, part.seen_end) = (*offset, true, None);
        }
        if leave.count() > 0 {
            self.client.incremental_unassign(&leave).map_err(refused)?;
            left.into_iter().for_each(|index| self.parts[index].queue.clear());
        }
        if join.count() > 0 {
            self.client.incremental_assign(&join).map_err(refused)?;
        }
        Ok(())
    }

    /// Makes the client read partitions that it does not read yet, each after its last record, once it knows that
    /// this is the one that its log holds there. Their positions stay.
    pub(super) fn read_after(
        &mut self,
        places: &[(usize, Epoch)],
        patience: Duration,
    ) -> Result<(), EndpointError> {
        let (mut list, mut after) = (TopicPartitionList::new(), TopicPartitionList::new());
        for (index, Epoch { number, end }) in places {
            let part = &mut self.parts[*index];
            let (topic, partition) = (&part.partition.source, part.number());
            for list in [&mut list, &mut after] {
                client::add(list, topic, partition, client::at(*end)).map_err(refused)?;
            }
            set_last_epoch(&mut after, *number);
            part.is_assigned = true;
        }
        self.client.incremental_assign(&list).map_err(refused)?;
        // The library asks for sure only where it is told to go elsewhere, not where it begins.
        let after = self.client.seek_partitions(after, patience).map_err(refused)?;
        after.elements().iter().try_for_each(TopicPartitionListElem::error).map_err(refused)
    }

    /// The client reads the partition no longer.
    pub(super) fn leave(&mut self, index: usize) -> Result<(), EndpointError> {
        let part = &mut self.parts[index];
        part.is_assigned = false;
        part.queue.clear();
        let mut list = TopicPartitionList::new();
        list.add_partition(&part.partition.source, part.number() as i32);
        self.client.incremental_unassign(&list).map_err(refused)
    }

    /// The client is of no use any more.
    fn failed(&self, code: Code, text: String) -> EndpointError {
        let what = match (code, &self.group) {
            (Code::FencedInstanceId, Some(group)) => format!(
                "reading as a member of consumer group {group}: another process has joined it with the same \
                 group_instance_id, and this one stops. Give each process an id of its own"
            ),
            _ => "reading from Kafka".to_owned(),
        };
        EndpointError::Unavailable { what, source: text.into() }
    }

    /// Lets the client tell what happened besides records: outages are reported, once each. Gives what the group
    /// wants.
    ///
    /// # Errors
    /// If the client has failed for good.
    pub(super) fn listen(
        &mut self,
        consumer: &dyn InputConsumer,
    ) -> Result<Vec<Rebalance>, EndpointError> {
        if !self.speaks.swap(false, Ordering::AcqRel) && self.listened.elapsed() < LISTEN {
            return Ok(Vec::new());
        }
        self.listened = Instant::now();
        if let Some(client) = self.lane.as_ref().and_then(|lane| lane.client.as_ref()) {
            if let Some((code, text)) = client.client().fatal_error() {
                return Err(self.failed(code, text));
            }
            let Events { reports, stray, .. } = client::events(client);
            if let Some(stray) = stray {
                return Err(came_astray(&stray));
            }
            // The other one has the same to say.
            reports.iter().for_each(|(code, text)| tracing::debug!(?code, "{text}"));
        }
        // It is not always among what is reported.
        if let Some((code, text)) = self.client.client().fatal_error() {
            return Err(self.failed(code, text));
        }
        let Events { reports, stray, rebalances } = client::events(&self.client);
        if let Some(stray) = stray {
            return Err(came_astray(&stray));
        }
        let mut reason = None;
        for (code, text) in reports {
            match code {
                Code::GroupAuthorizationFailed => {
                    let what = format!(
                        "reading as a member of consumer group {}: the right Read on the group is missing",
                        self.group.as_deref().unwrap_or_default()
                    );
                    return Err(EndpointError::Unavailable { what, source: text.into() });
                }
                // Said once for each time that the last connection is lost.
                Code::AllBrokersDown | Code::Authentication | Code::SaslAuthenticationFailed => {
                    let source = reason.take().unwrap_or(text).into();
                    let what = "no Kafka broker can be reached".to_owned();
                    consumer.error(false, EndpointError::Unavailable { what, source });
                }
                _ => {
                    tracing::debug!(?code, "{text}");
                    reason = Some(text);
                }
            }
        }
        Ok(rebalances)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.gauges.close();
        self.client.context().close();
        // A wish of the group that was not answered would keep the client from closing.
        if let Err(error) = self.answer_revoke(None) {
            tracing::debug!("{error}");
        }
    }
}

fn came_astray(record: &str) -> EndpointError {
    EndpointError::Bug(format!("the record of {record} came in a queue that is not its own"))
}

fn refused(error: KafkaError) -> EndpointError {
    EndpointError::Bug(format!("the Kafka client does not take partitions: {error}"))
}

fn unanswered(error: KafkaError) -> EndpointError {
    EndpointError::Bug(format!("the Kafka client refuses an answer to its group: {error}"))
}
