//! What comes out is what was sent.

use lockgate_core::{QueueLimits, TimestampKind};
use lockgate_kafka_adapter::{KafkaInput, KafkaInputConfig};

use crate::broker::{Sent, Topic};
use crate::harness::{LIMITS, Step, offsets, open, open_with, read_all};

/// K5, K7: tombstones and headers were once decoded, overwritten or taken for damage.
#[test]
fn k5_k7_keys_values_and_headers_are_byte_exact() {
    let topic = Topic::new("fields", 1);
    let fields = [None, Some(Vec::new()), Some(b"\xff\0\xfe".to_vec())];
    let mut sent = Vec::new();
    for key in &fields {
        for value in &fields {
            sent.push(Sent { key: key.clone(), value: value.clone(), ..Sent::default() });
        }
    }
    let names = ["h", "h", "", "\u{e9}", "h"];
    let values = fields.iter().cycle().cloned();
    let headers = names.iter().map(|name| (*name).to_owned()).zip(values).collect();
    sent.push(Sent { headers, ..Sent::of(0, "with headers") });
    topic.send(&sent);
    let read = read_all(KafkaInput::new(topic.read()));
    assert_eq!(read.len(), sent.len());
    for (got, sent) in read.into_iter().zip(sent) {
        assert_eq!((got.key, got.value), (sent.key, sent.value));
        let headers = sent.headers.into_iter().map(|(name, value)| (name.into_bytes(), value));
        assert_eq!(got.headers, headers.collect::<Vec<_>>());
    }
}

#[test]
fn timestamps_say_who_set_them() {
    let appended = Topic::with("appended", 1, &[("message.timestamp.type", "LogAppendTime")]);
    // Such an old record would be deleted at once.
    let created = Topic::with("created", 1, &[("retention.ms", "-1")]);
    for (topic, kind) in [(&appended, TimestampKind::LogAppend), (&created, TimestampKind::Create)]
    {
        topic.send(&[Sent { timestamp: Some(1_700_000_000_000), ..Sent::of(0, "x") }]);
        let reading = open(KafkaInput::new(topic.read()), None).unwrap();
        reading.extend();
        let steps = reading.to_the_end().unwrap();
        let record = steps[0].batches[0].iter().next().unwrap();
        let timestamp = record.timestamp.unwrap();
        assert_eq!(timestamp.kind, kind);
        assert_eq!(timestamp.ms == 1_700_000_000_000, kind == TimestampKind::Create);
        assert_eq!(record.leader_epoch, Some(0));
    }
}

/// K1, K4: reading to the end once waited for ever for the record at a marker's offset.
#[test]
fn k1_k4_markers_and_aborted_records_end_like_others() {
    let topic = Topic::new("transactions", 5);
    let producer = Topic::producer(true);
    let of =
        |partition, n: u32| -> Vec<Sent> { (0..n).map(|_| Sent::of(partition, "x")).collect() };
    // 0: a committed tail, 1: an aborted one, 2: only aborted, 3: a long run of aborted in the middle, 4: empty.
    topic.transact(&producer, &[of(0, 3), of(1, 2), of(3, 1)].concat(), true);
    topic.transact(&producer, &[of(1, 5), of(2, 5)].concat(), false);
    for _ in 0..20 {
        topic.transact(&producer, &of(3, 100), false);
    }
    topic.transact(&producer, &of(3, 2), true);
    let last = 2 + 20 * 101;
    let expected = [(0, vec![0, 1, 2]), (1, vec![0, 1]), (3, vec![0, last, last + 1])];
    let reading = open(KafkaInput::new(topic.read()), None).unwrap();
    reading.extend();
    let steps = reading.to_the_end().unwrap();
    let read: Vec<_> = steps.iter().flat_map(Step::records).collect();
    assert_eq!(offsets(&read), expected.into());
    // Resumed at the end there is nothing more, and that is noticed too.
    let seek = &steps.last().unwrap().seek;
    let reading = open(KafkaInput::new(topic.read()), Some(seek)).unwrap();
    reading.extend();
    assert!(reading.to_the_end().unwrap().is_empty());
    // Uncommitted reading sees all of them.
    let mut all = topic.read();
    all.properties.insert("isolation.level".into(), "read_uncommitted".into());
    assert_eq!(read_all(KafkaInput::new(all)).len(), 3 + 7 + 5 + 2003);
}

/// K8: a record over the fetch size was once a silent stall.
#[test]
fn k8_a_record_larger_than_every_limit_is_read_alone() {
    let large = 3 << 20;
    let topic = Topic::with("large", 2, &[("max.message.bytes", "8388608")]);
    let producer = Topic::producer(false);
    topic.send_by(&producer, &[Sent::of(0, "before"), Sent::of(1, "beside")]);
    let mut config = rdkafka::ClientConfig::new();
    config.set("bootstrap.servers", crate::broker::brokers()).set("message.max.bytes", "8000000");
    topic.send_by(&config.create().unwrap(), &[Sent::of(0, vec![b'x'; large])]);
    topic.send_by(&producer, &[Sent::of(0, "after")]);
    let limits = QueueLimits { max_queued_records: 100, max_queued_bytes: 1000 };
    let input = KafkaInput::new(topic.read());
    let reading = open_with(input, None, limits, 100).unwrap();
    reading.extend();
    let steps = reading.to_the_end().unwrap();
    let read: Vec<_> = steps.iter().flat_map(Step::records).collect();
    let values = read.iter().filter(|got| got.partition == 0).map(|got| got.value.clone().unwrap());
    let lengths: Vec<usize> = values.map(|value| value.len()).collect();
    assert_eq!(lengths, [6, large, 5]);
    assert_eq!(read.len(), 4);
}

