//! Topics that are compacted: holes are read over, tombstones go on, and a step whose records are gone is not replayed.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{Offset, TopicPartitionList};

use crate::cluster::{Topic, shared};
use crate::rows::Row;
use crate::site::Site;

const WAIT: Duration = Duration::from_secs(60);

/// A compacted topic, and what was written to it.
struct Compacted {
    topic: Topic,
    producer: BaseProducer,
    /// By offset.
    written: Vec<Row>,
}

impl Compacted {
    fn new(purpose: &str) -> Self {
        let topic = Topic::compacted(&shared(), purpose);
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", shared());
        config.set("enable.idempotence", "true").set("linger.ms", "0");
        Self { topic, producer: config.create().unwrap(), written: Vec::new() }
    }

    fn write(&mut self, rows: impl IntoIterator<Item = Row>) {
        for row in rows {
            let mut record: BaseRecord<'_, [u8], [u8]> =
                BaseRecord::to(&self.topic.name).partition(0);
            (record.key, record.payload) = (row.key.as_deref(), row.value.as_deref());
            record.headers = row.owned_headers();
            self.producer.send(record).map_err(|(error, _)| error).unwrap();
            self.written.push(row);
        }
        self.producer.flush(WAIT).unwrap();
    }

    /// The offset of the first record from one on that is still there.
    fn first_from(&self, offset: u64) -> u64 {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", shared()).set("group.id", "lockgate-check");
        config.set("enable.partition.eof", "true").set("fetch.wait.max.ms", "20");
        let consumer: BaseConsumer = config.create().unwrap();
        let mut list = TopicPartitionList::new();
        let from = Offset::Offset(offset as i64);
        list.add_partition_offset(&self.topic.name, 0, from).unwrap();
        consumer.assign(&list).unwrap();
        let begun = Instant::now();
        while begun.elapsed() < WAIT {
            match consumer.poll(Duration::from_millis(100)) {
                None => {}
                Some(Err(KafkaError::PartitionEOF(_))) => return self.written.len() as u64,
                Some(message) => return message.unwrap().offset() as u64,
            }
        }
        panic!("{} cannot be read", self.topic.name);
    }

    /// Waits until the record at an offset is gone. The last segment is never compacted, so more is written.
    fn until_gone(&mut self, offset: u64) {
        let begun = Instant::now();
        while self.first_from(offset) == offset {
            assert!(begun.elapsed() < WAIT, "{} is not compacted", self.topic.name);
            self.write([row("last", Some("of all"))]);
            std::thread::park_timeout(Duration::from_millis(150)); // polls: what the broker does by itself
        }
    }

    fn input(&self, more: &str) -> String {
        let (servers, name) = (shared(), &self.topic.name);
        format!("{{kafka: {{brokers: \"{servers}\", topic: {name}, {more}}}}}")
    }
}

fn row(key: &str, value: Option<&str>) -> Row {
    Row {
        key: Some(key.as_bytes().to_vec()),
        value: value.map(|value| value.as_bytes().to_vec()),
        headers: Vec::new(),
    }
}

/// Records of ten keys that take turns. Nothing of this is left but the last of each key.
fn turns(round: u64) -> impl Iterator<Item = Row> {
    (0..10).map(move |key| row(&format!("key {key}"), Some(&format!("round {round}"))))
}

fn kafka_output(to: &Topic) -> String {
    let (servers, name) = (shared(), &to.name);
    format!("{{kafka: {{brokers: \"{servers}\", topic: {name}, partition: kept}}}}")
}

/// What there is of a topic of one partition, in order.
fn committed(topic: &Topic) -> Vec<Row> {
    let mut rows = Vec::new();
    topic.read_committed(|_, row| rows.push(row));
    rows
}

