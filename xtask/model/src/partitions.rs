//! The models of the partition contexts.

mod client;
mod seed;
mod soundness;
pub mod spec;
mod wider;
mod words;

pub use seed::{Action, SeedModel, SeedState};
pub use soundness::{Unsound, check_projection};
pub use wider::{Budget, WiderAction, WiderModel, WiderState};
