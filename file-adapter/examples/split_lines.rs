//! The yardstick of `cargo xtask bench`: reads a file in blocks of 1 MiB, finds the newlines, and does
//! nothing else. `cargo run --release -p lockgate-file-adapter --example split_lines -- FILE`

use std::fs::File;
use std::io::Read;

fn main() -> std::io::Result<()> {
    let Some(path) = std::env::args().nth(1) else {
        return Err(std::io::Error::other("usage: split_lines FILE"));
    };
    let mut file = File::open(path)?;
    let mut block = vec![0; 1 << 20];
    let mut lines = 0u64;
    loop {
        let len = file.read(&mut block)?;
        if len == 0 {
            break;
        }
        // Each newline is visited, as a splitter must; counting alone could skip over them.
        for newline in memchr::memchr_iter(b'\n', &block[..len]) {
            lines += 1;
            std::hint::black_box(newline);
        }
    }
    println!("{lines}");
    Ok(())
}
