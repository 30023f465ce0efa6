//! Explores every reachable state of the shipped state machines and checks what must hold in each.

mod explore;
mod partitions;

pub use explore::{Report, Until, Verdict, explore};
pub use partitions::{
    Action, Budget, SeedModel, SeedState, Unsound, WiderAction, WiderModel, WiderState,
    check_projection, spec,
};
