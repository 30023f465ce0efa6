//! `lockgate init`: a pipeline to start from.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::Path;

use super::print;
use crate::exit::{Code, Failed};

const FILES: [(&str, &str); 2] = [
    ("pipeline.yaml", include_str!("../starter/pipeline.yaml")),
    ("in/orders.log", include_str!("../starter/orders.log")),
];

pub(crate) fn init(directory: &Path) -> Result<(), Failed> {
    // All or nothing: look before writing.
    for (name, _) in FILES {
        let path = directory.join(name);
        if path.exists() {
            let message = format!("{} exists; name another directory", path.display());
            return Err(Failed::new(Code::Usage, message));
        }
    }
    for (name, content) in FILES {
        write(&directory.join(name), content)?;
    }
    let pipeline = directory.join("pipeline.yaml");
    print(&format!("wrote {0}\nrun it with: lockgate run {0}\n", pipeline.display()))
}

fn write(path: &Path, content: &str) -> Result<(), Failed> {
    let create = || {
        fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
        File::create_new(path)?.write_all(content.as_bytes())
    };
    create().map_err(|error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Failed::new(Code::Usage, format!("{} exists; name another directory", path.display()))
        }
        _ => Failed::storage(format!("writing {}", path.display()), &error),
    })
}
