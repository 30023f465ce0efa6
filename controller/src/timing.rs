//! How long what takes: from what happens and what is done, with the driver's time.
//!
//! Pure. Not here: the clock, and what the durations are shown as.

use std::collections::VecDeque;
use std::time::Duration;

use lockgate_core::{InputReaderCommand, count};

use crate::sequence::{Action, Event};
use crate::status::Status;

/// What is announced within this time counts as having arrived together, at the earliest of these times.
const TOGETHER: Duration = Duration::from_micros(200);

/// So many records arrived at this time.
type Arrival = (Duration, u64);

/// Measures the steps of one run.
#[derive(Debug)]
pub(crate) struct Stopwatch {
    /// What was announced and is in no step, by input.
    waiting: Vec<VecDeque<Arrival>>,
    /// When the inputs were asked for the step being formed.
    asked: Option<Duration>,
    /// Steps that exist and are not written yet.
    flying: VecDeque<Flying>,
}

#[derive(Debug)]
struct Flying {
    step: u64,
    exists: Duration,
    is_journaled: bool,
    writing: Duration,
    /// By input.
    arrivals: Vec<(usize, Arrival)>,
}

impl Stopwatch {
    pub(crate) fn new(inputs: usize) -> Self {
        let waiting = (0..inputs).map(|_| VecDeque::new()).collect();
        Self { waiting, asked: None, flying: VecDeque::new() }
    }

    /// Something happened.
    pub(crate) fn happened(
        &mut self,
        now: Duration,
        event: &Event,
        is_replaying: bool,
        status: &mut Status,
    ) {
        match event {
            Event::Buffered { input, amount } if !is_replaying && amount.records > 0 => {
                let waiting = &mut self.waiting[*input];
                match waiting.back_mut() {
                    Some((since, records)) if now.saturating_sub(*since) <= TOGETHER => {
                        *records += amount.records;
                    }
                    _ => waiting.push_back((now, amount.records)),
                }
            }
            Event::Discarded { input, amount } => {
                take(&mut self.waiting[*input], amount.records, |_| {});
            }
            Event::Journaled { through } => {
                let durable = self.flying.iter_mut().take_while(|step| step.step <= *through);
                for step in durable.filter(|step| !step.is_journaled) {
                    step.is_journaled = true;
                    status.durations.journal.observe(now.saturating_sub(step.exists), 1);
                }
            }
            Event::Stepped { step } => {
                if let Some(step) = self.flying.iter().find(|flying| flying.step == *step) {
                    status.durations.circuit.observe(now.saturating_sub(step.exists), 1);
                }
            }
            Event::Written { step } => {
                if self.flying.front().is_none_or(|first| first.step != *step) {
                    return;
                }
                let Some(step) = self.flying.pop_front() else { return };
                status.durations.output.observe(now.saturating_sub(step.writing), 1);
                for (input, (arrived, records)) in step.arrivals {
                    let latency = &mut status.inputs[input].latency;
                    latency.observe(now.saturating_sub(arrived), records);
                }
            }
            _ => {}
        }
    }

    /// Something is being done.
    pub(crate) fn doing(&mut self, now: Duration, action: &Action, status: &mut Status) {
        match action {
            Action::Send { command: InputReaderCommand::Queue { .. }, .. } => {
                self.asked.get_or_insert(now);
            }
            Action::Step(step) => {
                if let Some(asked) = self.asked.take() {
                    status.durations.queue.observe(now.saturating_sub(asked), 1);
                }
                let mut arrivals = Vec::with_capacity(step.parts.len());
                for part in &step.parts {
                    let arrived = |arrival| arrivals.push((part.input, arrival));
                    take(&mut self.waiting[part.input], count(&part.batches), arrived);
                }
                self.flying.push_back(Flying {
                    step: step.number,
                    exists: now,
                    is_journaled: false,
                    writing: now,
                    arrivals,
                });
            }
            Action::Write { step } => {
                let flying = self.flying.iter_mut().find(|flying| flying.step == *step);
                if let Some(flying) = flying {
                    flying.writing = now;
                }
            }
            _ => {}
        }
    }
}

