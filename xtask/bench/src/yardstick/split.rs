//! Lines of a file, found in blocks of 1 MiB.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::Result;

pub(super) fn run(file: &Path) -> Result<()> {
    let mut file = File::open(file)?;
    let mut block = vec![0; 1 << 20];
    let mut lines = 0_u64;
    loop {
        let read = file.read(&mut block)?;
        if read == 0 {
            break;
        }
        lines +=
            memchr::memchr_iter(b'\n', &block[..read]).map(std::hint::black_box).count() as u64;
    }
    println!("{lines}");
    Ok(())
}
