//! The properties of a client: ours, what follows from the limits, and what the user adds.
//!
//! Pure, except that the client library is asked whether it knows a property. Not here: connecting.

use lockgate_core::{EndpointError, QueueLimits};
use rdkafka::config::ClientConfig;

use super::lane::{MANY, MOST};
use crate::config::{GroupConfig, GroupProtocol, KafkaInputConfig, ReadMode};
use crate::properties::{refuse_set, refused};

/// What a user may not set, and why.
const FORBIDDEN: [(&str, &str); 12] = [
    ("bootstrap.servers", "it is set by `brokers`"),
    ("metadata.broker.list", "it is set by `brokers`"),
    ("enable.auto.commit", "positions are kept in checkpoints, or with what is written"),
    ("enable.auto.offset.store", "positions are kept in checkpoints, or with what is written"),
    ("auto.offset.reset", "a position that is no longer there is an error, never a silent jump"),
    ("enable.partition.eof", "the end of a partition is found by it"),
    ("allow.auto.create.topics", "a misspelled topic would be created instead of reported"),
    ("statistics.interval.ms", "nobody would read the statistics"),
    ("group.id", "it is set by `group`"),
    ("group.instance.id", "it is set by `group_instance_id`"),
    ("group.protocol", "it is set by `group_protocol`"),
    ("partition.assignment.strategy", "it is set by `group_protocol`"),
];

/// What a member may not set where the brokers deal the partitions, and why.
const SET_BY_BROKERS: [(&str, &str); 1] =
    [("session.timeout.ms", "the brokers set it where they deal the partitions")];

/// The least that an answer may hold of each partition: as large as the batches of Java producers are by default. A
/// larger batch comes only for the first partition of an answer, and then a round over all partitions takes as many
/// answers as there are partitions.
const MIN_ANSWER: u64 = 16 << 10;

/// A request that finds nothing waits so long at the broker: as long as it does, it cannot ask for what it did not name.
const FETCH_WAIT_MS: usize = 50;

/// The broker and the client look at this many partitions for each millisecond that a request which finds nothing
/// waits.
const LOOKED_AT: usize = 20;

/// What the client needs to hold a message, besides its bytes.
const MESSAGE: u64 = 320;

/// Refuses what may not be set, and what the client does not know.
pub(super) fn check(config: &KafkaInputConfig) -> Result<(), EndpointError> {
    let properties = &config.properties;
    refuse_set(properties, &FORBIDDEN)?;
    if let ReadMode::Group(GroupConfig { protocol: GroupProtocol::Consumer, .. }) = config.mode {
        refuse_set(properties, &SET_BY_BROKERS)?;
    }
    let level = properties.get("isolation.level").map(String::as_str);
    if let Some(other) =
        level.filter(|level| !["read_committed", "read_uncommitted"].contains(level))
    {
        return Err(EndpointError::Configuration(format!(
            "properties: isolation.level is read_committed or read_uncommitted, not `{other}`"
        )));
    }
    base(config).create_native_config().map(|_| ()).map_err(refused)
}

/// What every client of an input is made with.
pub(super) fn base(config: &KafkaInputConfig) -> ClientConfig {
    let mut client = ClientConfig::new();
    for (name, value) in [
        ("bootstrap.servers", config.brokers.join(",").as_str()),
        ("client.id", "lockgate"),
        ("isolation.level", "read_committed"),
        ("enable.auto.commit", "false"),
        ("enable.auto.offset.store", "false"),
        ("auto.offset.reset", "error"),
        ("allow.auto.create.topics", "false"),
    ] {
        client.set(name, value);
    }
    config.properties.iter().for_each(|(name, value)| {
        client.set(name, value);
    });
    if let ReadMode::Assign { offsets_group, .. } = &config.mode {
        // Partitions cannot be assigned without a group's name. It is never joined.
        client.set("group.id", offsets_group.as_deref().unwrap_or("lockgate-assigned"));
    }
    client
}

/// What a client reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readers {
    /// All partitions, so many.
    All(usize),
    /// The few of many that are busy.
    Busy,
}