#[test]
fn k3_a_compacted_topic_is_read_once_over_its_holes_and_written_as_it_is() {
    let mut from = Compacted::new("compacted-from");
    for round in 0..20 {
        from.write(turns(round));
    }
    // A key that is deleted, keys and headers that are no text, an empty value and an empty key.
    let odd = [
        row("key 3", None),
        Row {
            key: Some(vec![0, 0xff, 0xfe]),
            value: None,
            headers: vec![("again".into(), None), ("again".into(), Some(vec![0xc3, 0x28]))],
        },
        row("", Some("")),
    ];
    from.write(odd.clone());
    from.until_gone(0);
    let to = Topic::new(&shared(), "compacted-to", 1, 1);
    let input = from.input("stop_at: end");
    let output = kafka_output(&to);
    let site = Site::new(&format!(
        "name: compacted\ninputs: {{in: {input}}}\n\
         outputs: {{out: {output}, file: {{file: {{path: all.jsonl, format: json}}}}}}\n"
    ));
    let ended = site.lockgate(&["run", "pipeline.yaml", "--record", "take"]);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let text = site.read("all.jsonl");
    let read: Vec<(u64, Row)> = (text.split(|byte| *byte == b'\n'))
        .filter(|line| !line.is_empty())
        .map(Row::of_json)
        .map(|(_, offset, row)| (offset, row))
        .collect();
    for (offset, row) in &read {
        assert_eq!(*row, from.written[*offset as usize], "offset {offset}");
    }
    assert!(read.is_sorted_by(|one, next| one.0 < next.0), "an offset came twice or went back");
    assert!(read.len() < 200, "there are no holes: {} records", read.len());
    // Whatever the brokers did meanwhile, the last of each key was there.
    let mut last: BTreeMap<&[u8], u64> = BTreeMap::new();
    for (offset, row) in (0..).zip(&from.written) {
        last.insert(row.key.as_deref().unwrap(), offset);
    }
    for (key, offset) in last {
        let found = read.iter().any(|(found, _)| *found == offset);
        assert!(found, "{key:?}: the record at {offset} is missing");
    }
    let written = committed(&to);
    assert!(written.iter().eq(read.iter().map(|(_, row)| row)), "{written:?}");
    assert!(odd.iter().all(|row| written.contains(row)), "{written:?}");
    // What the brokers remove later is still in the recording, with its holes.
    let again = format!(
        "name: compacted\ninputs: {{in: {input}}}\n\
         outputs: {{file: {{file: {{path: again.jsonl, format: json}}}}}}\n"
    );
    site.write("again.yaml", again);
    let replayed = site.lockgate(&["replay", "take", "again.yaml"]);
    assert_eq!(replayed.code, 0, "{}", replayed.stderr);
    assert!(site.read("again.jsonl") == text);
}

/// What was written already cannot be made sure of any more: a step is replayed as it was, or not at all.
#[test]
fn k3_a_journaled_step_whose_records_were_compacted_away_is_refused() {
    let mut from = Compacted::new("replayed-from");
    let to = Topic::new(&shared(), "replayed-to", 1, 1);
    let input = from.input("start_from: earliest");
    let output = kafka_output(&to);
    let site = Site::new(&format!(
        "name: replayed\ncheckpoint_interval: 1h\ninputs: {{in: {input}}}\noutputs: {{out: {output}}}\n"
    ));
    let mut running = site.start();
    let mut count = 0;
    for round in 0..5 {
        from.write(turns(round));
        count += 10;
        // What can be seen is journaled.
        assert!(running.until(|| to.committed() == count), "{}", running.stderr());
    }
    assert!(running.kill(), "it had ended by itself");
    // The first records of the next round make those before superfluous.
    from.write(turns(5));
    from.until_gone(0);
    let gone = from.first_from(0);
    assert!(gone > 1, "only the first record is gone");
    let before = committed(&to);
    // Nor does it go on the next time.
    for _ in 0..2 {
        let begun = Instant::now();
        let ended = site.lockgate(&["run", "pipeline.yaml"]);
        assert_eq!(ended.code, 65, "{}", ended.stderr);
        for part in [&*format!("{}[0]", from.topic.name), "journaled step", "offsets 0 to"] {
            assert!(ended.stderr.contains(part), "{part} is not in: {}", ended.stderr);
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "it hung: {:?}", begun.elapsed());
    }
    assert_eq!(committed(&to), before);
}
