//! Where each partition is read from: what is wanted, held against what the log holds.
//!
//! Pure. A place that is no longer in the log is refused with numbers, unless a policy says how to go on, which is
//! counted.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_core::EndpointError;

use super::position::{Epoch, Seek};
use crate::client::Name;
use crate::config::{KafkaInputConfig, OnGone};

/// What the log of a partition holds: the offsets from `first` up to, not including, `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) first: u64,
    pub(super) end: u64,
}

/// What to do where a stored position does not fit what is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policies {
    pub(super) expired: OnGone,
    pub(super) truncated: OnGone,
    pub(super) recreated: OnGone,
    pub(super) vanished: OnGone,
}

impl Policies {
    pub(super) fn of(config: &KafkaInputConfig) -> Self {
        Self {
            expired: config.on_expired,
            truncated: config.on_truncated,
            recreated: config.on_recreated,
            vanished: config.on_vanished,
        }
    }
}

/// What to do about a place that is lost while it is read. Policies are applied in one place only, when an input
/// is opened, so going on means to be opened again.
pub(super) fn lost_while_running(policy: OnGone, text: String) -> EndpointError {
    match policy {
        OnGone::Refuse => EndpointError::Data(text),
        OnGone::Continue => EndpointError::Superseded {
            what: "the input has to be opened again".into(),
            source: text.into(),
        },
    }
}

/// A policy that was applied, and a text that says to what.
pub(super) type Applied = (&'static str, String);

/// Refuses what does not fit, or writes down under which name it is counted and gone on with.
fn rule(
    policy: OnGone,
    name: &'static str,
    text: String,
    applied: &mut Vec<Applied>,
) -> Result<(), EndpointError> {
    match policy {
        OnGone::Refuse => Err(EndpointError::Data(text)),
        OnGone::Continue => {
            applied.push((name, text));
            Ok(())
        }
    }
}

/// The offset `wanted`, if it is in the log; else where a policy says to go on, which is written down in `applied`.
///
/// # Errors
/// If it is not in the log, and no policy says how to go on.
pub(super) fn within(
    topic: &str,
    partition: u32,
    wanted: u64,
    log: Log,
    policies: Policies,
    applied: &mut Vec<Applied>,
) -> Result<u64, EndpointError> {
    if let Some(text) = misfit(topic, partition, wanted, log) {
        let (policy, name) = if wanted < log.first {
            (policies.expired, "expired_continued")
        } else {
            (policies.truncated, "truncated_continued")
        };
        rule(policy, name, text, applied)?;
    }
    Ok(wanted.clamp(log.first, log.end))
}

/// A stored position held against the log and completed: partitions that it does not name appeared later and are
/// read from their beginning. `ids` are those of the topics that are read, as far as the brokers say them.
///
/// # Errors
/// If it names what is not there, and no policy says how to go on.
pub(super) fn resumed(
    stored: &Seek,
    ids: &BTreeMap<String, Option<String>>,
    logs: &BTreeMap<Name, Log>,
    policies: Policies,
) -> Result<(Seek, Vec<Applied>), EndpointError> {
    let mut applied = Vec::new();
    let mut made_anew = BTreeSet::new();
    for (topic, id) in &stored.ids {
        match ids.get(topic) {
            Some(Some(now)) if now != id => {
                let text = recreated(topic, id, now);
                rule(policies.recreated, "recreated_continued", text, &mut applied)?;
                made_anew.insert(topic.as_str());
            }
            Some(None) => {
                return Err(EndpointError::Data(format!(
                    "topic {topic} had the id {id}, and the brokers do not say now which one it has: whether it is \
                 still the same one is not known"
                )));
            }
            _ => {}
        }
    }
    for (topic, partition, offset) in stored.iter() {
        if !logs.contains_key(&(topic.to_owned(), partition)) && !made_anew.contains(topic) {
            let text = format!(
                "the stored position is at offset {offset} of {topic}[{partition}], which is not among the \
                 partitions that are read: it was deleted, or the configuration no longer names it"
            );
            rule(policies.vanished, "vanished_continued", text, &mut applied)?;
        }
    }
    let mut seek = Seek::default();
    for ((topic, partition), log) in logs {
        let place =
            stored.offset(topic, *partition).filter(|_| !made_anew.contains(topic.as_str()));
        let Some(wanted) = place else {
            seek.set(topic, *partition, log.first);
            continue;
        };
        let offset = within(topic, *partition, wanted, *log, policies, &mut applied)?;
        let epoch = stored.epoch(topic, *partition).filter(|_| offset == wanted);
        // What is asked about must be in the log: what lies before it may be gone.
        let epoch = epoch.map(|epoch| Epoch { end: epoch.end.max(log.first), ..epoch });
        seek.set_epoch(topic, *partition, epoch);
        seek.set(topic, *partition, offset);
    }
    Ok((seek, applied))
}

/// A log that no longer holds what was read before a position: it was truncated, and may have grown since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cut {
    pub(super) topic: String,
    pub(super) partition: u32,
    /// Where the log and what was read part, and the epoch that ends there; `None` if the brokers do not know.
    pub(super) common: Option<Epoch>,
}

