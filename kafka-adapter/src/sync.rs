//! What threads hand over by, for the files that do so by hand.
//!
//! They name it from here, because `tests/interleavings.rs` compiles the same files with the types of `shuttle` in its
//! place, which try the threads in every order.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, atomic};
pub(crate) use std::thread::{Thread, current};
