//! What a round left behind: files or topics, read back and compared.

use std::fs;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::compare::{Comparer, Comparison};
use crate::pair::Output;
use crate::world::World;

/// Names and contents of files, sorted.
pub(crate) type Files = Vec<(String, Vec<u8>)>;

/// The files of a folder, those that are hidden included.
pub(crate) fn files(folder: &Path) -> Result<Files> {
    let mut files = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(files),
        entries => entries.with_context(|| format!("reading {}", folder.display()))?,
    };
    for entry in entries {
        let entry = entry?;
        files.push((entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path())?));
    }
    files.sort();
    Ok(files)
}

/// Reads what there is.
pub(crate) fn take(
    world: &World,
    output: Output,
    folder: &Path,
    topic: &str,
    comparer: &mut Comparer,
) -> Result<()> {
    if output == Output::Topic {
        return world
            .broker()?
            .read_committed(topic, |partition, value| comparer.take(partition, value));
    }
    for (name, content) in files(folder)?.iter().filter(|(name, _)| !name.starts_with('.')) {
        let text = match output {
            Output::GzipSegments => {
                let mut text = Vec::new();
                let mut decoder = flate2::read::MultiGzDecoder::new(content.as_slice());
                decoder.read_to_end(&mut text).with_context(|| format!("{name} is damaged"))?;
                text
            }
            Output::ZstdSegments => zstd::decode_all(content.as_slice())
                .with_context(|| format!("{name} is damaged"))?,
            Output::File | Output::Topic => content.clone(),
        };
        comparer.take_lines(0, &text);
    }
    Ok(())
}

/// What is there compared with what should be.
pub(crate) fn compare(
    world: &World,
    output: Output,
    folder: &Path,
    topic: &str,
    each: &[u32],
) -> Result<Comparison> {
    let mut comparer = Comparer::new(each);
    take(world, output, folder, topic, &mut comparer)?;
    Ok(comparer.end())
}

/// The files must be those of the undisturbed run.
pub(crate) fn same(found: &Files, expected: &Files) -> Result<()> {
    for (name, _) in found {
        if !expected.iter().any(|(known, _)| known == name) {
            bail!("the undisturbed run has no file {name}");
        }
    }
    for (name, content) in expected {
        let Some((_, found)) = found.iter().find(|(known, _)| known == name) else {
            bail!("there is no file {name}, which the undisturbed run has");
        };
        if found != content {
            let same = found.iter().zip(content).take_while(|(one, other)| one == other).count();
            let (length, wanted) = (found.len(), content.len());
            bail!(
                "{name} is not that of the undisturbed run: they differ from byte {same} on, with {length} bytes \
                 against {wanted}"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_the_same_or_the_first_difference_is_told() {
        let files = |files: &[(&str, &str)]| -> Files {
            files.iter().map(|(name, text)| ((*name).into(), text.as_bytes().into())).collect()
        };
        let check = |found: &[(&str, &str)], expected: &str| {
            let said = same(&files(found), &files(&[("1", "abc"), ("2", "def")]));
            let said = said.map_or_else(|error| error.to_string(), |()| "same".into());
            assert!(said.contains(expected), "{said}");
        };
        check(&[("1", "abc"), ("2", "def")], "same");
        check(&[("1", "abc")], "no file 2");
        check(&[("1", "abc"), ("2", "def"), (".2.partial", "")], "has no file .2.partial");
        check(&[("1", "abc"), ("2", "dxf")], "from byte 1 on");
        check(&[("1", "abc"), ("2", "de")], "from byte 2 on, with 2 bytes against 3");
    }
}
