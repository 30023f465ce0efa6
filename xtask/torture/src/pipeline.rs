//! The pipeline file of a round.

use std::path::Path;

use crate::pair::{Output, Pair};
use crate::process::Manner;
use crate::source::{Place, Source};

/// How long the broker waits for a silent member of a group.
pub(crate) const SESSION_MS: u32 = 1500;
/// So that there is something to read for two seconds, which are more than a session.
const GROUP_RATE: u32 = 60_000;
/// How long a transaction may last, where it may not last long.
pub(crate) const SHORT_TRANSACTION_MS: u32 = 2000;

/// The file that is followed, and those that are written, in the folder of the round.
pub(crate) const GROWING: &str = "growing.log";
pub(crate) const STATE: &str = "state";
pub(crate) const OUT: &str = "out";

/// What is filled in.
pub(crate) struct Pipeline<'a> {
    pub(crate) name: &'a str,
    pub(crate) pair: Pair,
    pub(crate) source: &'a Source,
    pub(crate) servers: &'a str,
    /// The topic that is written, if one is.
    pub(crate) to: &'a str,
    pub(crate) manner: Manner,
}

impl Pipeline<'_> {
    pub(crate) fn text(&self) -> String {
        let delivery = if self.pair.may_double() { "at_least_once" } else { "exactly_once" };
        format!(
            "name: {}\ndelivery: {delivery}\nstate: {STATE}\ncheckpoint_interval: 50ms\n\
             min_batch_records: 100\nmax_batch_records: 200\n\
             inputs:\n  in: {}\noutputs:\n  out: {}\n",
            self.name,
            self.input(),
            self.output()
        )
    }

    fn input(&self) -> String {
        let shown = |path: &Path| path.display().to_string();
        match &self.source.place {
            Place::Folder(folder) => format!("{{file: {{paths: \"{}/*\"}}}}", shown(folder)),
            Place::Growing(_) => {
                let follow = self.manner != Manner::ToTheEnd;
                format!("{{file: {{paths: {GROWING}, follow: {follow}}}}}")
            }
            Place::Recording(take) => {
                format!("{{recording: {{path: \"{}\", input: in}}}}", shown(take))
            }
            Place::Topic(topic) => {
                let from = format!("brokers: \"{}\", topic: {topic}", self.servers);
                if self.source.input.ends() {
                    return format!("{{kafka: {{{from}, stop_at: end}}}}");
                }
                let (group, heartbeat) = (self.name, SESSION_MS / 5);
                format!(
                    "{{kafka: {{{from}, max_records_per_second: {GROUP_RATE}, mode: group, group: {group}, \
                     properties: {{\"session.timeout.ms\": {SESSION_MS}, \"heartbeat.interval.ms\": {heartbeat}}}}}}}"
                )
            }
        }
    }

    fn output(&self) -> String {
        let segments = |compression: &str, ending: &str| {
            format!(
                "{{file: {{path: \"{OUT}/{{segment}}.{ending}\", segment_records: 7001, compression: {compression}}}}}"
            )
        };
        match self.pair.output {
            Output::File => format!("{{file: {{path: {OUT}/all.log}}}}"),
            Output::GzipSegments => segments("gzip", "gz"),
            Output::ZstdSegments => segments("zstd", "zst"),
            Output::Topic => {
                let partition = if self.pair.input.is_kafka() { "kept" } else { "by_key" };
                let timeout = match self.manner {
                    Manner::ShortTimeouts => {
                        format!(
                            ", properties: {{\"transaction.timeout.ms\": {SHORT_TRANSACTION_MS}}}"
                        )
                    }
                    _ => String::new(),
                };
                format!(
                    "{{kafka: {{brokers: \"{}\", topic: {}, partition: {partition}{timeout}}}}}",
                    self.servers, self.to
                )
            }
        }
    }
}
