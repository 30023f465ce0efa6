//! What a test says: which reader, which data, how many schedules.

use std::time::Duration;

use lockgate_core::{FaultTolerance, InputEndpoint};

use crate::failing::read_until_failure;
use crate::known::Known;
use crate::life::Patience;
use crate::report::{Report, Summary};
use crate::rule::Rule;
use crate::run::{Case, Outcome, carry_out};
use crate::schedule::{Amount, Schedule};
use crate::shrink::shrink;
use crate::truth::Truth;

/// Names the environment variable that has one seed repeated.
pub(crate) const SEED_VARIABLE: &str = "LOCKGATE_CONFORMANCE_SEED";

const SCHEDULES: u64 = 50;
const DEADLINE: Duration = Duration::from_secs(10);

const LEVELS: [FaultTolerance; 3] =
    [FaultTolerance::None, FaultTolerance::AtLeastOnce, FaultTolerance::ExactlyOnce];

type Open<'a> = Box<dyn Fn() -> Box<dyn InputEndpoint> + 'a>;

/// Holds a reader against the rules. See the front page for what is checked.
pub struct Conformance<'a> {
    open: Open<'a>,
    failing: Option<Open<'a>>,
    truth: Truth,
    schedules: u64,
    seed: u64,
    patience: Patience,
    is_endless: bool,
}

impl<'a> Conformance<'a> {
    /// A test of the readers that `endpoint` opens: always over the same data, which are stated with
    /// [`holds`](Self::holds).
    pub fn new<E: InputEndpoint + 'static>(endpoint: impl Fn() -> E + 'a) -> Self {
        Self {
            open: boxed(endpoint),
            failing: None,
            truth: Truth::default(),
            schedules: SCHEDULES,
            seed: 0,
            patience: Patience::Until(DEADLINE),
            is_endless: false,
        }
    }

    /// The source holds these records. Those of one partition are stated in their order; the order of
    /// different partitions is free. Some dozens of records are enough, some hundreds are plenty.
    #[must_use]
    pub fn holds(mut self, records: impl IntoIterator<Item = Known>) -> Self {
        records.into_iter().for_each(|known| self.truth.add(known));
        self
    }

    /// The reader does everything inside `request` and needs no time: an answer that is not there when the
    /// call returns is missing, and nothing is ever waited for.
    #[must_use]
    pub fn answers_at_once(mut self) -> Self {
        self.patience = Patience::None;
        self
    }

    /// How long an answer may take; 10 seconds unless stated. Readers that answer at once need none.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.patience = Patience::Until(deadline);
        self
    }

    /// The source may go on for ever, so the reader never reports its end.
    #[must_use]
    pub fn endless(mut self) -> Self {
        self.is_endless = true;
        self
    }

    /// Besides, an endpoint over data which its reader opens but cannot read to the end: a fatal error must
    /// be reported.
    #[must_use]
    pub fn fails<E: InputEndpoint + 'static>(mut self, endpoint: impl Fn() -> E + 'a) -> Self {
        self.failing = Some(boxed(endpoint));
        self
    }

    /// How many random schedules are tried at each level; 50 unless stated.
    #[must_use]
    pub fn schedules(mut self, schedules: u64) -> Self {
        self.schedules = schedules;
        self
    }

    /// The seed of the first schedule; those that follow have the next numbers. 0 unless stated. The
    /// environment variable `LOCKGATE_CONFORMANCE_SEED` repeats one seed alone.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Checks every rule.
    ///
    /// # Panics
    /// With the report of the first rule that is broken.
    #[track_caller]
    pub fn check(self) {
        if let Err(report) = self.run() {
            #[allow(clippy::panic, reason = "this is how a test fails")]
            {
                panic!("{report}");
            }
        }
    }

    /// Checks every rule, and says how much was checked.
    ///
    /// # Errors
    /// The report of the first rule that is broken.
    ///
    /// # Panics
    /// If the test asks for no schedules, or `LOCKGATE_CONFORMANCE_SEED` is not a number.
    pub fn run(self) -> Result<Summary, Box<Report>> {
        let strongest = (self.open)().fault_tolerance();
        let repeated = std::env::var(SEED_VARIABLE).ok().map(|seed| {
            seed.parse().unwrap_or_else(|_| usage(&format!("{SEED_VARIABLE}={seed} is no number")))
        });
        let seeds = match repeated {
            Some(seed) => seed..=seed,
            None if self.schedules == 0 => usage("no schedules: nothing would be checked"),
            None => self.seed..=self.seed + (self.schedules - 1),
        };
        let amount = Amount { records: self.truth.records(), bytes: self.truth.bytes() };
        let mut summary = Summary::default();
        for level in LEVELS.into_iter().filter(|level| *level <= strongest) {
            for seed in seeds.clone() {
                let schedule = Schedule::random(seed, level, amount);
                summary.add(self.hold(&schedule)?);
                if seed != *seeds.start() {
                    continue;
                }
                for story in schedule.stories(amount) {
                    summary.add(self.hold(&story)?);
                }
                // One whole schedule is crashed at every point.
                if level > FaultTolerance::None {
                    for crashed in schedule.crashed_everywhere(amount) {
                        summary.add(self.hold(&crashed)?);
                    }
                }
            }
            if let Some(failing) = &self.failing {
                let result = read_until_failure(failing(), level, self.patience);
                result.map_err(|(fault, trace)| Report {
                    fault,
                    level,
                    seed: None,
                    trace,
                    found_after: 0,
                })?;
                summary.readers += 1;
            }
        }
        Ok(summary)
    }

    fn hold(&self, schedule: &Schedule) -> Result<Summary, Box<Report>> {
        let case = Case {
            open: &self.open,
            truth: &self.truth,
            patience: self.patience,
            is_endless: self.is_endless,
        };
        let Outcome { trace, summary, fault } = carry_out(case, schedule);
        let Some((fault, begun)) = fault else { return Ok(summary) };
        let report = |fault, trace| {
            let (level, seed) = (schedule.level, Some(schedule.seed));
            Box::new(Report { fault, level, seed, trace, found_after: begun })
        };
        if fault.rule == Rule::DoesNotPanic {
            // Each attempt would print the panic again.
            return Err(report(fault, trace));
        }
        match shrink(case, schedule, fault.rule, begun) {
            Some((_, Outcome { trace, fault: Some((fault, _)), .. })) => Err(report(fault, trace)),
            _ => Err(report(fault, trace)),
        }
    }
}

fn boxed<'a, E: InputEndpoint + 'static>(endpoint: impl Fn() -> E + 'a) -> Open<'a> {
    Box::new(move || Box::new(endpoint()))
}

/// The test itself is wrong.
fn usage(text: &str) -> ! {
    #[allow(clippy::panic, reason = "this is how a test fails")]
    {
        panic!("{text}");
    }
}
