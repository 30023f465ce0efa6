//! What is said when a rule is broken: a report that stands alone.

use std::fmt;

use lockgate_core::FaultTolerance;

use crate::kit::SEED_VARIABLE;
use crate::rule::Rule;

/// Which rule was broken, and how.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) rule: Rule,
    pub(crate) expected: String,
    pub(crate) came: String,
}

impl Fault {
    pub(crate) fn new(rule: Rule, expected: impl Into<String>, came: impl Into<String>) -> Self {
        Self { rule, expected: expected.into(), came: came.into() }
    }
}

/// A number of records, in words.
pub(crate) struct Counted(pub(crate) u64);

impl fmt::Display for Counted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} record{}", self.0, if self.0 == 1 { "" } else { "s" })
    }
}

/// What was done, and what the reader reported meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trace {
    pub(crate) lines: Vec<Line>,
}

#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) done: String,
    pub(crate) said: Vec<String>,
}

/// Of a long exchange, so many lines from its beginning and from its end are shown.
const SHOWN: usize = 6;

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Line { done, said }) in self.lines.iter().enumerate() {
            writeln!(f, "{:>4}. {done}", number + 1)?;
            for (place, said) in said.iter().enumerate() {
                let left_out = self.left_out(number);
                if place == SHOWN && left_out > 0 {
                    writeln!(f, "        ... {left_out} more ...")?;
                }
                if place < SHOWN || place >= SHOWN + left_out {
                    writeln!(f, "        {said}")?;
                }
            }
        }
        Ok(())
    }
}

impl Trace {
    fn left_out(&self, number: usize) -> usize {
        let left_out = self.lines[number].said.len().saturating_sub(2 * SHOWN);
        // One line is not worth being left out.
        if left_out > 1 { left_out } else { 0 }
    }
}

/// A broken rule: which one, on what schedule, what was expected and what came. Its text is made to be
/// read by someone who knows neither the kit nor the test.
#[derive(Clone)]
pub struct Report {
    pub(crate) fault: Fault,
    pub(crate) level: FaultTolerance,
    /// `None`: the schedule is always the same one.
    pub(crate) seed: Option<u64>,
    /// The shortest schedule that was found to fail in this way, with the reader's answers.
    pub(crate) trace: Trace,
    /// How many operations the schedule had on which the fault was found.
    pub(crate) found_after: usize,
}

impl Report {
    /// The rule that was broken.
    pub fn rule(&self) -> Rule {
        self.fault.rule
    }

    /// What the rule demanded.
    pub fn expected(&self) -> &str {
        &self.fault.expected
    }

    /// What the reader did instead.
    pub fn came(&self) -> &str {
        &self.fault.came
    }

    /// The level with which the reader was opened.
    pub fn level(&self) -> FaultTolerance {
        self.level
    }

    /// The seed that repeats the fault; `None` if every seed does.
    pub fn seed(&self) -> Option<u64> {
        self.seed
    }

    /// How many operations the shortest failing schedule has.
    pub fn operations(&self) -> usize {
        // The first line is the opening.
        self.trace.lines.len().saturating_sub(1)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { rule, expected, came } = &self.fault;
        writeln!(f, "the reader breaks the rule `{rule}`")?;
        writeln!(f, "{}\n", rule.text())?;
        writeln!(f, "level:    {:?}", self.level)?;
        writeln!(f, "expected: {expected}")?;
        writeln!(f, "came:     {came}")?;
        if let Some(seed) = self.seed {
            writeln!(f, "seed:     {seed}; {}={seed} repeats it", SEED_VARIABLE)?;
        }
        let shortest = self.operations();
        if self.found_after > shortest {
            let found = self.found_after;
            writeln!(
                f,
                "\nIt was found after {found} operations. The shortest schedule found that fails so:"
            )?;
        } else {
            writeln!(f, "\nThe schedule:")?;
        }
        write!(f, "{}", self.trace)
    }
}

/// The text again, so that `unwrap` shows it.
impl fmt::Debug for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl std::error::Error for Report {}

/// How much was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Summary {
    /// Schedules carried out, over all levels.
    pub schedules: usize,
    /// Readers opened.
    pub readers: usize,
    /// Steps taken.
    pub steps: usize,
    /// Steps replayed.
    pub replays: usize,
    /// Records compared, replays included.
    pub records: usize,
    /// Crashes.
    pub crashes: usize,
    /// Checkpoints taken.
    pub checkpoints: usize,
}

impl Summary {
    pub(crate) fn add(&mut self, other: Summary) {
        self.schedules += other.schedules;
        self.readers += other.readers;
        self.steps += other.steps;
        self.replays += other.replays;
        self.records += other.records;
        self.crashes += other.crashes;
        self.checkpoints += other.checkpoints;
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { schedules, readers, steps, replays, records, crashes, checkpoints } = self;
        write!(
            f,
            "{schedules} schedules, {readers} readers, {steps} steps, {replays} replays, {records} records, \
             {crashes} crashes, {checkpoints} checkpoints"
        )
    }
}
