//! How long a record is on its way at a rate that leaves the machine nearly idle.
//!
//! Of lockgate: from the record's arrival in the adapter to its step's having been written, journal included, by its
//! own histogram. Of a bare consumer: from being sent to being polled. These are two parts of a record's way, not the
//! same part twice, so there is no ratio.

use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rdkafka::producer::{BaseProducer, Producer};
use serde_json::Value as JsonValue;

use super::TO_NULL;
use crate::broker::{self, PARTITIONS, Topic};
use crate::report::Row;
use crate::rounds::{Contestant, in_turn};
use crate::running::Running;
use crate::site::Site;
use crate::yardstick::stamp;

const PER_SECOND: u64 = 10_000;
const BYTES: usize = 100;
/// Records to one partition before it is the turn of the next.
const BATCH: u64 = 20;
/// Of p99.
const AIM_MS: f64 = 10.0;

pub(super) fn measure(site: &Site) -> Result<Vec<Row>> {
    let seconds = site.scaled(15).max(2);
    let records = PER_SECOND * seconds;
    // The other quantile of each round, those of the warm-up included.
    let (mut ours_p50, mut theirs_p50) = (Vec::new(), Vec::new());
    let found = in_turn(
        site,
        vec![
            Contestant::new("lockgate, p99 in ms", || {
                let (p50, p99) = lockgate(site, records)?;
                ours_p50.push(p50);
                Ok(p99)
            }),
            Contestant::new("bare consumer, p99 in ms", || {
                let (p50, p99) = bare(site, records)?;
                theirs_p50.push(p50);
                Ok(p99)
            }),
        ],
    )?;
    let counted = |values: &[f64]| crate::spread::Spread::of(values[1..].to_vec());
    let case = |what: &str| format!("{what}, {PER_SECOND} records/s for {seconds} s");
    let told = |what, values| Row::told("latency", case(what), "ms", values);
    Ok(vec![
        told("arrival to written step, p50", counted(&ours_p50)),
        told("arrival to written step, p99", found[0].clone()).below(AIM_MS),
        told("bare consumer, sent to polled, p50", counted(&theirs_p50)),
        told("bare consumer, sent to polled, p99", found[1].clone()),
    ])
}

fn lockgate(site: &Site, records: u64) -> Result<(f64, f64)> {
    let topic = Topic::new("latency", PARTITIONS)?;
    let sender = Sender::new(&topic)?;
    let inputs = format!(
        "inputs: {{in: {{kafka: {{brokers: \"{}\", topic: {}}}}}}}\n",
        broker::servers()?,
        topic.name
    );
    let pipeline = site.pipeline("latency", &format!("{inputs}{TO_NULL}"))?;
    let state = site.gone("state")?;
    let mut running = Running::start(site, &pipeline, &state)?;
    running.until_through(u64::from(PARTITIONS))?;
    sender.send(records)?;
    running.until_through(records + u64::from(PARTITIONS))?;
    let buckets = buckets(&running.metrics()?)?;
    running.kill()?;
    Ok((1e3 * quantile(&buckets, 0.5), 1e3 * quantile(&buckets, 0.99)))
}

fn bare(site: &Site, records: u64) -> Result<(f64, f64)> {
    let topic = Topic::new("latency", PARTITIONS)?;
    let sender = Sender::new(&topic)?;
    let mut command = site.itself(["yardstick", "arrivals", &topic.name, &records.to_string()]);
    let mut child = command.stdout(Stdio::piped()).spawn()?;
    let mut said = BufReader::new(child.stdout.take().context("it has no output")?);
    let mut line = String::new();
    said.read_line(&mut line)?;
    ensure!(line.trim() == "ready", "the bare consumer said {line:?}");
    sender.send(records)?;
    let mut rest = String::new();
    said.read_to_string(&mut rest)?;
    ensure!(child.wait()?.success(), "the bare consumer failed");
    let said: JsonValue = serde_json::from_str(&rest)?;
    let value = |name: &str| said[name].as_f64().with_context(|| format!("there is no {name}"));
    Ok((value("p50")?, value("p99")?))
}

/// Sends at an even rate.
struct Sender<'a> {
    topic: &'a str,
    producer: BaseProducer,
}

impl<'a> Sender<'a> {
    /// Sends one record to each partition, from which a reader sees that it is connected.
    fn new(topic: &'a Topic) -> Result<Self> {
        let mut config = broker::client()?;
        config.set("linger.ms", "1");
        let (topic, producer): (_, BaseProducer) = (topic.name.as_str(), config.create()?);
        for partition in 0..i32::try_from(PARTITIONS)? {
            broker::send(&producer, topic, partition, &[0; BYTES])?;
        }
        producer.flush(Duration::from_secs(30))?;
        Ok(Self { topic, producer })
    }

    fn send(&self, records: u64) -> Result<()> {
        let begun = Instant::now();
        for record in 0..records {
            let due = Duration::from_micros(record * 1_000_000 / PER_SECOND);
            if let Some(early) = due.checked_sub(begun.elapsed()).filter(|early| !early.is_zero()) {
                self.producer.poll(Duration::ZERO);
                thread::sleep(early);
            }
            let mut value = [0; BYTES];
            value[..8].copy_from_slice(&stamp());
            // As producers deal out records without a key: a batch to each partition in turn.
            let partition = (record / BATCH % u64::from(PARTITIONS)) as i32;
            broker::send(&self.producer, self.topic, partition, &value)?;
        }
        self.producer.flush(Duration::from_secs(30))?;
        Ok(())
    }
}

/// The upper ends of the buckets in seconds, each with how many were not longer.
fn buckets(metrics: &str) -> Result<Vec<(f64, f64)>> {
    let lines =
        metrics.lines().filter(|line| line.starts_with("lockgate_input_latency_seconds_bucket"));
    let found: Option<Vec<(f64, f64)>> = lines
        .map(|line| {
            let (_, rest) = line.split_once("le=\"")?;
            let (bound, rest) = rest.split_once('"')?;
            Some((bound.parse().ok()?, rest.rsplit(' ').next()?.parse().ok()?))
        })
        .collect();
    found.filter(|found| !found.is_empty()).context("the metrics have no latency")
}

/// As `histogram_quantile` of Prometheus: evenly spread within a bucket.
fn quantile(buckets: &[(f64, f64)], share: f64) -> f64 {
    let rank = buckets.last().map_or(0.0, |(_, all)| all * share);
    let (mut from, mut below) = (0.0, 0.0);
    for (bound, count) in buckets {
        if *count >= rank && bound.is_finite() {
            let part = if *count > below { (rank - below) / (count - below) } else { 1.0 };
            return from + (bound - from) * part;
        }
        if bound.is_finite() {
            (from, below) = (*bound, *count);
        }
    }
    from
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_come_from_the_buckets_of_the_metrics() {
        let metrics = "other 1\nlockgate_input_latency_seconds_bucket{input=\"in\",le=\"0.005\"} 50\n\
                       lockgate_input_latency_seconds_bucket{input=\"in\",le=\"0.01\"} 100\n\
                       lockgate_input_latency_seconds_bucket{input=\"in\",le=\"+Inf\"} 100\n";
        let buckets = buckets(metrics).unwrap();
        assert_eq!(buckets, [(0.005, 50.0), (0.01, 100.0), (f64::INFINITY, 100.0)]);
        assert_eq!(quantile(&buckets, 0.5), 0.005);
        assert_eq!(quantile(&buckets, 0.75), 0.0075);
        assert!(super::buckets("nothing 1").is_err());
    }
}
