//! Looking: the status, where inputs stand, the metrics, the page.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{Response, StatusCode, Uri};
use lockgate_core::PartitionStatus;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::answer::{JSON, Refusal, content};
use super::names::{Kind, place_of};
use super::office::Office;
use crate::control::answers::Partitions;
use crate::control::metrics;
use crate::control::report::Partition;

/// So many partitions of an input are shown at most.
const MAX_PARTITIONS: usize = 1000;

pub(super) async fn page(State(office): State<Arc<Office>>) -> Response<Body> {
    office.page.answer()
}

pub(super) async fn status(State(office): State<Arc<Office>>) -> Response<Body> {
    let board = &office.board;
    let report = || serde_json::to_vec(&board.report()).unwrap_or_default();
    content(JSON, office.status.get(report))
}

pub(super) async fn metrics(State(office): State<Arc<Office>>) -> Response<Body> {
    let board = &office.board;
    content(metrics::CONTENT_TYPE, office.metrics.get(|| metrics::metrics(board).into_bytes()))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OfInput {
    input: Option<String>,
}

pub(super) async fn partitions(
    State(office): State<Arc<Office>>,
    uri: Uri,
) -> Result<Response<Body>, Refusal> {
    let OfInput { input } = query(&uri)?;
    let inputs = &office.board.facts.inputs;
    let place = match &input {
        Some(name) => place_of(name, inputs, Kind::Input)?,
        None => inputs.len(),
    };
    let run = office.run()?;
    let of = |place| shown(run.partitions(place));
    let answer = office.partitions.get(place).map(|rendered| {
        rendered.get(|| {
            match &input {
                Some(_) => serde_json::to_vec(&of(place)),
                None => {
                    let all = inputs.iter().enumerate();
                    let all: BTreeMap<&str, Partitions> =
                        all.map(|(place, input)| (input.name.as_str(), of(place))).collect();
                    serde_json::to_vec(&all)
                }
            }
            .unwrap_or_default()
        })
    });
    Ok(content(JSON, answer.unwrap_or_default()))
}

/// Those that are shown, the largest lag first.
fn shown(mut all: Vec<PartitionStatus>) -> Partitions {
    let total = all.len() as u64;
    let lag = all.iter().filter_map(PartitionStatus::lag).reduce(u64::saturating_add);
    all.sort_by_key(|partition| std::cmp::Reverse(partition.lag()));
    let shown = all.iter().take(MAX_PARTITIONS);
    Partitions { total, lag, partitions: shown.map(partition).collect() }
}

fn partition(status: &PartitionStatus) -> Partition {
    Partition {
        partition: status.partition.to_string(),
        position: status.position,
        end: status.end,
        lag: status.lag(),
    }
}

/// What stands behind `?`.
///
/// # Errors
/// If it is not what is known.
pub(super) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Refusal> {
    let read = Query::try_from_uri(uri);
    read.map(|Query(query)| query).map_err(|error| {
        let why = std::error::Error::source(&error).map(|source| format!(": {source}"));
        let error = format!("what follows ? is not right{}", why.unwrap_or_default());
        Refusal::new(StatusCode::BAD_REQUEST, error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockgate_core::Partition as CorePartition;

    #[test]
    fn of_many_partitions_those_that_lag_are_shown() {
        let partition = |number: u32| PartitionStatus {
            partition: Arc::new(CorePartition { source: "t".into(), number: Some(number) }),
            position: 10,
            end: number.is_multiple_of(2).then_some(u64::from(number)),
        };
        let Partitions { total, lag, partitions } = shown((0..3000).map(partition).collect());
        assert_eq!((total, partitions.len()), (3000, MAX_PARTITIONS));
        assert_eq!(lag, Some((10..3000).step_by(2).map(|end| end - 10).sum()));
        let first = &partitions[0];
        assert_eq!((first.partition.as_str(), first.lag), ("t[2998]", Some(2988)));
        let last = shown(vec![partition(1), partition(20)]).partitions;
        assert_eq!(last[1].lag, None);
    }
}
