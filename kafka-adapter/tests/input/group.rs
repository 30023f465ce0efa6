//! Members of a consumer group: partitions come and go, and every record is handed over.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use lockgate_kafka_adapter::{
    GroupConfig, GroupProtocol, KafkaInput, KafkaInputConfig, ReadMode, StartFrom,
};

use crate::broker::{Sent, Topic};
use crate::harness::{Reading, join, open, refused};

const WAIT: Duration = Duration::from_secs(60);

fn member(topic: &Topic, protocol: GroupProtocol) -> KafkaInputConfig {
    let group = GroupConfig { id: topic.name.clone(), protocol, instance_id: None };
    let mut config = KafkaInputConfig { mode: ReadMode::Group(group), ..topic.follow() };
    let mut set = |name: &str, value: &str| config.properties.insert(name.into(), value.into());
    set("topic.metadata.refresh.interval.ms", "300");
    if protocol != GroupProtocol::Consumer {
        set("session.timeout.ms", "2000");
        set("heartbeat.interval.ms", "200");
        set("max.poll.interval.ms", "2000");
    }
    config
}

fn joined(topic: &Topic, protocol: GroupProtocol) -> Reading {
    let reading = join(KafkaInput::new(member(topic, protocol)));
    reading.extend();
    reading
}

/// What members handed over, each record once: by partition and offset, whose it was.
#[derive(Default)]
struct Union(BTreeMap<(u32, u64), usize>);

impl Union {
    /// Until so many records came; each turn is durable at once.
    fn grow(&mut self, members: &[&Reading], records: usize) {
        let begun = Instant::now();
        while self.0.len() < records {
            assert!(begun.elapsed() < WAIT, "{} of {records} records", self.0.len());
            for (number, member) in members.iter().enumerate() {
                if member.holds_some() {
                    let (got, seek) = member.turn().unwrap();
                    for record in got {
                        let before = self.0.insert((record.partition, record.offset), number);
                        assert_eq!(before, None, "{record:?} came twice");
                    }
                    member.checkpointed(&seek);
                }
            }
            std::thread::yield_now();
        }
    }

    /// The members that gave records from an offset on, by partition.
    fn owners(&self, from: u64) -> BTreeMap<u32, BTreeSet<usize>> {
        let mut owners: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
        for ((partition, offset), member) in &self.0 {
            if *offset >= from {
                owners.entry(*partition).or_default().insert(*member);
            }
        }
        owners
    }
}

fn fill(topic: &Topic, each: usize) {
    let records: Vec<Sent> = (0..4 * each).map(|i| Sent::of(i as u32 % 4, "x")).collect();
    topic.send(&records);
}

/// Two members, one after the other; K19: each partition once lost one batch window at a rebalance.
fn share(protocol: GroupProtocol) {
    let topic = Topic::new("shared", 4);
    fill(&topic, 500);
    let mut union = Union::default();
    let first = joined(&topic, protocol);
    union.grow(&[&first], 2000);
    let second = joined(&topic, protocol);
    fill(&topic, 500);
    union.grow(&[&first, &second], 4000);
    // Until it has its share, or the rest would all go to the first.
    let begun = Instant::now();
    let mut sent = 1000;
    while union.owners(1000).values().flatten().collect::<BTreeSet<_>>().len() < 2 {
        assert!(begun.elapsed() < WAIT, "the second member gets nothing");
        fill(&topic, 50);
        sent += 50;
        union.grow(&[&first, &second], 4 * sent);
    }
    fill(&topic, 100);
    union.grow(&[&first, &second], 4 * (sent + 100));
    let owners = union.owners(sent as u64);
    assert!(owners.values().all(|members| members.len() == 1), "{owners:?}");
    assert_eq!(owners.values().flatten().collect::<BTreeSet<_>>().len(), 2, "{owners:?}");
    drop(second);
    fill(&topic, 100);
    union.grow(&[&first], 4 * (sent + 200));
    let begun = Instant::now();
    let all = (0..4).map(|partition| (partition, sent as u64 + 200)).collect();
    while topic.committed(&topic.name, 4) != all {
        assert!(begun.elapsed() < WAIT, "{:?}", topic.committed(&topic.name, 4));
    }
}

#[test]
fn k19_members_share_partitions_without_losing_or_doubling_a_record() {
    share(GroupProtocol::CooperativeSticky);
}

#[test]
fn k19_eager_members_share_partitions() {
    share(GroupProtocol::Eager);
}

#[test]
fn k19_members_share_partitions_that_the_brokers_deal() {
    share(GroupProtocol::Consumer);
}

/// K24: records between the start and the first fetch were skipped; K10: those of a partition that came later.
#[test]
fn k10_k24_latest_is_a_number_before_anything_is_read() {
    let topic = Topic::new("latest", 1);
    topic.send(&vec![Sent::of(0, "before"); 5]);
    let config = KafkaInputConfig {
        start_from: StartFrom::Latest,
        ..member(&topic, GroupProtocol::CooperativeSticky)
    };
    let reading = join(KafkaInput::new(config));
    reading.extend();
    let begun = Instant::now();
    while topic.committed(&topic.name, 1) != [(0, 5)].into() {
        assert!(begun.elapsed() < WAIT, "{:?}", topic.committed(&topic.name, 1));
    }
    topic.send(&[Sent::of(0, "after")]);
    reading.holds(1).unwrap();
    assert_eq!(reading.turn().unwrap().0[0].offset, 5);
    topic.grow_to(2);
    topic.send(&[Sent::of(1, "first")]);
    reading.holds(1).unwrap();
    let (got, _) = reading.turn().unwrap();
    assert_eq!((got[0].partition, got[0].offset), (1, 0));
}

