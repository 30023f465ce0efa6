//! `verify` names the record.

use std::fs::File;

use lockgate_core::{Framing, Header, PartDigest};
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::samples::{self, Flat, from_files, from_topics, plain, topic};
use super::{TINY, create, record, scratch};
use crate::recording::check::Chain;
use crate::recording::row::Row;
use crate::recording::schema::leaf;
use crate::recording::{About, Fault, FaultKind, Part, Recording};

/// Rows with the checks that they had before `change` was made to them.
fn forge(change: impl Fn(&mut Vec<(Flat, u32)>)) -> Option<Fault> {
    forge_with(&from_topics(), change, |_| ())
}

fn forge_with(
    about: &About,
    change: impl Fn(&mut Vec<(Flat, u32)>),
    claim: impl Fn(&mut Part),
) -> Option<Fault> {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let partition = topic("orders", Some(3));
    let batches = match about.framing {
        None => vec![plain(&partition, 100, 6, 20)],
        Some(_) => vec![samples::lines("a", 0, b"0\n11\n222\n3333\n44444\n555555\n")],
    };
    let mut chain = Chain::default();
    let flat = samples::flat(&batches).into_iter();
    let mut rows: Vec<(Flat, u32)> = flat
        .map(|flat| {
            let check = with_row(&flat, |row| chain.next(row));
            (flat, check)
        })
        .collect();
    change(&mut rows);
    let mut part = Part { step: Some(9), digest: PartDigest::of(&batches) };
    claim(&mut part);
    let mut writer = create(&path, about, TINY);
    let before = vec![plain(&topic("other", None), 0, 2, 9)];
    if about.framing.is_none() {
        writer.part(Some(8), &before, PartDigest::of(&before)).unwrap();
        writer.flush().unwrap();
    }
    let headers: Vec<Vec<Header<'_>>> = rows.iter().map(|(flat, _)| headers(flat)).collect();
    let rows: Vec<(Row<'_>, u32)> = rows
        .iter()
        .zip(&headers)
        .map(|((flat, check), headers)| (row(flat, headers), *check))
        .collect();
    writer.forge(part, &rows);
    writer.finish().unwrap();
    Recording::open(&path).unwrap().verify().unwrap()
}

fn headers(flat: &Flat) -> Vec<Header<'_>> {
    flat.headers.iter().map(|(name, value)| Header { name, value: value.as_deref() }).collect()
}

fn row<'a>(flat: &'a Flat, headers: &'a [Header<'a>]) -> Row<'a> {
    Row {
        source: flat.partition.source.as_bytes(),
        number: flat.partition.number,
        offset: flat.offset,
        end_offset: flat.end_offset,
        declared_length: None,
        timestamp: flat.timestamp,
        leader_epoch: flat.leader_epoch,
        key: flat.key.as_deref(),
        value: flat.value.as_deref(),
        headers,
    }
}

