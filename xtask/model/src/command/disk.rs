//! What a crash leaves behind: the last checkpoint, the journal after it, and the outputs.

use std::collections::VecDeque;

use lockgate_controller::{JournalPart, JournaledStep};

use super::Breach;
use super::CommandModel;
use super::reader::encode;
use super::source::Content;

/// Steps read at a time when the journal is replayed.
const LOAD_STEPS: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct Disk {
    /// The last step that the checkpoint covers.
    pub(super) step: u64,
    /// The readers' positions in the checkpoint.
    pub(super) seeks: [u8; 2],
    /// The outputs' position in the checkpoint: what they held of each input.
    position: [u8; 2],
    /// The steps after the checkpoint that were journaled.
    journal: VecDeque<Content>,
    /// The last step that was written.
    last_written: u64,
    /// How much of each input was written.
    pub(super) written: [u8; 2],
    /// The steps after the checkpoint that somebody may ever have seen, crashes or not.
    seen: VecDeque<Content>,
}

impl Disk {
    pub(super) fn new() -> Self {
        Self {
            step: 0,
            seeks: [0, 0],
            position: [0, 0],
            journal: VecDeque::new(),
            last_written: 0,
            written: [0, 0],
            seen: VecDeque::new(),
        }
    }

    /// Outputs go back to the checkpoint.
    pub(super) fn recover(&mut self) {
        self.last_written = self.step;
        self.written = self.position;
    }

    pub(super) fn last_written(&self) -> u64 {
        self.last_written
    }

    pub(super) fn journal_is_empty(&self) -> bool {
        self.journal.is_empty()
    }

    pub(super) fn load(&self, model: &CommandModel, after: u64) -> Vec<JournaledStep> {
        let skipped = after.saturating_sub(self.step) as usize;
        let steps = self.journal.iter().enumerate().skip(skipped).take(LOAD_STEPS);
        let steps = steps.map(|(place, content)| JournaledStep {
            step: self.step + 1 + place as u64,
            parts: (content.iter().enumerate())
                .filter_map(|(input, cut)| {
                    let cut = (*cut)?;
                    let digest = model.sources[input].digest(cut);
                    Some(JournalPart {
                        input,
                        seek: u64::from(cut.to).into(),
                        replay: encode(cut),
                        digest,
                    })
                })
                .collect(),
        });
        steps.collect()
    }

    pub(super) fn append(&mut self, step: u64, content: Content) -> Result<(), Breach> {
        if step != self.step + self.journal.len() as u64 + 1 {
            return Err(Breach::Order);
        }
        self.journal.push_back(content);
        Ok(())
    }

    /// Writes a step to the outputs. `journals` says whether it must have been journaled.
    pub(super) fn write(
        &mut self,
        step: u64,
        content: Content,
        journals: bool,
    ) -> Result<(), Breach> {
        if step != self.last_written + 1 {
            return Err(Breach::Order);
        }
        self.last_written = step;
        let place = (step - self.step - 1) as usize;
        if journals && place >= self.journal.len() {
            return Err(Breach::Unjournaled);
        }
        if journals {
            match self.seen.get(place) {
                Some(seen) if *seen != content => return Err(Breach::Changed),
                Some(_) => {}
                None => self.seen.push_back(content),
            }
        }
        for (written, cut) in self.written.iter_mut().zip(content) {
            let Some(cut) = cut.filter(|cut| cut.from < cut.to) else { continue };
            if cut.from != *written {
                return Err(Breach::Records);
            }
            *written = cut.to;
        }
        Ok(())
    }

    /// Stores a checkpoint and trims the journal.
    pub(super) fn store(
        &mut self,
        step: u64,
        seeks: [u8; 2],
        position: [u8; 2],
    ) -> Result<(), Breach> {
        if position != self.written || seeks != self.written || step != self.last_written {
            return Err(Breach::Positions);
        }
        let covered = (step - self.step) as usize;
        self.journal.drain(..covered.min(self.journal.len()));
        self.seen.drain(..covered.min(self.seen.len()));
        (self.step, self.seeks, self.position) = (step, seeks, position);
        Ok(())
    }

    /// What decides the future, with steps counted from the checkpoint.
    pub(super) fn shape(&self) -> impl std::hash::Hash {
        let Self { step, seeks, position, journal, last_written, written, seen } = self;
        (seeks, position, journal, last_written - step, written, seen)
    }
}
