//! The log: what is said, how it is written, and changing both while the program runs.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal};
use std::sync::Arc;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;

use crate::exit::{Code, Failed};
use crate::pipeline::{LogFormat, LogLevel, LogSettings};
use crate::terminal::Terminal;

/// The variable that says how much is logged, whatever else does.
const LEVEL: &str = "LOCKGATE_LOG";

/// The log of this process.
#[derive(Clone)]
pub(crate) struct Log {
    /// What the environment wants.
    wanted: Option<Targets>,
    change: Arc<dyn Fn(Targets, LogFormat) + Send + Sync>,
}

impl Log {
    /// Starts to log above the line of `terminal`, as `settings` say where the environment says nothing.
    pub(crate) fn start(terminal: &Terminal, settings: &LogSettings) -> Result<Self, Failed> {
        let wanted = match std::env::var(LEVEL) {
            Ok(text) => Some(wanted(&text)?),
            Err(_) => None,
        };
        let targets = wanted.clone().unwrap_or_else(|| targets(settings));
        let terminal = terminal.clone();
        let filtered = layer(&terminal, settings.format).with_filter(targets);
        let (reloaded, handle) = tracing_subscriber::reload::Layer::new(filtered);
        // A second logger in one process, as in tests, is not needed.
        let _ = tracing_subscriber::registry().with(reloaded).try_init();
        let change = move |targets, format| {
            // It lives as long as the process. A new filtered layer in its place would have no identity: the next event
            // would panic.
            let _ = handle.modify(|filtered| {
                *filtered.filter_mut() = targets;
                *filtered.inner_mut() = layer(&terminal, format);
            });
        };
        Ok(Self { wanted, change: Arc::new(change) })
    }

    /// Logs as `settings` say from now on, where the environment says nothing.
    pub(crate) fn set(&self, settings: &LogSettings) {
        let targets = self.wanted.clone().unwrap_or_else(|| targets(settings));
        (self.change)(targets, settings.format);
    }
}

/// Writes events in this format, whatever their level.
fn layer<S>(terminal: &Terminal, format: LogFormat) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let lines = tracing_subscriber::fmt::layer().with_writer(terminal.clone());
    match format {
        LogFormat::Text => lines.with_target(false).with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    }
}

fn targets(settings: &LogSettings) -> Targets {
    let targets: &BTreeMap<String, LogLevel> = &settings.targets;
    let single = targets.iter().map(|(target, level)| (target.clone(), filter(*level)));
    Targets::new().with_default(filter(settings.level)).with_targets(single)
}

fn filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// `debug`, or `info,lockgate_kafka_adapter=debug`.
fn wanted(text: &str) -> Result<Targets, Failed> {
    let refused = || {
        let message = format!(
            "{LEVEL} is {text:?}: it must be error, warn, info, debug or trace, and after a comma TARGET=LEVEL for \
             single parts"
        );
        Failed::new(Code::Usage, message)
    };
    let mut targets = Targets::new().with_default(LevelFilter::INFO);
    for part in text.split(',').map(str::trim) {
        let level = |text: &str| {
            let known = ["error", "warn", "info", "debug", "trace"];
            let is_known = known.iter().any(|known| text.eq_ignore_ascii_case(known));
            text.parse::<LevelFilter>().ok().filter(|_| is_known).ok_or_else(refused)
        };
        targets = match part.split_once('=') {
            Some((target, wanted)) if !target.is_empty() => {
                targets.with_target(target.to_owned(), level(wanted)?)
            }
            _ => targets.with_default(level(part)?),
        };
    }
    Ok(targets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn the_environment_says_how_much_of_what() {
        let check = |text: &str, kafka: Level, rest: Level| {
            let targets = wanted(text).unwrap();
            let most = |target: &str| {
                let levels = [Level::TRACE, Level::DEBUG, Level::INFO, Level::WARN, Level::ERROR];
                levels.into_iter().find(|level| targets.would_enable(target, level))
            };
            assert_eq!(
                (most("lockgate_kafka_adapter::input"), most("lockgate")),
                (Some(kafka), Some(rest))
            );
        };
        check("debug", Level::DEBUG, Level::DEBUG);
        check("WARN", Level::WARN, Level::WARN);
        check("lockgate_kafka_adapter=trace", Level::TRACE, Level::INFO);
        check("error, lockgate_kafka_adapter=debug", Level::DEBUG, Level::ERROR);
        for text in ["", "loud", "4", "off", "info,=debug", "info,kafka=", "info,kafka=loud"] {
            assert!(wanted(text).is_err(), "{text:?}");
        }
    }
}