/// What a reading client is made with.
///
/// The client prefetches for each partition apart, so each gets its part of half the budget, which two clients share
/// where there may be two. A message takes about [`MESSAGE`] bytes besides its own, which the client does not count. It
/// asks for more of a partition as long as it holds less than what is set here, and overshoots by one answer, so answers
/// are small too. Small queues are the faster ones.
pub(super) fn reading(
    config: &KafkaInputConfig,
    limits: QueueLimits,
    readers: Readers,
) -> ClientConfig {
    let is_assigned = matches!(config.mode, ReadMode::Assign { .. });
    let (clients, partitions) = match readers {
        Readers::All(partitions) if partitions < MANY || !is_assigned => (1, partitions),
        Readers::All(partitions) => (2, partitions),
        Readers::Busy => (2, MOST),
    };
    let wait = if clients == 1 { 0 } else { partitions / LOOKED_AT };
    let wait = wait.clamp(FETCH_WAIT_MS, 10 * FETCH_WAIT_MS);
    let partitions = partitions.max(1) as u64;
    let part = limits.max_queued_bytes / 2 / clients / partitions;
    let kbytes = (part / 1024).clamp(1, 4096);
    let records = (limits.max_queued_records / partitions).min(part / MESSAGE).clamp(1, 20_000);
    let derived = [
        ("queued.max.messages.kbytes", kbytes.to_string()),
        ("queued.min.messages", records.to_string()),
        ("fetch.message.max.bytes", part.clamp(MIN_ANSWER, 1 << 20).to_string()),
        ("fetch.max.bytes", (limits.max_queued_bytes / 4).clamp(1 << 20, 50 << 20).to_string()),
        ("fetch.queue.backoff.ms", "2".to_owned()),
        ("fetch.wait.max.ms", wait.to_string()),
    ];
    let mut client = base(config);
    for (name, value) in derived {
        if !config.properties.contains_key(name) {
            client.set(name, value);
        }
    }
    match &config.mode {
        ReadMode::Assign { .. } => {
            client.set("enable.partition.eof", "true");
        }
        ReadMode::Group(group) => {
            // The batch call takes the end of a partition for a message, and moves the place from which the
            // library goes on after a rebalance behind the record that comes there next: it would be skipped.
            client.set("enable.partition.eof", "false");
            client.set("group.id", &group.id);
            if let Some(id) = &group.instance_id {
                client.set("group.instance.id", id);
            }
            match group.protocol {
                GroupProtocol::CooperativeSticky => {
                    client.set("partition.assignment.strategy", "cooperative-sticky");
                }
                GroupProtocol::Eager => {
                    client.set("partition.assignment.strategy", "range,roundrobin");
                }
                GroupProtocol::Consumer => {
                    client.set("group.protocol", "consumer");
                }
            }
        }
    }
    client
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::TopicSelection;

    const LIMITS: QueueLimits = QueueLimits { max_queued_records: 10, max_queued_bytes: 64 << 20 };

    fn config(properties: &[(&str, &str)]) -> KafkaInputConfig {
        let topics = TopicSelection::Names(vec!["orders".into()]);
        let mut config = KafkaInputConfig::new(vec!["127.0.0.1:1".into()], topics);
        config.properties =
            properties.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        config
    }

    fn text(properties: &[(&str, &str)]) -> String {
        let config = config(properties);
        check(&config).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn what_may_not_be_set_is_refused_with_the_reason() {
        for (name, why) in FORBIDDEN {
            let text = text(&[(name, "x")]);
            assert!(text.contains(name) && text.contains(why), "{text}");
        }
        assert!(text(&[("isolation.level", "none")]).contains("isolation.level"));
        assert_eq!(text(&[("isolation.level", "read_uncommitted")]), "");
    }

    #[test]
    fn an_unknown_property_is_named_and_a_secret_is_not_shown() {
        let unknown = text(&[("fetch.wiat.max.ms", "5")]);
        assert!(unknown.contains("fetch.wiat.max.ms"), "{unknown}");
        let secret = text(&[("ssl.key.pasword", "hunter2")]);
        assert!(secret.contains("ssl.key.pasword") && !secret.contains("hunter2"), "{secret}");
    }

    fn value(config: &KafkaInputConfig, name: &str, readers: Readers) -> String {
        let limits = QueueLimits { max_queued_records: 1_000_000, ..LIMITS };
        reading(config, limits, readers).get(name).map(str::to_owned).unwrap()
    }

    #[test]
    fn the_budget_is_dealt_out_to_the_partitions_unless_it_is_given() {
        for (readers, kbytes, messages, answer, wait) in [
            (Readers::All(1), "4096", "20000", "1048576", "50"),
            (Readers::All(63), "520", "1664", "532610", "50"),
            (Readers::All(64), "256", "819", "262144", "50"),
            (Readers::All(1000), "16", "52", "16777", "50"),
            (Readers::All(5000), "3", "10", "16384", "250"),
            (Readers::All(50_000), "1", "1", "16384", "500"),
            (Readers::Busy, "1024", "3276", "1048576", "50"),
        ] {
            let value = |name| value(&config(&[]), name, readers);
            assert_eq!(value("queued.max.messages.kbytes"), kbytes, "{readers:?}");
            assert_eq!(value("queued.min.messages"), messages, "{readers:?}");
            assert_eq!(value("fetch.message.max.bytes"), answer, "{readers:?}");
            assert_eq!(value("fetch.wait.max.ms"), wait, "{readers:?}");
        }
        let given = config(&[("queued.max.messages.kbytes", "7")]);
        assert_eq!(value(&given, "queued.max.messages.kbytes", Readers::All(64)), "7");
    }

    /// A member of a group has one client, whatever it reads.
    #[test]
    fn a_member_has_the_whole_budget() {
        let mut config = config(&[]);
        let protocol = GroupProtocol::CooperativeSticky;
        config.mode = ReadMode::Group(GroupConfig { id: "g".into(), protocol, instance_id: None });
        assert_eq!(value(&config, "queued.max.messages.kbytes", Readers::All(64)), "512");
        assert_eq!(value(&config, "fetch.wait.max.ms", Readers::All(5000)), "50");
    }
}
