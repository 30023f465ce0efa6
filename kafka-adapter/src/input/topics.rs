//! Which topics an input reads: by name, or by a pattern that is matched against those there are.

use std::collections::BTreeSet;

use lockgate_core::EndpointError;
use regex::Regex;

use super::ask::Questions;
use crate::config::TopicSelection;

/// Topics of Kafka's own begin with it; a pattern has to begin with it too to match them.
const INTERNAL: &str = "__";

#[derive(Debug)]
pub(super) enum Topics {
    /// Each once, in the order of their names.
    Named(Vec<String>),
    Matching(Regex),
}

impl Topics {
    /// # Errors
    /// If no topic is named, or the pattern is none.
    pub(super) fn new(selection: &TopicSelection) -> Result<Self, EndpointError> {
        match selection {
            TopicSelection::Names(names) => {
                let names: BTreeSet<&String> = names.iter().collect();
                if names.is_empty() || names.iter().any(|name| name.is_empty()) {
                    return Err(EndpointError::Configuration(
                        "topics: name at least one, none of them empty".into(),
                    ));
                }
                Ok(Self::Named(names.into_iter().cloned().collect()))
            }
            TopicSelection::Pattern(pattern) => {
                if !pattern.starts_with('^') {
                    return Err(EndpointError::Configuration(format!(
                        "topics: the pattern `{pattern}` must begin with ^"
                    )));
                }
                let whole = Regex::new(&whole(pattern)).map_err(|error| {
                    EndpointError::Configuration(format!(
                        "topics: `{pattern}` is not a regular expression: {error}"
                    ))
                })?;
                Ok(Self::Matching(whole))
            }
        }
    }

    /// The names of those there are; those that are named are not looked for.
    ///
    /// # Errors
    /// If nobody answers.
    pub(super) fn find(&self, questions: &Questions<'_>) -> Result<Vec<String>, EndpointError> {
        match self {
            Self::Named(names) => Ok(names.clone()),
            Self::Matching(pattern) => {
                let mut found = questions.topics()?;
                found.retain(|name| self.takes(pattern, name));
                found.sort_unstable();
                Ok(found)
            }
        }
    }

    fn takes(&self, pattern: &Regex, name: &str) -> bool {
        let wants_internal = pattern.as_str().starts_with("^(__");
        pattern.is_match(name) && (wants_internal || !name.starts_with(INTERNAL))
    }
}

/// The pattern so that a name must match from its beginning to its end, as every library understands it.
pub(super) fn whole(pattern: &str) -> String {
    let bare = pattern.strip_prefix('^').unwrap_or(pattern);
    format!("^({bare})$")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matched(pattern: &str, names: &[&'static str]) -> Vec<&'static str> {
        let topics = Topics::new(&TopicSelection::Pattern(pattern.into())).unwrap();
        let Topics::Matching(regex) = &topics else { panic!("{topics:?}") };
        names.iter().copied().filter(|name| topics.takes(regex, name)).collect()
    }

    #[test]
    fn a_pattern_matches_whole_names() {
        let names = ["orders", "orders-eu", "old-orders", "__consumer_offsets"];
        assert_eq!(matched("^orders", &names), ["orders"]);
        assert_eq!(matched("^orders.*", &names), ["orders", "orders-eu"]);
        assert_eq!(matched("^old|orders", &names), ["orders"], "both ends hold for each choice");
        assert_eq!(matched("^.*", &names), ["orders", "orders-eu", "old-orders"]);
        assert_eq!(matched("^__.*", &names), ["__consumer_offsets"]);
        assert_eq!(matched("^orders$", &names), ["orders"]);
    }

    #[test]
    fn a_pattern_is_for_whole_names() {
        assert_eq!(whole("^orders.*"), "^(orders.*)$");
        assert_eq!(whole("^a|b"), "^(a|b)$");
    }

    #[test]
    fn what_selects_nothing_is_refused() {
        let text = |selection| Topics::new(&selection).unwrap_err().to_string();
        let names = |names: &[&str]| {
            TopicSelection::Names(names.iter().map(|name| (*name).to_owned()).collect())
        };
        assert!(text(names(&[])).contains("at least one"));
        assert!(text(names(&["a", ""])).contains("none of them empty"));
        assert!(text(TopicSelection::Pattern("orders".into())).contains("begin with ^"));
        assert!(text(TopicSelection::Pattern("^(orders".into())).contains("^(orders"));
    }

    #[test]
    fn a_topic_is_read_once() {
        let names = ["b", "a", "b"].map(str::to_owned).to_vec();
        let Topics::Named(names) = Topics::new(&TopicSelection::Names(names)).unwrap() else {
            panic!("named")
        };
        assert_eq!(names, ["a", "b"]);
    }
}