/// K18, K20: only what is durable is committed, and nothing of what is somebody else's.
#[test]
fn k18_k20_nothing_is_committed_that_is_not_durable() {
    let topic = Topic::new("durable", 1);
    topic.send(&vec![Sent::of(0, "x"); 8]);
    let reading = joined(&topic, GroupProtocol::CooperativeSticky);
    reading.holds(8).unwrap();
    let (got, seek) = reading.turn().unwrap();
    assert_eq!(got.len(), 8);
    assert_eq!(topic.committed(&topic.name, 1), [(0, 0)].into(), "its start, and no more");
    // The member loses everything while it stands still; its records come again.
    reading.freeze(Duration::from_secs(4));
    topic.send(&[Sent::of(0, "y")]);
    let begun = Instant::now();
    let mut again = Vec::new();
    while again.len() < 9 {
        assert!(begun.elapsed() < WAIT, "{again:?}");
        if reading.holds_some() {
            again.extend(reading.turn().unwrap().0.into_iter().map(|got| got.offset));
        }
    }
    assert_eq!(again, (0..9).collect::<Vec<_>>());
    reading.checkpointed(&seek);
    let (_, now) = reading.turn().unwrap();
    assert_eq!(
        topic.committed(&topic.name, 1),
        [(0, 0)].into(),
        "a late checkpoint changes nothing"
    );
    reading.checkpointed(&now);
    let begun = Instant::now();
    while topic.committed(&topic.name, 1) != [(0, 9)].into() {
        assert!(begun.elapsed() < WAIT);
    }
}

/// A process that stood still for longer than its group waits for it.
#[test]
fn a_member_whose_offsets_an_output_commits_is_superseded_when_it_loses_its_partitions() {
    let topic = Topic::new("lost", 1);
    topic.send(&[Sent::of(0, "x")]);
    let input = KafkaInput::new(member(&topic, GroupProtocol::CooperativeSticky));
    let (input, _commits) = input.committed_by_output();
    let reading = join(input);
    reading.freeze(Duration::from_secs(4));
    reading.extend();
    let text = reading.failure();
    assert!(text.contains(&topic.name) && text.contains("other members"), "{text}");
}

#[test]
fn positions_of_another_mode_or_group_are_refused() {
    let topic = Topic::new("modes", 1);
    let assigned = open(KafkaInput::new(topic.follow()), None).unwrap().start();
    let input = || KafkaInput::new(member(&topic, GroupProtocol::CooperativeSticky));
    let of_group = join(input()).start();
    assert!(refused(input(), Some(&assigned)).contains("assigned partitions"));
    assert!(refused(KafkaInput::new(topic.follow()), Some(&of_group)).contains("consumer group"));
    let mut other = of_group.clone();
    other["group"] = "another".into();
    assert!(refused(input(), Some(&other)).contains("another"));
    join(input());
}

/// Tools that show how far a consumer is behind look at the offsets of a group.
#[test]
fn offsets_are_shown_after_a_checkpoint_and_not_before() {
    let topic = Topic::new("lag", 2);
    topic.send(&[Sent::of(0, "x"), Sent::of(1, "x"), Sent::of(1, "x")]);
    let group = Some(topic.name.clone());
    let mode = ReadMode::Assign { partitions: None, offsets_group: group };
    let reading = open(KafkaInput::new(KafkaInputConfig { mode, ..topic.follow() }), None).unwrap();
    reading.extend();
    reading.holds(3).unwrap();
    let step = reading.queue().unwrap();
    assert!(topic.committed(&topic.name, 2).is_empty());
    reading.checkpointed(&step.seek);
    let begun = Instant::now();
    while topic.committed(&topic.name, 2) != [(0, 1), (1, 2)].into() {
        assert!(begun.elapsed() < WAIT);
    }
}

/// Two processes that were given the same instance id: the brokers let the newer one in, and the older one ends.
#[test]
fn of_two_members_with_one_instance_id_the_older_one_is_told_and_ends() {
    let topic = Topic::new("twins", 4);
    fill(&topic, 500);
    let twin = || {
        let mut config = member(&topic, GroupProtocol::CooperativeSticky);
        if let ReadMode::Group(group) = &mut config.mode {
            group.instance_id = Some("worker-1".into());
        }
        let reading = join(KafkaInput::new(config));
        reading.extend();
        reading
    };
    let mut union = Union::default();
    let first = twin();
    union.grow(&[&first], 2000);
    let second = twin();
    let failure = first.failure();
    assert!(failure.contains("group_instance_id"), "{failure}");
    drop(first);
    fill(&topic, 500);
    union.grow(&[&second], 4000);
}

/// L10: lag of a partition that others read by now was once shown for ever.
#[test]
fn l10_a_partition_that_was_given_up_is_seen_no_more() {
    let topic = Topic::new("seen", 2);
    fill(&topic, 10);
    let first = joined(&topic, GroupProtocol::CooperativeSticky);
    Union::default().grow(&[&first], 20);
    first.stands(&[(0, 10, Some(10)), (1, 10, Some(10))]);
    let second = joined(&topic, GroupProtocol::CooperativeSticky);
    let of = |reading: &Reading| reading.partitions_seen();
    let begun = Instant::now();
    while of(&first).len() != 1 || of(&second).len() != 1 {
        assert!(begun.elapsed() < WAIT, "{:?} and {:?}", of(&first), of(&second));
        std::thread::yield_now();
    }
    assert_ne!(of(&first), of(&second));
}
