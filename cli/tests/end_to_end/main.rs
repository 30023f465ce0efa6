//! The program as its users meet it: real processes, real files, real signals.
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

#[allow(dead_code, reason = "the tests of topics need more of it")]
mod api;
mod commands;
mod compare;
mod control;
mod crowd;
mod data;
mod disk;
mod embed;
mod kafka;
mod kill;
mod look;
mod memory;
mod promises;
mod recorded;
mod recording;
mod reload;
mod signals;
mod site;
