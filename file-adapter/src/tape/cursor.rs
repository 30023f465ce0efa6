//! A place on a tape from which batches are taken.

use std::collections::VecDeque;

use lockgate_core::{Batch, Partition};

use super::place::Place;
use super::{Tape, TapeParts};
use crate::recording::RecordingError;

pub(super) struct Cursor {
    tape: Tape,
    /// The only partition whose records are given, if not all are.
    only: Option<Partition>,
    reading: Option<TapeParts>,
    /// What comes next: before the first record of `batches`.
    place: Place,
    /// The rest of the part that was read last.
    batches: VecDeque<Batch>,
}

impl Cursor {
    pub(super) fn new(tape: Tape, only: Option<Partition>) -> Self {
        let (place, batches) = (Place::default(), VecDeque::new());
        Self { tape, only, reading: None, place, batches }
    }

    pub(super) fn place(&self) -> Place {
        self.place
    }

    /// Goes on from `place`, which costs nothing if it is already there.
    ///
    /// # Errors
    /// If the part cannot be read.
    pub(super) fn seek(&mut self, place: Place) -> Result<(), RecordingError> {
        if place == self.place {
            return Ok(());
        }
        self.reading = None;
        self.batches.clear();
        self.place = Place { record: 0, ..place };
        let mut left = place.record;
        while left > 0
            && self.place.part == place.part
            && let Some(batch) = self.front()?
        {
            let records = left.min(batch.len() as u64);
            let _ = self.take(records as usize);
            left -= records;
        }
        Ok(())
    }

    /// The next records, as many as adjoin in memory; `None` at the end.
    ///
    /// # Errors
    /// If they cannot be read.
    pub(super) fn front(&mut self) -> Result<Option<&Batch>, RecordingError> {
        while self.batches.is_empty() {
            let part = usize::try_from(self.place.part).unwrap_or(usize::MAX);
            if part >= self.tape.parts().len() {
                return Ok(None);
            }
            let reading = self.reading.get_or_insert_with(|| self.tape.read(part));
            let Some((_, batches)) = reading.next().transpose()? else { return Ok(None) };
            self.batches.extend(batches.into_iter().filter(|batch| {
                let is_wanted = self.only.as_ref().is_none_or(|only| **batch.partition() == *only);
                is_wanted && !batch.is_empty()
            }));
            self.pass_end_of_part();
        }
        Ok(self.batches.front())
    }

    /// Takes records out of [`front`](Self::front), at most as many as it has.
    pub(super) fn take(&mut self, records: usize) -> Batch {
        let front = match self.batches.front_mut() {
            Some(batch) if records < batch.len() => batch.take_front(records),
            _ => self.batches.pop_front().expect("records are taken from a front that there is"),
        };
        self.place.record += front.len() as u64;
        self.pass_end_of_part();
        front
    }

    fn pass_end_of_part(&mut self) {
        if self.batches.is_empty() {
            self.place = Place { part: self.place.part + 1, record: 0 };
        }
    }
}
