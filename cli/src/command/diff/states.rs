//! State directories compared. Pure.
//!
//! Not when a checkpoint was stored: that is different each time.

use std::collections::{BTreeMap, BTreeSet};

use lockgate_controller::{Inspection, NamedPart, NamedStep, StoredCheckpoint};
use serde_json::Value as JsonValue;

use super::super::verify::journaled;
use super::Compared;
use super::sides::{Cell, Sides};

pub(super) fn compare(a: &Inspection, b: &Inspection) -> Compared {
    if let Some(sides) = first(a, b) {
        return Compared::Different(sides);
    }
    let checkpoint = match &a.checkpoint {
        Some(checkpoint) => format!("a checkpoint of step {}", checkpoint.step),
        None => "no checkpoint".into(),
    };
    let (records, steps) = journaled(a);
    Compared::Equal(format!("{checkpoint}, and in the journal {records}, {steps}"))
}

fn first(a: &Inspection, b: &Inspection) -> Option<Sides> {
    if a.pipeline != b.pipeline {
        return Some(row("the pipeline", &a.pipeline, &b.pipeline));
    }
    match (&a.checkpoint, &b.checkpoint) {
        (Some(a), Some(b)) => checkpoint(a, b),
        (None, None) => None,
        (a, b) => {
            let step = |checkpoint: &Option<StoredCheckpoint>| {
                checkpoint.as_ref().map_or("none yet".into(), |c| format!("of step {}", c.step))
            };
            Some(row("the checkpoint", &step(a), &step(b)))
        }
    }
    .or_else(|| journal(&a.journal, &b.journal))
}

fn checkpoint(a: &StoredCheckpoint, b: &StoredCheckpoint) -> Option<Sides> {
    if a.step != b.step {
        return Some(row("the step of the checkpoint", &a.step, &b.step));
    }
    let whole = |inputs: &BTreeMap<String, Option<JsonValue>>| -> BTreeMap<String, JsonValue> {
        let whole = |seek: &Option<JsonValue>| seek.clone().unwrap_or(JsonValue::Null);
        inputs.iter().map(|(name, seek)| (name.clone(), whole(seek))).collect()
    };
    let circuit = || {
        let bytes = |circuit: &[u8]| format!("{} bytes", circuit.len());
        (a.circuit != b.circuit)
            .then(|| row("the circuit's state", &bytes(&a.circuit), &bytes(&b.circuit)))
    };
    positions("input", &whole(&a.inputs), &whole(&b.inputs))
        .or_else(|| positions("output", &a.outputs, &b.outputs))
        .or_else(circuit)
}

fn positions(
    kind: &str,
    a: &BTreeMap<String, JsonValue>,
    b: &BTreeMap<String, JsonValue>,
) -> Option<Sides> {
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    names.into_iter().find_map(|name| {
        let what = format!("the checkpoint's position of {kind} {name}");
        json(&what, a.get(name), b.get(name))
    })
}

/// The first member that differs, with its path.
fn json(what: &str, a: Option<&JsonValue>, b: Option<&JsonValue>) -> Option<Sides> {
    let (path, a, b) = member(String::new(), a, b)?;
    let at = if path.is_empty() { String::new() } else { format!(" in {path}") };
    let mut sides = Sides::new(format!("{what} differs{at}"));
    let cell = |value: Option<&JsonValue>| match value {
        Some(JsonValue::Null) => Cell::Bytes(None),
        Some(value) => Cell::Bytes(Some(value.to_string().into_bytes())),
        None => Cell::missing(),
    };
    sides.row(path.trim_start_matches('.'), cell(a), cell(b));
    Some(sides)
}

type Member<'a> = (String, Option<&'a JsonValue>, Option<&'a JsonValue>);

fn member<'a>(
    path: String,
    a: Option<&'a JsonValue>,
    b: Option<&'a JsonValue>,
) -> Option<Member<'a>> {
    match (a, b) {
        (a, b) if a == b => None,
        (Some(JsonValue::Object(x)), Some(JsonValue::Object(y))) => {
            let names: BTreeSet<&String> = x.keys().chain(y.keys()).collect();
            let mut names = names.into_iter();
            names.find_map(|name| member(format!("{path}.{name}"), x.get(name), y.get(name)))
        }
        (Some(JsonValue::Array(x)), Some(JsonValue::Array(y))) => (0..x.len().max(y.len()))
            .find_map(|n| member(format!("{path}[{n}]"), x.get(n), y.get(n))),
        (a, b) => Some((path, a, b)),
    }
}

fn journal(a: &[NamedStep], b: &[NamedStep]) -> Option<Sides> {
    for number in 0..a.len().max(b.len()) {
        let (x, y) = (a.get(number), b.get(number));
        let step = [x, y].into_iter().flatten().map(|step| step.step).min()?;
        let (x, y) = (x.filter(|x| x.step == step), y.filter(|y| y.step == step));
        let inputs: BTreeSet<&String> =
            [x, y].into_iter().flatten().flat_map(|step| &step.parts).map(|p| &p.input).collect();
        for input in inputs {
            let part = |step: Option<&'_ NamedStep>| {
                step.and_then(|step| step.parts.iter().find(|part| part.input == *input)).cloned()
            };
            let (x, y) = (part(x), part(y));
            if x != y {
                return Some(parts(step, input, x.as_ref(), y.as_ref()));
            }
        }
    }
    None
}

