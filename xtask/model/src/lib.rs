//! Explores every reachable state of the shipped state machines and checks what must hold in each.

mod explore;

pub use explore::{Report, Until, Verdict, explore};
