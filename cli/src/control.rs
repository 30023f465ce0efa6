//! A running pipeline to people and programs: what they see, and how they steer it.
//!
//! [`Board`] is where a run and those who look at it meet; [`report`] is what they see, as JSON.

mod board;
pub(crate) mod metrics;
pub(crate) mod report;

pub(crate) use board::{Asked, Board, Endpoint, Facts, ReloadError, Reloaded, Wish};
