//! The `lockgate` program. All of it is in the library, where the fuzz targets reach it, too.

fn main() {
    lockgate::main()
}
