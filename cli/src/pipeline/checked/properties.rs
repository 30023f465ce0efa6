//! Properties of a client library with their values, some of which are read from files.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::super::error::{Fault, KeyPath, quoted};
use super::super::node::Value;
use super::super::raw::{self, Property};
use super::Checker;

/// The largest file that is a secret, in bytes: larger than any certificate.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// Properties by name.
#[derive(Default)]
pub(crate) struct Properties(BTreeMap<String, String>);

impl Properties {
    /// With their values, any of which may be secret.
    pub(crate) fn reveal(&self) -> &BTreeMap<String, String> {
        &self.0
    }

    /// Their names, in order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }
}

/// Only the names.
impl fmt::Debug for Properties {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Checker<'_> {
    pub(super) fn properties(
        &self,
        path: &KeyPath,
        raw: &raw::Properties,
    ) -> Result<Properties, Fault> {
        let mut properties = BTreeMap::new();
        for (name, property) in &raw.0 {
            let path = path.key(name);
            let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
            if name.is_empty() || !name.chars().all(is_name) {
                let message = "a property's name has only letters, digits, \".\", \"_\" and \"-\"";
                return self.fault_of_key(&path, message);
            }
            let value = match property {
                Property::Value(value) => value.clone(),
                Property::File(file) => self.secret_file(&path.key("file"), file)?,
            };
            if value.contains('\0') {
                return self.fault(&path, "the value must not hold a NUL character");
            }
            properties.insert(name.clone(), value);
        }
        Ok(Properties(properties))
    }

    /// The content of the file `text`, without the newline at its end.
    pub(super) fn secret_file(&self, path: &KeyPath, text: &str) -> Result<String, Fault> {
        let file = self.path(path, text)?;
        let shown = match &self.root.nearest(path).value {
            Value::Scalar(scalar) if scalar.variables.is_empty() => {
                quoted(&file.display().to_string())
            }
            _ => "the file".to_owned(),
        };
        match read(&file) {
            Ok(value) => Ok(value),
            Err(error) => self.fault(path, format!("cannot read {shown}: {error}")),
        }
    }
}

/// The text of a file, without the newline at its end.
fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other("it is larger than 1 MiB, which no secret is"));
    }
    let mut text =
        String::from_utf8(bytes).map_err(|_| io::Error::other("it is not valid UTF-8"))?;
    if text.ends_with('\n') {
        text.pop();
        if text.ends_with('\r') {
            text.pop();
        }
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_newline_at_the_end_of_a_file_is_not_part_of_the_value() {
        let file = tempfile::NamedTempFile::new().expect("a file for the test");
        let check = |content: &[u8], expected: Option<&str>| {
            std::fs::write(file.path(), content).expect("writes");
            assert_eq!(read(file.path()).ok().as_deref(), expected);
        };
        check(b"hunter2", Some("hunter2"));
        check(b"hunter2\n", Some("hunter2"));
        check(b"hunter2\r\n", Some("hunter2"));
        check(b" hunter2\n\n", Some(" hunter2\n"));
        check(b"", Some(""));
        check(b"\xff", None);
    }
}
