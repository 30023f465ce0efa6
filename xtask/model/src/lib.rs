//! Explores every reachable state of the shipped state machines and checks what must hold in each.

mod command;
mod explore;
mod partitions;

pub use command::{
    Breach, CommandAction, CommandModel, CommandState, Defect, check_ends, check_shape,
    command_models,
};
pub use explore::{Report, Until, Verdict, explore};
pub use partitions::{
    Action, Budget, SeedModel, SeedState, Unsound, WiderAction, WiderModel, WiderState,
    check_projection, spec,
};