/// Takes a position back to where each log that was cut and what was read part. Where that is not known it stays.
///
/// What a leader knows of older epochs is its own log. If that was cut more than once, the place may be behind the
/// true one.
///
/// # Errors
/// If a log was cut, and no policy says how to go on.
pub(super) fn taken_back(
    seek: &mut Seek,
    cuts: &[Cut],
    policies: Policies,
) -> Result<Vec<Applied>, EndpointError> {
    let mut applied = Vec::new();
    for Cut { topic, partition, common } in cuts {
        let Some(wanted) = seek.offset(topic, *partition) else { continue };
        let epoch = seek.epoch(topic, *partition);
        let text = cut(topic, *partition, wanted, epoch, *common);
        rule(policies.truncated, "truncated_continued", text, &mut applied)?;
        let offset = common.map_or(wanted, |common| common.end.min(wanted));
        seek.set(topic, *partition, offset);
        seek.set_epoch(topic, *partition, common.filter(|common| common.end > 0));
    }
    Ok(applied)
}

/// That a log was cut before an offset. `epoch` is that of the records before the offset, if it is known, and
/// `common` as in [`Cut`].
pub(super) fn cut(
    topic: &str,
    partition: u32,
    wanted: u64,
    epoch: Option<Epoch>,
    common: Option<Epoch>,
) -> String {
    let epoch = epoch.map_or("another leader epoch".to_owned(), |epoch| {
        format!("leader epoch {}", epoch.number)
    });
    let why = match common {
        Some(Epoch { number, end }) => {
            let lost = wanted.saturating_sub(end);
            format!(
                "its log holds the offsets up to {end} only from that time (up to leader epoch {number}): it was \
                 truncated there and has grown since, and {lost} offsets that were read now stand for other records"
            )
        }
        None => {
            "its log knows no epoch so early: it was truncated, and it is not known from where on"
                .to_owned()
        }
    };
    format!(
        "{topic}[{partition}] is wanted from offset {wanted} on, after records of {epoch}, but {why}"
    )
}

/// That a topic is another one than it was.
pub(super) fn recreated(topic: &str, before: &str, now: &str) -> String {
    format!(
        "topic {topic} was deleted and made anew: its id is {now}, and the one that was read had {before}; its \
         offsets no longer mean the same records"
    )
}

/// The offsets given by `wanted`, checked; the beginning where it gives none.
///
/// # Errors
/// If one is not in its log.
pub(super) fn at(
    logs: &BTreeMap<Name, Log>,
    wanted: impl Fn(&str, u32) -> Option<u64>,
) -> Result<Seek, EndpointError> {
    let mut seek = Seek::default();
    for ((topic, partition), log) in logs {
        let offset = wanted(topic, *partition).unwrap_or(log.first);
        check(topic, *partition, offset, *log)?;
        seek.set(topic, *partition, offset);
    }
    Ok(seek)
}

