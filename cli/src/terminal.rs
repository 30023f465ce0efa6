//! Standard error, shared by log lines and the line of progress.

use std::io::{self, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracing_subscriber::fmt::MakeWriter;

/// The line at the bottom of a terminal; nothing where standard error is not one.
#[derive(Clone)]
pub(crate) struct Terminal {
    line: ProgressBar,
}

impl Terminal {
    /// Takes over standard error.
    pub(crate) fn start() -> Self {
        let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            line.set_style(style);
        }
        Self { line }
    }

    /// Whether a person sees the line.
    pub(crate) fn is_shown(&self) -> bool {
        !self.line.is_hidden()
    }

    /// Shows `text` at the bottom, in place of what was there.
    pub(crate) fn show(&self, text: String) {
        self.line.set_message(text);
        self.line.tick();
    }

    /// Removes the line and prints `text`.
    pub(crate) fn finish(&self, text: &str) {
        self.line.finish_and_clear();
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

impl<'a> MakeWriter<'a> for Terminal {
    type Writer = AboveLine<'a>;

    fn make_writer(&'a self) -> AboveLine<'a> {
        AboveLine { line: &self.line }
    }
}

/// Writes above the line of progress.
pub(crate) struct AboveLine<'a> {
    line: &'a ProgressBar,
}

impl Write for AboveLine<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // A log that nobody can read any more is no reason to stop.
        let _ = self.line.suspend(|| io::stderr().write_all(bytes));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
