//! Lists of operations on the state machines: what is not allowed is refused, what is allowed keeps what must hold.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use lockgate_fuzz::schedules::{partitions, reader, sequence};

#[derive(Arbitrary, Debug)]
enum Schedule {
    Reader { level: reader::Level, ops: Vec<reader::Op> },
    Partitions { limit: u8, ops: Vec<partitions::Op> },
    Sequence { rules: sequence::Rules, ops: Vec<sequence::Op> },
}

fuzz_target!(|schedule: Schedule| {
    match schedule {
        Schedule::Reader { level, ops } => reader::run(level, &ops),
        Schedule::Partitions { limit, ops } => partitions::run(limit, &ops),
        Schedule::Sequence { rules, ops } => sequence::run(&rules, &ops),
    }
});
