//! All that happens to one pair.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::log;
use crate::outcome::{self, Files};
use crate::pair::{Input, Pair};
use crate::pipeline::SESSION_MS;
use crate::process::read_log;
use crate::round::{Round, Suffered};
use crate::schedule::{Disturbance, Moment, round_length};
use crate::source::Source;
use crate::tally::Tally;
use crate::world::World;

/// So often is tried again what came too late.
const ATTEMPTS: u32 = 5;
/// How many lines of a log are shown.
const LINES: usize = 25;

pub(crate) struct Campaign<'a> {
    world: &'a World,
    pair: Pair,
    source: &'a Source,
    /// Of an undisturbed run.
    usual: Duration,
    /// The files of an undisturbed run, where they must be the same.
    expected: Option<Files>,
    rounds: usize,
    pub(crate) tally: Tally,
}

impl<'a> Campaign<'a> {
    pub(crate) fn new(world: &'a World, pair: Pair, source: &'a Source) -> Self {
        let (usual, expected) = (Duration::ZERO, None);
        Self { world, pair, source, usual, expected, rounds: 0, tally: Tally::default() }
    }

    /// Until all is done, or something is a breach.
    pub(crate) fn run(&mut self, plan: Vec<Disturbance>) -> Result<()> {
        self.undisturbed()?;
        let mut plan = VecDeque::from(plan);
        let mut attempts = 0;
        while !plan.is_empty() {
            let needs_small_disk = plan.front().is_some_and(Disturbance::needs_small_disk);
            let round = self.round(needs_small_disk)?;
            self.watched(round, |round| {
                for _ in 0..round_length(round.input()) {
                    let Some(next) = plan.front() else { break };
                    if next.needs_small_disk() && !round.has_small_disk() {
                        break;
                    }
                    let next = earlier(next, attempts);
                    match round.suffer(&next).with_context(|| format!("{next:?}"))? {
                        Suffered::Happened => {
                            plan.pop_front();
                            attempts = 0;
                        }
                        Suffered::TooLate => {
                            attempts += 1;
                            if attempts == ATTEMPTS {
                                plan.pop_front();
                                attempts = 0;
                                round.tally.missed += 1;
                            }
                            break;
                        }
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Says how long a run takes, and what comes out.
    fn undisturbed(&mut self) -> Result<()> {
        let round = self.round(false)?;
        let begun = Instant::now();
        let mut taken = Duration::ZERO;
        let mut files = None;
        let has_fixed_bytes = self.pair.has_fixed_bytes();
        self.watched(round, |round| {
            round.finish().context("undisturbed")?;
            taken = begun.elapsed();
            if has_fixed_bytes {
                files = Some(round.files()?);
            }
            Ok(())
        })?;
        self.expected = files;
        self.usual = match self.pair.input {
            // It is fed for longer, and all the time is as good.
            Input::Followed => Duration::from_secs(1),
            // What was killed is waited for.
            Input::Group => taken + Duration::from_millis(SESSION_MS.into()),
            _ => taken,
        };
        Ok(())
    }

    fn round(&mut self, needs_small_disk: bool) -> Result<Round<'a>> {
        self.rounds += 1;
        Round::new(self.world, self.pair, self.source, self.rounds, self.usual, needs_small_disk)
    }

    /// Does something in a round and runs it to its end; what is a breach is shown and kept.
    fn watched(
        &mut self,
        mut round: Round<'a>,
        work: impl FnOnce(&mut Round<'a>) -> Result<()>,
    ) -> Result<()> {
        let done = work(&mut round).and_then(|()| self.finished(&mut round));
        self.tally.add(&round.tally);
        match done {
            Ok(()) => round.remove(),
            Err(error) => {
                round.keep();
                let path = round.last_log();
                bail!(
                    "{error:#}\n  kept: {}\n  seed: {}\n  the end of {}:\n{}",
                    round.folder().display(),
                    self.world.seed,
                    path.display(),
                    log::tail(&read_log(&path), LINES)
                );
            }
        }
    }

    fn finished(&mut self, round: &mut Round<'a>) -> Result<()> {
        round.finish().context("the run to the end")?;
        let found = round.compare()?;
        let may_double = self.pair.may_double();
        self.tally.compared(&found, may_double);
        if let Some(breach) = found.breach(may_double) {
            bail!(breach);
        }
        if let Some(expected) = &self.expected {
            outcome::same(&round.files()?, expected)?;
        }
        Ok(())
    }
}

/// What came too late comes earlier the next time.
fn earlier(disturbance: &Disturbance, attempts: u32) -> Disturbance {
    let mut earlier = disturbance.clone();
    match &mut earlier {
        Disturbance::KillInCheckpoint { number, .. } => *number = (*number >> attempts).max(1),
        Disturbance::Kill { at }
        | Disturbance::Freeze { at, .. }
        | Disturbance::FreezeLong { at }
        | Disturbance::FullState { at, .. }
        | Disturbance::FullOutput { at, .. }
        | Disturbance::Clock { at, .. }
        | Disturbance::Broker { at, .. } => *at = Moment(at.0 >> attempts),
        Disturbance::ReadOnlyState => {}
    }
    earlier
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Stage;

    #[test]
    fn what_came_too_late_comes_earlier() {
        let kill = Disturbance::Kill { at: Moment(800) };
        assert_eq!(earlier(&kill, 0), kill);
        assert_eq!(earlier(&kill, 2), Disturbance::Kill { at: Moment(200) });
        let after = Duration::ZERO;
        let aimed = |number| Disturbance::KillInCheckpoint { number, stage: Stage::Store, after };
        assert_eq!(earlier(&aimed(4), 1), aimed(2));
        assert_eq!(earlier(&aimed(4), 4), aimed(1));
    }
}
