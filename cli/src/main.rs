//! The `lockgate` program. All of it is in the library, where the fuzz targets reach it, too.
#![allow(unsafe_code, reason = "no safe crate sets an option of the allocator")]

use std::ffi::{c_int, c_long};

/// Also what librdkafka and SQLite allocate with: one thread allocates each message of a topic, another one frees it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of `mimalloc.h`: after so many milliseconds memory that is not used is given back.
const PURGE_DELAY: c_int = 15;

/// By default it is a second, in which a busy topic fills what it just freed once more: twice the memory. Giving it back
/// at once takes a third more time.
const PURGE_DELAY_MS: c_long = 10;

fn main() {
    // SAFETY: a number is stored in a table that has more than fifteen.
    unsafe { libmimalloc_sys::mi_option_set(PURGE_DELAY, PURGE_DELAY_MS) };
    lockgate::main()
}
