//! Brokers that die under load: the pipeline waits, says so, and goes on; nothing is lost or doubled.

use std::net::TcpListener;

use crate::cluster::{Cluster, Topic, shared};
use crate::scaled;
use crate::site::Site;

fn pipeline(servers: &str, from: &str, to: &str) -> String {
    format!(
        "name: outage\ncheckpoint_interval: 200ms\n\
         inputs: {{in: {{kafka: {{brokers: \"{servers}\", topic: {from}, stop_at: end}}}}}}\n\
         outputs: {{out: {{kafka: {{brokers: \"{servers}\", topic: {to}, partition: kept}}}}}}\n"
    )
}

/// Kills the broker that `chosen` names, `times` times, each time when more was written, and starts it again when
/// the program has said that it waits.
fn survive(cluster: &Cluster, brokers: u32, times: u64, chosen: impl Fn(&Topic) -> u32) {
    let records = scaled(1_000_000, 200_000);
    let copies = brokers as i32;
    let from = Topic::new(&cluster.servers, "from", 6, copies).filled(records / 6);
    let to = Topic::new(&cluster.servers, "to", 6, copies);
    let site = Site::new(&pipeline(&cluster.servers, &from.name, &to.name));
    let mut running = site.start();
    for time in 0..times {
        let target = records * (time + 1) / (times + 2);
        assert!(running.until(|| to.size() >= target), "{}", running.stderr());
        let broker = chosen(&to);
        let said = running.stderr().len();
        cluster.kill(broker);
        if brokers == 1 {
            let waits = || running_says(&site, said, "Kafka broker");
            assert!(running.until(waits), "it ended while its broker was away");
        } else {
            // The others go on.
            let size = to.size();
            assert!(running.until(|| to.size() > size + 1000), "{}", running.stderr());
        }
        cluster.start_again(broker);
    }
    let ended = running.end();
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    to.check(&to.each(records / 6));
}

/// Whether the program wrote this to its log after what it had written before.
fn running_says(site: &Site, after: usize, what: &str) -> bool {
    let log = std::fs::read_to_string(site.path("stderr.log")).unwrap_or_default();
    log.get(after..).is_some_and(|new| new.contains(what))
}

#[test]
fn a_broker_dies_and_comes_back_again_and_again() {
    let cluster = Cluster::start("outage", 1);
    survive(&cluster, 1, scaled(6, 2), |_| 1);
}

#[test]
fn of_three_brokers_the_leader_dies() {
    let cluster = Cluster::start("leader-loss", 3);
    survive(&cluster, 3, scaled(4, 1), Topic::leader);
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
