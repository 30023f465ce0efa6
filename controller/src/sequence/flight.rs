//! Steps that exist and are not written yet.

use std::collections::VecDeque;

/// **Invariant:** a step is given out to be written only after its journal entry is durable, the circuit
/// is done with it, and every step before it was given out.
#[derive(Debug, Default)]
pub(super) struct Flight {
    steps: VecDeque<Flying>,
    bytes: u64,
}

#[derive(Debug)]
struct Flying {
    number: u64,
    bytes: u64,
    durable: bool,
    stepped: bool,
    writing: bool,
}

impl Flight {
    pub(super) fn push(&mut self, number: u64, bytes: u64, durable: bool) {
        debug_assert!(self.steps.back().is_none_or(|last| last.number + 1 == number));
        self.bytes += bytes;
        self.steps.push_back(Flying { number, bytes, durable, stepped: false, writing: false });
    }

    pub(super) fn journaled(&mut self, through: u64) {
        let covered = self.steps.iter_mut().take_while(|step| step.number <= through);
        covered.for_each(|step| step.durable = true);
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
        next.writing = next.durable && next.stepped;
        next.writing.then_some(next.number)
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
        flight.push(1, 10, false);
        flight.push(2, 20, true);
        flight.stepped(2);
        assert_eq!(flight.next_to_write(), None);
        flight.stepped(1);
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