fn parts(step: u64, input: &str, a: Option<&NamedPart>, b: Option<&NamedPart>) -> Sides {
    let mut sides = Sides::new(format!("the journal differs in step {step}, input {input}"));
    let mut row = |label: &str, of: &dyn Fn(&NamedPart) -> Cell| {
        let [a, b] = [a, b].map(|part| part.map_or_else(Cell::missing, of));
        sides.row(label, a, b);
    };
    row("records", &|part| Cell::text(part.digest.records));
    row("hash", &|part| Cell::text(format!("{:016x}", part.digest.hash)));
    let bytes = |text: String| Cell::Bytes(Some(text.into_bytes()));
    row("then at", &|part| bytes(part.seek.to_string()));
    row("consists of", &|part| bytes(part.replay.to_string()));
    sides
}

fn row(what: &str, a: &impl ToString, b: &impl ToString) -> Sides {
    let mut sides = Sides::new(format!("{what} differs"));
    sides.row("", Cell::text(a.to_string()), Cell::text(b.to_string()));
    sides
}

#[cfg(test)]
mod tests {
    use lockgate_core::{PartDigest, Position};
    use serde_json::json;

    use super::*;

    fn state() -> Inspection {
        let checkpoint = StoredCheckpoint {
            step: 4,
            stored_at_ms: 5,
            circuit: vec![1],
            inputs: BTreeMap::from([
                ("a".into(), None),
                ("b".into(), Some(json!({"files": [{"path": "in.log", "offset": 8}]}))),
            ]),
            outputs: BTreeMap::from([("o".into(), json!({"length": 8}))]),
        };
        let part = |input: &str| NamedPart {
            input: input.into(),
            seek: Position::Whole(json!({"offset": 9})),
            replay: 7.into(),
            digest: PartDigest { records: 3, hash: 7 },
        };
        let step = |step| NamedStep { step, parts: vec![part("a"), part("b")] };
        Inspection {
            pipeline: "p".into(),
            checkpoint: Some(checkpoint),
            journal: vec![step(5), step(6)],
        }
    }

    /// How a state is shown beside one to which this was done.
    fn shown(change: impl Fn(&mut Inspection)) -> String {
        let mut other = state();
        change(&mut other);
        match compare(&state(), &other) {
            Compared::Equal(what) => what,
            Compared::Different(sides) => sides.to_text(["a".into(), "b".into()], 80),
        }
    }

    fn checkpoint(change: impl Fn(&mut StoredCheckpoint)) -> String {
        shown(|state| change(state.checkpoint.as_mut().unwrap()))
    }

    #[test]
    fn what_is_the_same_is_counted() {
        insta::assert_snapshot!(checkpoint(|checkpoint| checkpoint.stored_at_ms = 9), @"a checkpoint of step 4, and in the journal 12 records, 2 steps");
    }

    #[test]
    fn the_first_difference_is_named() {
        let seen = [
            shown(|state| state.pipeline = "q".into()),
            shown(|state| state.checkpoint = None),
            checkpoint(|checkpoint| checkpoint.step = 3),
            checkpoint(|checkpoint| {
                checkpoint.inputs.insert("a".into(), Some(json!(1)));
            }),
            checkpoint(|checkpoint| {
                let moved = json!({"files": [{"path": "in.log", "offset": 9}, {}]});
                checkpoint.inputs.insert("b".into(), Some(moved));
            }),
            checkpoint(|checkpoint| checkpoint.outputs.clear()),
            checkpoint(|checkpoint| checkpoint.circuit.push(2)),
            shown(|state| state.journal[1].parts[1].digest.hash = 8),
            shown(|state| {
                state.journal.remove(0);
            }),
            shown(|state| {
                state.journal.pop();
            }),
        ];
        insta::assert_snapshot!(seen.join("\n"), @r#"
        the pipeline differs
                                A: a                         B: b
        *                       p                            q

        the checkpoint differs
                                A: a                         B: b
        *                       of step 4                    none yet

        the step of the checkpoint differs
                                A: a                         B: b
        *                       4                            3

        the checkpoint's position of input a differs
                                A: a                         B: b
        *                       null                         1

        the checkpoint's position of input b differs in .files[0].offset
                                A: a                         B: b
        * files[0].offset       8                            9

        the checkpoint's position of output o differs
                                A: a                         B: b
        *                       {"length":8}                 (missing)

        the circuit's state differs
                                A: a                         B: b
        *                       1 bytes                      2 bytes

        the journal differs in step 6, input b
                                A: a                         B: b
          records               3                            3
        * hash                  0000000000000007             0000000000000008
          then at               {"offset":9}                 {"offset":9}
          consists of           7                            7

        the journal differs in step 5, input a
                                A: a                         B: b
        * records               3                            (missing)
        * hash                  0000000000000007             (missing)
        * then at               {"offset":9}                 (missing)
        * consists of           7                            (missing)

        the journal differs in step 6, input a
                                A: a                         B: b
        * records               3                            (missing)
        * hash                  0000000000000007             (missing)
        * then at               {"offset":9}                 (missing)
        * consists of           7                            (missing)
        "#);
    }
}
