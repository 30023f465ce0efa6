//! The settings of a broker, as Kafka reads them from `server.properties`.
//!
//! Every node is broker and controller. What is set beyond that makes tests fast: short timeouts, few
//! partitions of internal topics, small segments that are soon compacted or deleted.

use std::fmt::Write;

use super::state::{Node, State};

/// Same for every node of every cluster.
const FOR_TESTS: &str = "\
auto.create.topics.enable=false
delete.topic.enable=true
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=500
offsets.topic.num.partitions=4
transaction.state.log.num.partitions=4
transaction.abort.timed.out.transaction.cleanup.interval.ms=1000
share.coordinator.state.topic.num.partitions=2
broker.heartbeat.interval.ms=500
broker.session.timeout.ms=4000
log.segment.bytes=16777216
log.index.size.max.bytes=1048576
log.segment.delete.delay.ms=1000
log.initial.task.delay.ms=500
log.retention.check.interval.ms=1000
log.cleaner.backoff.ms=500
log.cleaner.min.cleanable.ratio=0.01
log.cleaner.dedupe.buffer.size=8388608
num.network.threads=2
num.io.threads=4
background.threads=4
";

/// The file of one node, whose process sees its data at the path.
pub(super) fn render(state: &State, node: &Node, data: &str) -> String {
    let voters: Vec<String> = state
        .nodes
        .iter()
        .map(|node| format!("{}@127.0.0.1:{}", node.id, node.controller_port))
        .collect();
    let brokers = state.nodes.len();
    // With three, one may be lost and writing goes on.
    let in_sync = if brokers > 1 { brokers - 1 } else { 1 };
    let mut text = format!(
        "process.roles=broker,controller\n\
         node.id={id}\n\
         controller.quorum.voters={voters}\n\
         listeners=BROKER://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller_port}\n\
         advertised.listeners=BROKER://127.0.0.1:{port}\n\
         listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT\n\
         inter.broker.listener.name=BROKER\n\
         controller.listener.names=CONTROLLER\n\
         log.dirs={data}\n\
         default.replication.factor={brokers}\n\
         min.insync.replicas={in_sync}\n",
        id = node.id,
        voters = voters.join(","),
        port = node.port,
        controller_port = node.controller_port,
    );
    for topic in ["offsets.topic", "transaction.state.log", "share.coordinator.state.topic"] {
        let _ = writeln!(text, "{topic}.replication.factor={brokers}");
    }
    for topic in ["transaction.state.log", "share.coordinator.state.topic"] {
        let _ = writeln!(text, "{topic}.min.isr={in_sync}");
    }
    text + FOR_TESTS
}

#[cfg(test)]
mod tests {
    use super::super::state::Mode;
    use super::*;

    #[track_caller]
    fn check(ports: &[u16], node: usize, expected: &str) {
        let state = State::new(Mode::Java, ports);
        let text = render(&state, &state.nodes[node], "/data");
        let own = text.strip_suffix(FOR_TESTS).unwrap();
        assert_eq!(own.trim_end(), expected);
    }

    #[test]
    fn a_single_broker_replicates_nothing() {
        let expected = "\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:21002
listeners=BROKER://127.0.0.1:21001,CONTROLLER://127.0.0.1:21002
advertised.listeners=BROKER://127.0.0.1:21001
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs=/data
default.replication.factor=1
min.insync.replicas=1
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
share.coordinator.state.topic.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.min.isr=1";
        check(&[21001, 21002], 0, expected);
    }

    #[test]
    fn three_brokers_can_lose_one() {
        let expected = "\
process.roles=broker,controller
node.id=2
controller.quorum.voters=1@127.0.0.1:2,2@127.0.0.1:4,3@127.0.0.1:6
listeners=BROKER://127.0.0.1:3,CONTROLLER://127.0.0.1:4
advertised.listeners=BROKER://127.0.0.1:3
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs=/data
default.replication.factor=3
min.insync.replicas=2
offsets.topic.replication.factor=3
transaction.state.log.replication.factor=3
share.coordinator.state.topic.replication.factor=3
transaction.state.log.min.isr=2
share.coordinator.state.topic.min.isr=2";
        check(&[1, 2, 3, 4, 5, 6], 1, expected);
    }

    #[test]
    fn no_setting_is_given_twice() {
        let state = State::new(Mode::Java, &[1, 2]);
        let text = render(&state, &state.nodes[0], "/data");
        let mut names: Vec<&str> = text.lines().filter_map(|line| line.split('=').next()).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
