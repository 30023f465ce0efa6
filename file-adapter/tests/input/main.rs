//! File input, with real files, through the public traits.
#![allow(clippy::unwrap_used, clippy::panic, reason = "all of this is test code, helpers included")]

mod changing;
mod compressed;
mod following;
mod harness;
mod reading;
mod resuming;
