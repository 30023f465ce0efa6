//! Brokers that die under load: the pipeline waits, says so, and goes on; nothing is lost or doubled.

use std::net::TcpListener;

use crate::cluster::{Cluster, Topic, shared};
use crate::scaled;
use crate::site::Site;

fn pipeline(input: &str, output: &str) -> String {
    format!(
        "name: outage\ncheckpoint_interval: 200ms\n\
         inputs: {{in: {{kafka: {{{input}}}}}}}\n\
         outputs: {{out: {{kafka: {{{output}, partition: kept}}}}}}\n"
    )
}

/// Whether the program wrote this to its log after what it had written before.
fn running_says(site: &Site, after: usize, what: &str) -> bool {
    let log = std::fs::read_to_string(site.path("stderr.log")).unwrap_or_default();
    log.get(after..).is_some_and(|new| new.contains(what))
}

#[test]
fn a_broker_dies_and_comes_back_again_and_again() {
    let (times, records) = (scaled(6, 2), scaled(1_000_000, 200_000));
    let cluster = Cluster::start("outage", 1);
    let servers = &cluster.servers;
    let from = Topic::new(servers, "from", 6, 1).filled(records / 6);
    let to = Topic::new(servers, "to", 6, 1);
    let site = Site::new(&pipeline(
        &format!("brokers: \"{servers}\", topic: {}, stop_at: end", from.name),
        &format!("brokers: \"{servers}\", topic: {}", to.name),
    ));
    let mut running = site.start();
    for time in 0..times {
        let target = records * (time + 1) / (times + 2);
        assert!(running.until(|| to.size() >= target), "{}", running.stderr());
        let said = running.stderr().len();
        cluster.kill(1);
        let waits = || running_says(&site, said, "Kafka broker");
        assert!(running.until(waits), "it ended while its broker was away");
        cluster.start_again(1);
    }
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    to.check(&to.each(records / 6));
}

/// Each of them leads two partitions, and one of them keeps the offsets of the output's group: about one time in ten
/// the client waited for ever for another to take that over (librdkafka#5456, #5511).
#[test]
fn of_three_brokers_one_after_the_other_dies() {
    let cluster = Cluster::start("leader-loss", 3);
    let servers = &cluster.servers;
    let from = Topic::new(servers, "from", 6, 3);
    let to = Topic::new(servers, "to", 6, 3);
    let site = Site::new(&pipeline(
        &format!("brokers: \"{servers}\", topic: {}, start_from: earliest", from.name),
        &format!("brokers: \"{servers}\", topic: {}", to.name),
    ));
    let mut running = site.start();
    let each = from.fed_while(|| {
        for broker in (1..=3).cycle().take(scaled(12, 3)) {
            to.grows(&mut running, 1000);
            cluster.kill(broker);
            assert!(running.until(|| to.brokers() == 2), "{}", running.stderr());
            to.grows(&mut running, 1000);
            cluster.start_again(broker);
            // Or the next to die may be the last that has a partition: of one without a leader Kafka forgets that a
            // transaction is open.
            assert!(running.until(|| to.in_sync()), "{}", running.stderr());
        }
    });
    to.completed_by(running, &each);
}

#[test]
fn a_broker_that_is_absent_at_the_start_ends_the_program() {
    // The port was free a moment ago, and nobody has taken it since.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let broker = listener.local_addr().unwrap().to_string();
    drop(listener);
    let topic = Topic::new(&shared(), "there", 1, 1);
    let input = |servers: &str| {
        format!("{{kafka: {{brokers: \"{servers}\", topic: {}, stop_at: end}}}}", topic.name)
    };
    let output = format!("{{kafka: {{brokers: \"{broker}\", topic: copy}}}}");
    for (from, to) in [(input(&broker), "{null: {}}"), (input(&shared()), output.as_str())] {
        let site =
            Site::new(&format!("name: absent\ninputs: {{in: {from}}}\noutputs: {{out: {to}}}\n"));
        let ended = site.lockgate(&["run", "pipeline.yaml"]);
        assert_eq!(ended.code, 69, "{}", ended.stderr);
        assert!(ended.stderr.contains(&broker), "{}", ended.stderr);
    }
}
