//! The `lockgate` program. All of it is in the library, where the fuzz targets reach it, too.

fn main() {
    lockgate::main()
}

/// Also what librdkafka and SQLite allocate with: one thread allocates each message of a topic, another one frees it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