fn check(topic: &str, partition: u32, wanted: u64, log: Log) -> Result<(), EndpointError> {
    misfit(topic, partition, wanted, log).map_or(Ok(()), |text| Err(EndpointError::Data(text)))
}

/// Why an offset is not in the log; `None` if it is.
fn misfit(topic: &str, partition: u32, wanted: u64, log: Log) -> Option<String> {
    let Log { first, end } = log;
    let why = if wanted < first {
        let lost = first - wanted;
        format!("the first {lost} of them are no longer there and would be lost")
    } else if wanted > end {
        let beyond = wanted - end;
        format!("that is {beyond} beyond its end: it was truncated, or the topic was made anew")
    } else {
        return None;
    };
    Some(format!(
        "{topic}[{partition}] is wanted from offset {wanted} on, but its log holds the offsets from {first} to \
         {end}: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(logs: &[(u32, u64, u64)]) -> BTreeMap<Name, Log> {
        let log = |(partition, first, end): &(u32, u64, u64)| {
            (("orders".to_owned(), *partition), Log { first: *first, end: *end })
        };
        logs.iter().map(log).collect()
    }

    fn stored(offsets: &[(u32, u64)]) -> Seek {
        let mut seek = Seek::default();
        offsets.iter().for_each(|(partition, offset)| seek.set("orders", *partition, *offset));
        seek
    }

    const REFUSE: Policies = Policies {
        expired: OnGone::Refuse,
        truncated: OnGone::Refuse,
        recreated: OnGone::Refuse,
        vanished: OnGone::Refuse,
    };
    const CONTINUE: Policies = Policies {
        expired: OnGone::Continue,
        truncated: OnGone::Continue,
        recreated: OnGone::Continue,
        vanished: OnGone::Continue,
    };

    fn ids(id: Option<&str>) -> BTreeMap<String, Option<String>> {
        BTreeMap::from([("orders".into(), id.map(str::to_owned))])
    }

    fn resume(
        offsets: &[(u32, u64)],
        policies: Policies,
    ) -> Result<(Seek, Vec<Applied>), EndpointError> {
        resumed(&stored(offsets), &ids(None), &logs(&[(0, 5, 9)]), policies)
    }

    #[track_caller]
    fn check_refused(offsets: &[(u32, u64)], expected: &[&str]) {
        let text = resume(offsets, REFUSE).unwrap_err().to_string();
        for part in expected {
            assert!(text.contains(part), "{text}");
        }
    }

    /// Where each policy goes on; each says so once.
    #[track_caller]
    fn check_continued(offsets: &[(u32, u64)], place: u64, policy: &str) {
        let (seek, applied) = resume(offsets, CONTINUE).unwrap();
        assert_eq!(seek, stored(&[(0, place)]));
        assert_eq!(applied.iter().map(|(name, _)| *name).collect::<Vec<_>>(), [policy]);
        let text = resume(offsets, REFUSE).unwrap_err().to_string();
        assert_eq!(applied[0].1, text, "counted with the words of the refusal");
    }

    /// K10: partitions added while down were once read from their end.
    #[test]
    fn k10_a_partition_that_is_new_is_read_from_its_beginning() {
        let logs = logs(&[(0, 5, 9), (1, 3, 4)]);
        let (seek, applied) = resumed(&stored(&[(0, 7)]), &ids(None), &logs, REFUSE).unwrap();
        assert_eq!((seek, applied), (stored(&[(0, 7), (1, 3)]), Vec::new()));
    }

    /// K11: a topic of the same name is not the same topic.
    #[test]
    fn k11_another_id_is_another_topic() {
        let mut seek = stored(&[(0, 7), (1, 2)]);
        seek.ids.insert("orders".into(), "a".into());
        let logs = logs(&[(0, 5, 9), (1, 0, 4)]);
        let resume = |id, policies| resumed(&seek, &ids(id), &logs, policies);
        assert_eq!(resume(Some("a"), REFUSE).unwrap().0, stored(&[(0, 7), (1, 2)]));
        assert!(resume(Some("b"), REFUSE).unwrap_err().to_string().contains("made anew"));
        assert!(resume(None, CONTINUE).unwrap_err().to_string().contains("id a"));
        let (anew, applied) = resume(Some("b"), CONTINUE).unwrap();
        assert_eq!(anew, stored(&[(0, 5), (1, 0)]), "all of it from the beginning");
        assert_eq!(applied[0].0, "recreated_continued");
    }

    #[test]
    fn k12_k13_what_is_not_in_the_log_is_refused_with_numbers() {
        check_refused(&[(0, 2)], &["orders[0]", "offset 2", "from 5 to 9", "first 3"]);
        check_refused(&[(0, 12)], &["offset 12", "from 5 to 9", "3 beyond its end"]);
        check_refused(&[(0, 5), (3, 1)], &["orders[3]"]);
        resume(&[(0, 5)], REFUSE).unwrap();
        resume(&[(0, 9)], REFUSE).unwrap();
    }

    #[test]
    fn what_is_not_in_the_log_is_counted_where_a_policy_says_so() {
        check_continued(&[(0, 2)], 5, "expired_continued");
        check_continued(&[(0, 12)], 9, "truncated_continued");
        check_continued(&[(0, 6), (3, 1)], 6, "vanished_continued");
        assert!(resume(&[(0, 6)], CONTINUE).unwrap().1.is_empty());
    }

    /// An epoch says where the records before a position came from; of another place it says nothing.
    #[test]
    fn k12_the_epoch_of_a_position_is_kept_unless_the_position_moves() {
        let mut seek = stored(&[(0, 7)]);
        seek.set_epoch("orders", 0, Some(Epoch { number: 3, end: 6 }));
        let resume = |logs: &[(u32, u64, u64)]| {
            let (seek, _) = resumed(&seek, &ids(None), &self::logs(logs), CONTINUE).unwrap();
            seek.epoch("orders", 0)
        };
        assert_eq!(resume(&[(0, 5, 9)]), Some(Epoch { number: 3, end: 6 }));
        assert_eq!(resume(&[(0, 7, 9)]), Some(Epoch { number: 3, end: 7 }), "not before the log");
        assert_eq!(resume(&[(0, 8, 9)]), None);
    }

    /// K12: the log was truncated and grew beyond the position under another leader.
    #[test]
    fn k12_a_log_that_was_cut_is_refused_with_numbers_or_gone_on_with_where_it_was_cut() {
        let check = |common: Option<Epoch>, place: u64, epoch: Option<Epoch>, words: &[&str]| {
            let mut seek = stored(&[(0, 70), (1, 5)]);
            seek.set_epoch("orders", 0, Some(Epoch { number: 3, end: 70 }));
            let cuts = [Cut { topic: "orders".into(), partition: 0, common }];
            let text = taken_back(&mut seek, &cuts, REFUSE).unwrap_err().to_string();
            for word in ["orders[0]", "offset 70", "leader epoch 3"].iter().chain(words) {
                assert!(text.contains(word), "{text}");
            }
            let applied = taken_back(&mut seek, &cuts, CONTINUE).unwrap();
            assert_eq!(applied, [("truncated_continued", text)]);
            assert_eq!((seek.offset("orders", 0), seek.epoch("orders", 0)), (Some(place), epoch));
            assert_eq!(seek.offset("orders", 1), Some(5));
        };
        let common = Some(Epoch { number: 1, end: 60 });
        check(common, 60, common, &["up to 60", "up to leader epoch 1", "10 offsets"]);
        check(None, 70, None, &["not known from where on"]);
    }
}
