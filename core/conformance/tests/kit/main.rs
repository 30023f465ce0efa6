//! The kit held against readers that keep the rules, and against readers that each break one.
#![allow(clippy::unwrap_used, clippy::panic, reason = "all of this is test code, helpers included")]

// The example is the program that strangers copy.
#[path = "../../../examples/custom_input.rs"]
#[allow(dead_code, reason = "only its input is used here")]
mod custom_input;

mod broken;
mod readers;
mod threaded;