fn with_row<T>(flat: &Flat, take: impl FnOnce(&Row<'_>) -> T) -> T {
    take(&row(flat, &headers(flat)))
}

fn at(fault: Option<Fault>) -> (u64, FaultKind) {
    let fault = fault.unwrap();
    assert_eq!((fault.part, fault.step), (1, Some(9)));
    (fault.record.unwrap().1, fault.kind)
}

#[test]
fn nothing_forged_is_no_fault() {
    assert_eq!(forge(|_| ()), None);
}

#[test]
fn a_changed_record_fails_at_itself() {
    let changes: [fn(&mut Flat); 8] = [
        |flat| flat.value.as_mut().unwrap()[3] ^= 1,
        |flat| flat.value = None,
        |flat| flat.key = Some(vec![]),
        |flat| flat.timestamp = Some(lockgate_core::Timestamp::created(0)),
        |flat| flat.headers.push((vec![], None)),
        |flat| flat.partition.number = None,
        |flat| flat.partition.source.push('x'),
        |flat| flat.end_offset += 1,
    ];
    for change in changes {
        for i in 0..6 {
            let fault = forge(|rows| change(&mut rows[i].0));
            assert_eq!(at(fault), (100 + i as u64, FaultKind::Record));
        }
    }
}

#[test]
fn a_missing_record_fails_at_the_one_after_it() {
    for i in 0..5 {
        let fault = forge(|rows| {
            rows.remove(i);
        });
        assert_eq!(at(fault), (101 + i as u64, FaultKind::Record));
    }
    let fault = forge(|rows| {
        rows.pop();
    });
    let fault = fault.unwrap();
    assert_eq!((fault.part, fault.record, fault.kind), (1, None, FaultKind::Missing));
}

#[test]
fn a_swapped_pair_fails_at_the_first_of_both() {
    for i in 0..5 {
        let fault = forge(|rows| rows.swap(i, i + 1));
        assert_eq!(at(fault), (101 + i as u64, FaultKind::Record));
    }
}

#[test]
fn an_added_record_fails() {
    let fault = forge(|rows| rows.insert(2, rows[1].clone()));
    assert_eq!(at(fault), (101, FaultKind::Record));
    let fault = forge(|rows| rows.push(rows[5].clone()));
    assert_eq!(at(fault), (105, FaultKind::Surplus));
}

#[test]
fn a_wrong_index_fails_as_a_whole() {
    let fault = forge_with(&from_topics(), |_| (), |part| part.digest.hash ^= 1).unwrap();
    assert_eq!((fault.part, fault.record.as_ref(), fault.kind), (1, None, FaultKind::Digest));
    assert_eq!(
        fault.to_string(),
        "part 1 (step 9): the records have another hash than the one recorded for them"
    );
}

/// Checks that were computed anew do not help: the digest is the proof.
#[test]
fn a_careful_forger_is_found_by_the_digest() {
    let fault = forge(|rows| {
        rows[2].0.value = Some(b"forged".to_vec());
        let mut chain = Chain::default();
        for (flat, check) in rows {
            *check = with_row(flat, |row| chain.next(row));
        }
    });
    assert_eq!(fault.unwrap().kind, FaultKind::Digest);
}

#[test]
fn what_no_file_can_hold_is_nonsense() {
    let fault = forge_with(
        &from_files(Framing::Lines),
        |rows| {
            let mut chain = Chain::default();
            rows[1].0.end_offset += 7;
            for (flat, check) in rows {
                *check = with_row(flat, |row| chain.next(row));
            }
        },
        |_| (),
    );
    let fault = fault.unwrap();
    assert!(matches!(fault.kind, FaultKind::Nonsense(_)), "{fault}");
    assert_eq!(
        fault.to_string(),
        "part 0 (step 9), a offset 2: no input delivers this record: its span of the file does not fit its framing"
    );
}

/// A byte that was changed on the disk: found when it is read, and by `verify` as nearly as can be.
#[test]
fn a_changed_byte_on_the_disk() {
    let dir = scratch();
    let path = dir.path().join("a.parquet");
    let given = samples::ten_parts();
    record(&path, &from_topics(), TINY, &given);
    let whole = std::fs::read(&path).unwrap();
    let mut broken = whole.clone();
    // Checks are not compressed, and come last in a row group.
    let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
    let (start, len) = reader.metadata().row_group(0).column(leaf::CHECK).byte_range();
    broken[(start + len - 1) as usize] ^= 1;
    std::fs::write(&path, broken).unwrap();
    let recording = Recording::open(&path).unwrap();
    let read: Result<Vec<_>, _> = recording.read(0..10).collect();
    let said = read.err().unwrap().to_string();
    assert!(said.contains("row group 0 (rows 0 to 3, bytes "), "{said}");
    assert!(said.contains("are not those that were written"), "{said}");
    let fault = recording.verify().unwrap().unwrap();
    assert_eq!((fault.part, fault.record.unwrap().1, fault.kind), (0, 2, FaultKind::Record));
}
