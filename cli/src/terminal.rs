//! Standard error, shared by log lines and the line of progress.

use std::io::{self, IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::MakeWriter;

use crate::exit::{Code, Failed};

/// The variable with the level of the log.
const LEVEL: &str = "LOCKGATE_LOG";

/// The line at the bottom of a terminal; nothing where standard error is not one.
#[derive(Clone)]
pub(crate) struct Terminal {
    line: ProgressBar,
}

impl Terminal {
    /// Takes over standard error and starts logging to it, at the level that the environment asks for.
    pub(crate) fn start() -> Result<Self, Failed> {
        let line = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg}") {
            line.set_style(style);
        }
        let terminal = Self { line };
        let level = match std::env::var(LEVEL) {
            Ok(level) => level.parse().map_err(|_| {
                let message =
                    format!("{LEVEL} is {level:?}: it must be error, warn, info, debug or trace");
                Failed::new(Code::Usage, message)
            })?,
            Err(_) => LevelFilter::INFO,
        };
        // A second logger in one process, as in tests, is not needed.
        let _ = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_target(false)
            .with_ansi(io::stderr().is_terminal())
            .with_writer(terminal.clone())
            .try_init();
        Ok(terminal)
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
