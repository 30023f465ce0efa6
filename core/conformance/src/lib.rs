//! Holds an input reader against the rules of the protocol.
//!
//! Give it a way to open your reader over data that you know. It opens the reader many times, at every level
//! of fault tolerance that the endpoint has, and drives it through random schedules of commands: always legal
//! ones, since [`ReaderProtocol`](lockgate_core::ReaderProtocol) is asked before each. It crashes the reader
//! at any point (and in one whole schedule at every point), opens it again at the last checkpoint, replays
//! the journaled steps, and reads on. Limits and batch sizes change from schedule to schedule and are often
//! narrow. What comes out must be the known data, and every answer must keep the rules.
//!
//! ```
//! # use std::sync::{Arc, Mutex};
//! # use lockgate_core::*;
//! # struct Words;
//! # impl InputEndpoint for Words {
//! #     fn fault_tolerance(&self) -> FaultTolerance { FaultTolerance::ExactlyOnce }
//! #     fn open(
//! #         self: Box<Self>, level: FaultTolerance, consumer: Arc<dyn InputConsumer>,
//! #         resume: Option<serde_json::Value>,
//! #     ) -> Result<Box<dyn InputReader>, EndpointError> {
//! #         let records = ["fill", "close", "let out"].map(MemoryRecord::of).to_vec();
//! #         Box::new(MemoryInput::new("words", records)).open(level, consumer, resume)
//! #     }
//! # }
//! use lockgate_conformance::{Conformance, Known};
//!
//! # // In a test this function has the attribute #[test].
//! fn words_keep_the_rules() {
//!     let words = ["fill", "close", "let out"];
//!     let known = words.map(|word| Known::new("words", word).partition(0));
//!     Conformance::new(|| Words) // your `InputEndpoint`
//!         .holds(known)
//!         .answers_at_once() // leave this out if your reader has threads
//!         .check();
//! }
//! # words_keep_the_rules();
//! ```
//!
//! When a rule is broken, the test fails with a [`Report`]: the rule, what was expected and what came, the
//! seed that repeats it (`LOCKGATE_CONFORMANCE_SEED=7 cargo test`), and the shortest schedule found that fails
//! in the same way, with everything that the reader said meanwhile.
//!
//! # What is checked
//!
//! Each [`Rule`] has a name that stays, and its documentation says what it demands.
//!
//! | when | rules |
//! |---|---|
//! | opening | [`reads-good-data`](Rule::ReadsGoodData), [`opens-at-its-positions`](Rule::OpensAtItsPositions), [`quiet-until-extend`](Rule::QuietUntilExtend) |
//! | reading | [`reads-when-extended`](Rule::ReadsWhenExtended), [`starts-at-resume-point`](Rule::StartsAtResumePoint), [`stops-at-pause`](Rule::StopsAtPause), [`keeps-queue-limits`](Rule::KeepsQueueLimits) |
//! | answering | [`answers-queue`](Rule::AnswersQueue), [`answers-replay`](Rule::AnswersReplay), [`answers-only-when-asked`](Rule::AnswersOnlyWhenAsked), [`hands-over-what-it-holds`](Rule::HandsOverWhatItHolds), [`announces-what-it-buffers`](Rule::AnnouncesWhatItBuffers), [`announces-replays`](Rule::AnnouncesReplays), [`keeps-max-batch-size`](Rule::KeepsMaxBatchSize), [`keeps-its-promise`](Rule::KeepsItsPromise) |
//! | ending | [`reports-end`](Rule::ReportsEnd), [`nothing-after-end`](Rule::NothingAfterEnd), [`clears-barrier-at-end`](Rule::ClearsBarrierAtEnd), [`drains-before-closing`](Rule::DrainsBeforeClosing), [`finishes-its-answer`](Rule::FinishesItsAnswer), [`reports-error-before-closing`](Rule::ReportsErrorBeforeClosing), [`quiet-after-fatal-error`](Rule::QuietAfterFatalError), [`does-not-panic`](Rule::DoesNotPanic), [`closes-after-disconnect`](Rule::ClosesAfterDisconnect) |
//! | the data | [`nothing-lost`](Rule::NothingLost), [`nothing-doubled`](Rule::NothingDoubled), [`keeps-order`](Rule::KeepsOrder), [`keeps-content`](Rule::KeepsContent), [`replays-the-same`](Rule::ReplaysTheSame) |
//!
//! What a level promises decides what a crash may cost. At exactly-once the journaled steps must come again,
//! record for record; at at-least-once what came after the checkpoint is forgotten and comes again, cut in any
//! way; without fault tolerance a reader is never crashed, and one reading must be complete.
//!
//! # What is not checked
//!
//! - That `request` does not block: a reader that hangs inside `request`, `is_closed` or `drop` hangs the test.
//! - That Pause stops a reading thread from reading. What can be seen is that it announces nothing more.
//! - That a reader with threads says nothing before Extend, if it is slow to say it: nobody waits for that.
//! - That a wanted checkpoint makes the reader stop at a good place: `checkpoint_requested` is a hint. Only at
//!   the end of its input must the reader stand at one.
//! - Errors that are not fatal, and policies: they are shown in reports and nothing more.
//! - Whether a source that changed is noticed. The known data stays as it is.

mod desk;
mod failing;
mod journal;
mod kit;
mod known;
mod life;
mod random;
mod report;
mod rule;
mod run;
mod schedule;
mod shrink;
mod truth;

pub use kit::Conformance;
pub use known::Known;
pub use report::{Report, Summary};
pub use rule::Rule;