/// Takes so many records from the front.
fn take(waiting: &mut VecDeque<Arrival>, records: u64, mut taken: impl FnMut(Arrival)) {
    let mut wanted = records;
    while wanted > 0
        && let Some((arrived, waits)) = waiting.front_mut()
    {
        let part = wanted.min(*waits);
        taken((*arrived, part));
        wanted -= part;
        *waits -= part;
        if *waits == 0 {
            waiting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use lockgate_core::{BatchBuilder, BufferSize, NewRecord, Part, Partition, Step};

    use super::*;
    use crate::status::InputStatus;

    const MS: Duration = Duration::from_millis(1);

    fn step(number: u64, input: usize, records: u64) -> Action {
        let partition = Partition { source: "a".into(), number: None };
        let mut batch = BatchBuilder::new(Arc::new(partition));
        for offset in 0..records {
            let (key, value, headers) = (None, Some(&b"x"[..]), &[][..]);
            let (timestamp, leader_epoch) = (None, None);
            batch.push(NewRecord { offset, timestamp, leader_epoch, key, value, headers }).unwrap();
        }
        let part = Part { input, batches: vec![batch.build()], seek: None };
        Action::Step(Step { number, parts: vec![part] })
    }

    #[test]
    fn a_record_counts_from_its_arrival_to_its_writing() {
        let inputs = vec![InputStatus::default()];
        let mut status = Status { inputs, ..Status::default() };
        let mut watch = Stopwatch::new(1);
        let buffered =
            |records| Event::Buffered { input: 0, amount: BufferSize { records, bytes: records } };
        watch.happened(MS, &buffered(2), false, &mut status);
        watch.happened(30 * MS, &buffered(3), false, &mut status);
        let command = InputReaderCommand::Queue { checkpoint_requested: false };
        watch.doing(35 * MS, &Action::Send { input: 0, command }, &mut status);
        // One of the second lot stays behind.
        watch.doing(40 * MS, &step(1, 0, 4), &mut status);
        watch.happened(42 * MS, &Event::Stepped { step: 1 }, false, &mut status);
        watch.happened(44 * MS, &Event::Journaled { through: 1 }, false, &mut status);
        watch.doing(44 * MS, &Action::Write { step: 1 }, &mut status);
        watch.happened(51 * MS, &Event::Written { step: 1 }, false, &mut status);
        assert_eq!(status.durations.queue.sum(), 5 * MS);
        assert_eq!(status.durations.circuit.sum(), 2 * MS);
        assert_eq!(status.durations.journal.sum(), 4 * MS);
        assert_eq!(status.durations.output.sum(), 7 * MS);
        let latency = &status.inputs[0].latency;
        assert_eq!((latency.count(), latency.sum()), (4, 2 * 50 * MS + 2 * 21 * MS));
        watch.doing(60 * MS, &step(2, 0, 1), &mut status);
        watch.happened(60 * MS, &Event::Written { step: 2 }, false, &mut status);
        assert_eq!(status.inputs[0].latency.sum(), (100 + 42 + 30) * MS);
    }

    #[test]
    fn what_is_replayed_did_not_arrive_now() {
        let inputs = vec![InputStatus::default()];
        let mut status = Status { inputs, ..Status::default() };
        let mut watch = Stopwatch::new(1);
        let amount = BufferSize { records: 1, bytes: 1 };
        watch.happened(MS, &Event::Buffered { input: 0, amount }, true, &mut status);
        watch.doing(2 * MS, &step(1, 0, 1), &mut status);
        watch.happened(3 * MS, &Event::Written { step: 1 }, true, &mut status);
        assert_eq!(status.inputs[0].latency.count(), 0);
    }
}
