//! The pairs of a kind of input and a kind of output, and what is promised for each.
//!
//! Standard output is none of them: what was printed cannot be taken back, so exactly once refuses it. Nor are
//! segments behind a consumer group: the last of them is complete only when the input ends, which a group never does.

/// Where records come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Plain,
    Gzip,
    Zstd,
    /// A file that grows while it is read.
    Followed,
    Recording,
    /// A topic, all partitions assigned.
    Topic,
    /// A topic, partitions dealt out by a consumer group.
    Group,
}

/// Where they go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// One file that grows.
    File,
    GzipSegments,
    ZstdSegments,
    /// A topic, in transactions.
    Topic,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    pub(crate) input: Input,
    pub(crate) output: Output,
}

const INPUTS: [Input; 7] = [
    Input::Plain,
    Input::Gzip,
    Input::Zstd,
    Input::Followed,
    Input::Recording,
    Input::Topic,
    Input::Group,
];

const OUTPUTS: [Output; 4] =
    [Output::File, Output::GzipSegments, Output::ZstdSegments, Output::Topic];

impl Input {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Input::Plain => "plain",
            Input::Gzip => "gzip",
            Input::Zstd => "zstd",
            Input::Followed => "follow",
            Input::Recording => "recording",
            Input::Topic => "topic",
            Input::Group => "group",
        }
    }

    pub(crate) fn is_kafka(self) -> bool {
        matches!(self, Input::Topic | Input::Group)
    }

    /// Whether a run ends by itself when everything was read.
    pub(crate) fn ends(self) -> bool {
        !matches!(self, Input::Followed | Input::Group)
    }
}

impl Output {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Output::File => "file",
            Output::GzipSegments => "gzip-segments",
            Output::ZstdSegments => "zstd-segments",
            Output::Topic => "topic",
        }
    }

    pub(crate) fn is_segments(self) -> bool {
        matches!(self, Output::GzipSegments | Output::ZstdSegments)
    }
}

impl Pair {
    pub(crate) fn all() -> Vec<Self> {
        let pairs = INPUTS.iter().flat_map(|input| OUTPUTS.map(|output| (*input, output)));
        pairs
            .filter(|(input, output)| *input != Input::Group || !output.is_segments())
            .map(|(input, output)| Self { input, output })
            .collect()
    }

    pub(crate) fn name(self) -> String {
        format!("{}-to-{}", self.input.name(), self.output.name())
    }

    pub(crate) fn needs_broker(self) -> bool {
        self.input.is_kafka() || self.output == Output::Topic
    }

    /// A group behind anything but one Kafka output is at least once; all else is exactly once.
    pub(crate) fn may_double(self) -> bool {
        self.input == Input::Group && self.output != Output::Topic
    }

    /// Whether the output is that of an undisturbed run, byte for byte: partitions mix as they like.
    pub(crate) fn has_fixed_bytes(self) -> bool {
        !self.needs_broker()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_named_once() {
        let mut names: Vec<String> = Pair::all().into_iter().map(Pair::name).collect();
        assert_eq!(names.len(), 26);
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 26);
        assert!(
            names.contains(&"plain-to-file".into()) && names.contains(&"group-to-topic".into())
        );
    }

    #[test]
    fn only_a_group_to_a_file_may_double() {
        let doubling: Vec<String> =
            Pair::all().into_iter().filter(|pair| pair.may_double()).map(Pair::name).collect();
        assert_eq!(doubling, ["group-to-file"]);
    }
}
