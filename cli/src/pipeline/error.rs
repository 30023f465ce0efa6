//! Where something stands in the pipeline file and what is wrong with it.
//!
//! For naming a place (line, column, key path) and rendering a fault as one line. Deliberately not
//! for deciding what is a fault, and never a carrier of values that came from the environment:
//! whoever writes a message here takes the words for a value from [`Node::found`].
//!
//! [`Node::found`]: super::node::Node::found

use std::fmt;
use std::io;

/// The longest piece of the file's own text that a message repeats, in characters.
const MAX_QUOTED_CHARS: usize = 60;

/// A place in the file's text; both count from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    /// The line.
    pub(crate) line: usize,
    /// The column, in characters.
    pub(crate) column: usize,
}

impl Position {
    /// The first character of the file.
    pub(crate) const START: Position = Position { line: 1, column: 1 };

    /// The same place, or the end of `text` where that is before it: a parser may find at the beginning of a line that
    /// is not there that something is missing.
    pub(crate) fn within(self, text: &str) -> Self {
        let text = text.replace("\r\n", "\n");
        let is_break = |c| matches!(c, '\n' | '\r');
        let last = text.matches(is_break).count() + 1;
        if self.line <= last {
            return self;
        }
        let end = text.rsplit(is_break).next().unwrap_or_default();
        Self { line: last, column: end.chars().count() + 1 }
    }
}

/// One step down into the tree of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// The value of this key of a mapping.
    Key(String),
    /// The element of a list, counted from 0.
    Index(usize),
}

/// The way from the root of the file to a value: `inputs.orders.file.paths[0]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct KeyPath(Vec<Step>);

impl KeyPath {
    /// The path of the whole file; it renders as nothing.
    pub(crate) fn root() -> Self {
        Self::default()
    }

    /// The path of the value of `key`, one step below `self`.
    pub(crate) fn key(&self, key: &str) -> Self {
        self.then(Step::Key(key.to_owned()))
    }

    /// The path of element `index`, one step below `self`.
    pub(crate) fn index(&self, index: usize) -> Self {
        self.then(Step::Index(index))
    }

    /// The steps, from the root down.
    pub(crate) fn steps(&self) -> &[Step] {
        &self.0
    }

    /// The path of its first `depth` steps.
    pub(crate) fn top(&self, depth: usize) -> Self {
        Self(self.0.iter().take(depth).cloned().collect())
    }

    /// Whether a value here may be a secret, however it is written: properties of a client library and what stands
    /// below them.
    pub(crate) fn may_be_secret(&self) -> bool {
        // `inputs.NAME.KIND.properties`
        matches!(self.0.get(3), Some(Step::Key(key)) if key == "properties")
    }

    fn then(&self, step: Step) -> Self {
        let mut steps = self.0.clone();
        steps.push(step);
        Self(steps)
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.0.iter().enumerate() {
            match step {
                Step::Key(key) => {
                    if depth > 0 {
                        f.write_str(".")?;
                    }
                    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
                    let short = (1..=MAX_QUOTED_CHARS).contains(&key.len());
                    if short && key.chars().all(plain) {
                        f.write_str(key)?;
                    } else {
                        f.write_str(&quoted(key))?;
                    }
                }
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

/// `text` in quotes for a message: control characters escaped, long text cut.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        None => format!("{text:?}"),
        Some((end, _)) => format!("{:?}...", &text[..end]),
    }
}

/// What is wrong, and where.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Where to look in the file.
    pub(crate) position: Position,
    /// The value it is about.
    pub(crate) path: KeyPath,
    /// What is wrong and what would be right, in one line.
    pub(crate) message: String,
}

/// Why there is no pipeline to run.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PipelineError {
    /// The file could not be read at all.
    #[error("{file}: cannot read the pipeline file")]
    Unreadable {
        /// The file as it was named.
        file: String,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file says something that cannot be run.
    #[error("{}", located(file, fault))]
    Invalid {
        /// The file as it was named.
        file: String,
        /// The first fault found.
        fault: Fault,
    },
}

/// `file:line:column: key.path: message`, the path left out for the whole file.
fn located(file: &str, fault: &Fault) -> String {
    let Position { line, column } = fault.position;
    let path = match fault.path.steps() {
        [] => String::new(),
        _ => format!("{}: ", fault.path),
    };
    format!("{file}:{line}:{column}: {path}{}", fault.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_reads_like_the_file() {
        let check = |path: KeyPath, expected: &str| assert_eq!(path.to_string(), expected);
        let inputs = KeyPath::root().key("inputs");
        check(KeyPath::root(), "");
        check(inputs.key("a-b").key("paths").index(0), "inputs.a-b.paths[0]");
        check(inputs.key("a.b").key("file"), "inputs.\"a.b\".file");
        check(inputs.key(""), "inputs.\"\"");
        check(inputs.key("a\n\u{1b}[31m"), "inputs.\"a\\n\\u{1b}[31m\"");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let check = |text: &str, expected: &str| assert_eq!(quoted(text), expected);
        check("short", "\"short\"");
        check(&"é".repeat(60), &format!("\"{}\"", "é".repeat(60)));
        check(&"é".repeat(61), &format!("\"{}\"...", "é".repeat(60)));
    }
}
