//! Three processes in one consumer group, between topics, exactly once: started, stopped, killed and frozen at
//! random under load.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::cluster::{Topic, shared};
use crate::data::Seeded;
use crate::scaled;
use crate::site::{Running, Site};

const PARTITIONS: u32 = 6;
/// The least that a broker allows if nothing else is said.
const SESSION: Duration = Duration::from_secs(6);

/// One process of the group.
struct Member {
    site: Site,
    running: Option<Running>,
    /// When it is to be woken, if it is frozen.
    frozen_until: Option<Instant>,
}

impl Member {
    fn new(from: &Topic, to: &Topic, protocol: &str) -> Self {
        let pipeline = format!(
            "name: soak\ncheckpoint_interval: 1s\n\
             inputs:\n  in:\n    kafka:\n      brokers: \"{servers}\"\n      topic: {from}\n\
             \x20     mode: group\n      group: {from}\n      group_protocol: {protocol}\n\
             \x20     properties: {{{session}}}\n\
             outputs:\n  out:\n    kafka: {{brokers: \"{servers}\", topic: {to}, partition: kept}}\n",
            servers = shared(),
            from = from.name,
            to = to.name,
            session = if protocol == "consumer" {
                String::new()
            } else {
                let session = SESSION.as_millis();
                format!("\"session.timeout.ms\": {session}, \"max.poll.interval.ms\": 10000")
            },
        );
        Self { site: Site::new(&pipeline), running: None, frozen_until: None }
    }

    fn start(&mut self) {
        self.running = Some(self.site.start());
    }

    /// In order, with a good end.
    fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.signal("TERM");
            let ended = running.end();
            assert_eq!(ended.code, 0, "{}", ended.stderr);
        }
    }

    fn wake(&mut self) {
        if let (Some(running), Some(_)) = (&self.running, self.frozen_until.take()) {
            running.signal("CONT");
        }
    }

    /// Something happens to it.
    fn suffer(&mut self, random: &mut Seeded) -> &'static str {
        match (&self.running, random.below(10)) {
            (None, _) => {
                self.start();
                "started"
            }
            (Some(_), 0..3) => {
                self.stop();
                "stopped"
            }
            (Some(_), 3..6) => {
                if let Some(running) = self.running.take() {
                    assert!(running.kill(), "it had ended by itself");
                }
                "killed"
            }
            (Some(running), 6..9) => {
                running.signal("STOP");
                let length = SESSION + Duration::from_millis(1000 + random.below(3000));
                self.frozen_until = Some(Instant::now() + length);
                "frozen"
            }
            _ => "left alone",
        }
    }
}

struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn soak(protocol: &str, length: Duration, seed: u64) {
    let from = Topic::new(&shared(), "soak-from", PARTITIONS, 1);
    let to = Topic::new(&shared(), "soak-to", PARTITIONS, 1);
    let mut members: Vec<Member> = (0..3).map(|_| Member::new(&from, &to, protocol)).collect();
    members[0].start();
    let mut random = Seeded(seed);
    let over = AtomicBool::new(false);
    let mut happened: BTreeMap<&str, u32> = BTreeMap::new();
    let each = std::thread::scope(|scope| {
        let load = scope.spawn(|| {
            let mut writer = from.writer();
            while !over.load(Ordering::Relaxed) {
                for round in 0..100 {
                    (0..PARTITIONS)
                        .for_each(|partition| writer.add((partition + round) % PARTITIONS));
                }
                std::thread::sleep(Duration::from_millis(100)); // polls: nothing, so that the load is even
            }
            writer.finish()
        });
        // Also when the test fails: the load would never end.
        let load_ends = Ends(&over);
        let end = Instant::now() + length;
        while Instant::now() < end {
            let next = Instant::now() + Duration::from_millis(300 + random.below(1500));
            while Instant::now() < next {
                for member in &mut members {
                    if member.frozen_until.is_some_and(|until| until <= Instant::now()) {
                        member.wake();
                    }
                    if let Some(running) = &mut member.running {
                        let ended = running.child.try_wait().unwrap();
                        assert!(ended.is_none(), "it ended by itself: {}", running.stderr());
                    }
                }
                std::thread::sleep(Duration::from_millis(20)); // polls: other processes
            }
            let chosen = random.below(3) as usize;
            if members[chosen].frozen_until.is_none() {
                *happened.entry(members[chosen].suffer(&mut random)).or_default() += 1;
            }
        }
        drop(load_ends);
        load.join().unwrap()
    });
    for member in &mut members {
        member.wake();
        if member.running.is_none() {
            member.start();
        }
    }
    let records: u64 = each.values().sum();
    println!("{protocol}: {records} records in {length:?}; {happened:?}");
    let begun = Instant::now();
    while to.committed() < records {
        let log = || {
            members
                .iter()
                .map(|member| member.running.as_ref().map_or_else(String::new, Running::stderr))
                .collect::<Vec<_>>()
                .join("\n---\n")
        };
        assert!(begun.elapsed() < Duration::from_secs(120), "not all records come: {}", log());
        std::thread::sleep(Duration::from_millis(200)); // polls: other processes
    }
    members.iter_mut().for_each(Member::stop);
    to.check(&each);
}

#[test]
fn a_group_writes_every_record_once() {
    soak("cooperative_sticky", Duration::from_secs(scaled(180, 25)), 5);
}

#[test]
fn an_eager_group_writes_every_record_once() {
    soak("eager", Duration::from_secs(scaled(60, 12)), 6);
}

#[test]
fn a_group_dealt_out_by_the_brokers_writes_every_record_once() {
    soak("consumer", Duration::from_secs(scaled(60, 12)), 7);
}

/// The output once heard only after a while as whom the group knows the reader, and took the first records for those of
/// a member that had been thrown out.
#[test]
fn a_new_member_is_not_taken_for_one_that_was_thrown_out() {
    let each = scaled(100_000, 5_000);
    let from = Topic::new(&shared(), "new-from", PARTITIONS, 1).filled(each);
    for _ in 0..scaled(20, 3) {
        let to = Topic::new(&shared(), "new-to", PARTITIONS, 1);
        let site = Site::new(&format!(
            "name: new\ncheckpoint_interval: 20ms\nmax_batch_records: 100\nmin_batch_records: 50\n\
             inputs: {{in: {{kafka: {{brokers: \"{servers}\", topic: {from}, mode: group, group: {to}}}}}}}\n\
             outputs: {{out: {{kafka: {{brokers: \"{servers}\", topic: {to}, partition: kept, \
             commit_interval: 10ms}}}}}}\n",
            servers = shared(),
            from = from.name,
            to = to.name,
        ));
        to.completed_by(site.start(), &to.each(each));
        let log = std::fs::read_to_string(site.path("stderr.log")).unwrap();
        assert!(!log.contains("opening the pipeline again"), "{log}");
    }
}
