//! The desk with real threads. In every order of them: `tests/interleavings.rs`, which compiles `desk.rs` anew and must
//! find no tests in it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use lockgate_core::{BatchBuilder, EndpointError, NewRecord, Partition};

use super::desk::{BUDGET, Desk, Next};
use super::window::Queued;

fn step(bytes: usize) -> Queued {
    let partition = Partition { source: "in".into(), number: None };
    let mut builder = BatchBuilder::new(partition.into());
    builder.push(NewRecord { value: Some(&vec![0; bytes]), ..NewRecord::default() }).unwrap();
    Queued { step: 1, batches: vec![builder.build()], seeks: Vec::new() }
}

#[test]
fn a_step_always_fits_and_the_next_one_waits_for_room() {
    let desk = Arc::new(Desk::default());
    let large = BUDGET as usize + 1;
    desk.push(step(large)).unwrap();
    let pushed = std::thread::spawn({
        let desk = desk.clone();
        move || desk.push(step(1))
    });
    assert!(matches!(desk.next(Instant::now()), Next::Take(_)));
    // The second one waits for room, which is to be made now.
    assert!(matches!(desk.next(Instant::now() + Duration::from_secs(20)), Next::Flush));
    desk.finish(1, large as u64);
    pushed.join().unwrap().unwrap();
    assert!(matches!(desk.next(Instant::now()), Next::Take(_)));
}

#[test]
fn a_failure_comes_to_whoever_waits_and_once_as_it_was() {
    let desk = Arc::new(Desk::default());
    desk.push(step(1)).unwrap();
    let flushed = std::thread::spawn({
        let desk = desk.clone();
        move || desk.flush()
    });
    desk.fail(EndpointError::Data("poison".into()));
    assert_eq!(flushed.join().unwrap().unwrap_err().to_string(), "poison");
    let later = desk.push(step(1)).unwrap_err().to_string();
    assert!(later.contains("failed before"), "{later}");
}
