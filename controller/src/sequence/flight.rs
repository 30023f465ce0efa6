//! Steps that exist and are not written yet.

use std::collections::VecDeque;

use lockgate_core::PartDigest;

use super::{Failure, JournalPart, JournaledStep};

/// **Invariant:** a step is given out to be written only after its journal entry is durable (and, for a
/// replayed one, found equal), the circuit is done with it, and every step before it was given out.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    steps: VecDeque<Flying>,
    bytes: u64,
}

/// How far a step is on the way to being safe to show.
#[derive(Clone, Debug)]
pub(super) enum Proof {
    /// It goes into the journal with the hashes of its parts.
    Journal(Vec<JournalPart>),
    /// It came out of the journal and must have these hashes.
    Compare(Vec<JournalPart>),
    /// The journal is writing it.
    Awaited,
    /// Nothing more is needed.
    Given,
}

#[derive(Clone, Debug)]
pub(super) struct Flying {
    number: u64,
    pub(super) bytes: u64,
    pub(super) proof: Proof,
    pub(super) stepped: bool,
    pub(super) writing: bool,
}

impl Flight {
    pub(super) fn push(&mut self, number: u64, bytes: u64, proof: Proof) {
        debug_assert!(self.steps.back().is_none_or(|last| last.number + 1 == number));
        self.bytes += bytes;
        self.steps.push_back(Flying { number, bytes, proof, stepped: false, writing: false });
    }

    /// The parts of a step have these digests, in their order. Gives what is to be journaled.
    ///
    /// # Errors
    /// If the step was journaled with others.
    pub(super) fn hashed(
        &mut self,
        number: u64,
        digests: &[PartDigest],
    ) -> Result<Option<JournaledStep>, Failure> {
        let Some(step) = self.steps.iter_mut().find(|step| step.number == number) else {
            return Ok(None);
        };
        let (mut parts, replayed) = match std::mem::replace(&mut step.proof, Proof::Awaited) {
            Proof::Journal(parts) => (parts, false),
            Proof::Compare(parts) => (parts, true),
            proof @ (Proof::Awaited | Proof::Given) => {
                step.proof = proof;
                return Ok(None);
            }
        };
        if parts.len() != digests.len() {
            let text =
                format!("step {number} has {} hashes for {} parts", digests.len(), parts.len());
            return Err(Failure::Bug(text));
        }
        for (part, digest) in parts.iter_mut().zip(digests) {
            if replayed && part.digest != *digest {
                return Err(Failure::Diverged {
                    step: number,
                    input: part.input,
                    seek: part.seek.clone(),
                    journaled: part.digest,
                    replayed: *digest,
                });
            }
            part.digest = *digest;
        }
        if replayed {
            step.proof = Proof::Given;
            return Ok(None);
        }
        Ok(Some(JournaledStep { step: number, parts }))
    }

    pub(super) fn journaled(&mut self, through: u64) {
        for step in self.steps.iter_mut().take_while(|step| step.number <= through) {
            if matches!(step.proof, Proof::Awaited) {
                step.proof = Proof::Given;
            }
        }
    }

    pub(super) fn stepped(&mut self, number: u64) {
        if let Some(step) = self.steps.iter_mut().find(|step| step.number == number) {
            step.stepped = true;
        }
    }

    pub(super) fn written(&mut self, number: u64) {
        if self.steps.front().is_some_and(|step| step.number == number && step.writing)
            && let Some(step) = self.steps.pop_front()
        {
            self.bytes -= step.bytes;
        }
    }

    /// The next step that may be written now; it counts as given out.
    pub(super) fn next_to_write(&mut self) -> Option<u64> {
        let next = self.steps.iter_mut().find(|step| !step.writing)?;
        next.writing = matches!(next.proof, Proof::Given) && next.stepped;
        next.writing.then_some(next.number)
    }

    /// How many hashes the step waits for.
    #[cfg(test)]
    pub(super) fn hashes_wanted(&self, number: u64) -> usize {
        let step = self.steps.iter().find(|step| step.number == number);
        match step.map(|step| &step.proof) {
            Some(Proof::Journal(parts) | Proof::Compare(parts)) => parts.len(),
            _ => 0,
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Flying> {
        self.steps.iter()
    }

    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_waits_for_journal_circuit_and_the_steps_before_it() {
        let mut flight = Flight::default();
        flight.push(1, 10, Proof::Journal(Vec::new()));
        flight.push(2, 20, Proof::Given);
        flight.stepped(2);
        assert_eq!(flight.next_to_write(), None);
        flight.stepped(1);
        assert_eq!(flight.next_to_write(), None);
        flight.journaled(2);
        assert_eq!(flight.next_to_write(), None, "it has not even been hashed");
        assert_eq!(flight.hashed(1, &[]).unwrap().unwrap().step, 1);
        assert_eq!(flight.next_to_write(), None);
        flight.journaled(1);
        assert_eq!(flight.next_to_write(), Some(1));
        assert_eq!(flight.next_to_write(), Some(2));
        assert_eq!(flight.next_to_write(), None);
        flight.written(1);
        assert_eq!((flight.len(), flight.bytes()), (1, 20));
        flight.written(2);
        assert!(flight.is_empty());
    }
}