#[test]
fn limits_hold_for_each_partition_and_over_all() {
    let topic = Topic::new("limits", 2);
    let sent: Vec<Sent> =
        (0..2000u32).map(|i| Sent::of(u32::from(i % 4 == 0), [b'x'; 10])).collect();
    topic.send(&sent);
    let check = |per_partition: u32, records: u64, bytes: u64, held: u64| {
        let max_pending_records = per_partition.try_into().unwrap();
        let config = KafkaInputConfig { max_pending_records, ..topic.read() };
        let limits = QueueLimits { max_queued_records: records, max_queued_bytes: bytes };
        let reading = open_with(KafkaInput::new(config), None, limits, 70).unwrap();
        reading.extend();
        reading.holds(held).unwrap();
        let most = usize::try_from(per_partition).unwrap();
        let mut count = 0;
        for step in reading.to_the_end().unwrap() {
            let records = step.records();
            assert!(offsets(&records).values().all(|offsets| offsets.len() <= most));
            count += records.len();
        }
        assert_eq!(count, 2000);
    };
    // What can be held is reached, and the protocol objects when more is.
    check(30, 1000, 1 << 20, 60);
    check(1000, 37, 1 << 20, 37);
    // Beyond half of the bytes what a record takes besides its own counts too.
    check(1000, 1000, 105, 5);
}

#[test]
fn a_paused_reader_reads_no_further_and_hands_over_what_it_has() {
    let topic = Topic::new("paused", 1);
    topic.send(&[Sent::of(0, "one"), Sent::of(0, "two")]);
    let reading = open(KafkaInput::new(topic.follow()), None).unwrap();
    reading.extend();
    reading.holds(2).unwrap();
    reading.pause();
    topic.send(&[Sent::of(0, "three")]);
    assert_eq!(reading.queue().unwrap().records().len(), 2);
    assert_eq!(reading.queue().unwrap().records().len(), 0);
    reading.extend();
    assert_eq!(reading.records(1)[0].value.as_deref(), Some(&b"three"[..]));
    assert!(reading.errors().is_empty(), "{:?}", reading.errors());
}

/// Also while it is paused, and before it has read anything: then nothing is fetched that could tell.
#[test]
fn where_it_stands_is_seen_by_those_who_watch() {
    let topic = Topic::new("watched", 2);
    topic.send(&[Sent::of(0, "one"), Sent::of(0, "two"), Sent::of(1, "one")]);
    let (connect, refresh) =
        (std::time::Duration::from_secs(15), std::time::Duration::from_millis(100));
    let reading = open(KafkaInput::new(topic.follow()).timed(connect, refresh), None).unwrap();
    reading.stands(&[(0, 0, Some(2)), (1, 0, Some(1))]);
    reading.extend();
    reading.holds(3).unwrap();
    reading.stands(&[(0, 0, Some(2)), (1, 0, Some(1))]);
    reading.records(3);
    reading.stands(&[(0, 2, Some(2)), (1, 1, Some(1))]);
    reading.pause();
    reading.queue().unwrap();
    topic.send(&[Sent::of(1, "two"), Sent::of(1, "three")]);
    reading.stands(&[(0, 2, Some(2)), (1, 1, Some(3))]);
}

/// Steps of bounded size take from every partition.
#[test]
fn no_partition_starves() {
    let topic = Topic::new("fair", 4);
    let sent: Vec<Sent> = (0..400).map(|i| Sent::of(i % 4, "x")).collect();
    topic.send(&sent);
    let reading = open_with(KafkaInput::new(topic.read()), None, LIMITS, 40).unwrap();
    reading.extend();
    reading.holds(400).unwrap();
    for step in reading.to_the_end().unwrap() {
        let shares: Vec<usize> = offsets(&step.records()).values().map(Vec::len).collect();
        assert_eq!(shares, [10, 10, 10, 10]);
    }
}

/// K10: partitions that were added later were once read from their end.
#[test]
fn k10_a_partition_added_while_running_is_read_from_its_beginning() {
    let topic = Topic::new("grows", 1);
    topic.send(&[Sent::of(0, "old")]);
    let (connect, refresh) =
        (std::time::Duration::from_secs(15), std::time::Duration::from_millis(100));
    let reading = open(KafkaInput::new(topic.follow()).timed(connect, refresh), None).unwrap();
    reading.extend();
    assert_eq!(reading.records(1)[0].partition, 0);
    topic.grow_to(3);
    topic.send(&[Sent::of(1, "first"), Sent::of(2, "first"), Sent::of(2, "second")]);
    let read = reading.records(3);
    assert_eq!(offsets(&read), [(1, vec![0]), (2, vec![0, 1])].into());
}
