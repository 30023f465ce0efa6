//! A running pipeline to people and programs: what they see, and how they steer it.
//!
//! [`Board`] is where a run and those who look at it meet; [`report`] is what they see, as JSON; [`Server`] answers them,
//! and [`Advertisement`] tells commands in the same folder where it is.

mod advertisement;
pub(crate) mod answers;
mod board;
pub(crate) mod metrics;
pub(crate) mod report;
mod server;

pub(crate) use advertisement::{Advertised, Advertisement};
pub(crate) use board::{Asked, Board, Endpoint, Facts, ReloadError, Reloaded, Wish};
#[cfg(fuzzing)]
pub(crate) use server::fuzzing;
pub(crate) use server::{CurrentToken, PROCESS, Server, ServerSettings, TlsFiles, Token};
