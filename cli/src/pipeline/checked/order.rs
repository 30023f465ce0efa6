//! Which inputs are read after which.
//!
//! For making sure that each of them is read at some time: what it waits for must be there, end, and not wait for it.

use super::super::decode::unknown;
use super::super::error::{Fault, KeyPath, quoted};
use super::super::node::{Node, Value};
use super::super::raw::{Endpoints, OneOrMore, RawInput};
use super::{Checker, Input, InputKind, Mode};

impl Checker<'_> {
    /// Fills in which inputs each of `inputs` waits for, in the order in which they are named.
    pub(super) fn order(
        &self,
        raw: &Endpoints<RawInput>,
        inputs: &mut [Input],
    ) -> Result<(), Fault> {
        let mut order = Vec::new();
        for (place, (name, raw)) in raw.0.iter().enumerate() {
            let after = match raw.start_after() {
                Some(names) => self.waits_for(&path_of(name, raw), place, names, inputs)?,
                None => Vec::new(),
            };
            order.push(after);
        }
        if let Some(cycle) = cycle(&order) {
            let name = |place: &usize| inputs[*place].name.as_str();
            let mut names: Vec<&str> = cycle.iter().map(name).collect();
            names.extend(cycle.first().map(name));
            let message = format!(
                "these inputs wait for each other, so none of them would ever be read: {}",
                names.join(" after ")
            );
            let first = cycle.first().and_then(|place| raw.0.get(*place));
            let path = first.map_or_else(KeyPath::root, |(name, raw)| path_of(name, raw));
            return self.fault(&path, message);
        }
        for (input, start_after) in inputs.iter_mut().zip(order) {
            input.start_after = start_after;
        }
        Ok(())
    }

    fn waits_for(
        &self,
        path: &KeyPath,
        own: usize,
        names: &OneOrMore,
        inputs: &[Input],
    ) -> Result<Vec<usize>, Fault> {
        if names.0.is_empty() {
            let message = "at least one input is needed; leave the key out to wait for none";
            return self.fault(path, message);
        }
        let mut places = Vec::new();
        for (index, name) in names.0.iter().enumerate() {
            let path = path.index(index);
            let Some(place) = inputs.iter().position(|input| input.name == *name) else {
                return self.unknown_input(&path, name, inputs);
            };
            if place == own {
                return self.fault(&path, "an input cannot wait for itself");
            }
            if places.contains(&place) {
                return self.fault(&path, format!("{} is named twice", quoted(name)));
            }
            if let Some(why) = why_endless(&inputs[place].kind) {
                let message = format!(
                    "{} never ends, since {why}, so this input would never be read",
                    quoted(name)
                );
                return self.fault(&path, message);
            }
            places.push(place);
        }
        Ok(places)
    }

    fn unknown_input<T>(&self, path: &KeyPath, name: &str, inputs: &[Input]) -> Result<T, Fault> {
        let known: Vec<&str> = inputs.iter().map(|input| input.name.as_str()).collect();
        match self.root.nearest(path) {
            Node { value: Value::Scalar(scalar), .. } if scalar.variables.is_empty() => {
                self.fault(path, unknown("input", name, &known))
            }
            node => {
                let (known, found) = (known.join(", "), node.found());
                self.fault(path, format!("unknown input, found {found}; known inputs: {known}"))
            }
        }
    }
}

fn path_of(name: &str, raw: &RawInput) -> KeyPath {
    KeyPath::root().key("inputs").key(name).key(raw.kind()).key("start_after")
}

/// Why an input of this kind does not end, if it does not.
fn why_endless(kind: &InputKind) -> Option<&'static str> {
    match kind {
        InputKind::File(file) if file.follow => Some("it has \"follow: true\""),
        InputKind::Kafka(kafka) if matches!(kafka.mode, Mode::Group { .. }) => {
            Some("a member of a consumer group reads on")
        }
        InputKind::Kafka(kafka) if kafka.stop_at.is_none() => Some("it has no \"stop_at: end\""),
        InputKind::File(_) | InputKind::Kafka(_) | InputKind::Recording(_) => None,
    }
}

/// Places that wait for each other, each for the next one and the last one for the first, if there are any; the lowest
/// place is the first. `order` has the places that each place waits for.
fn cycle(order: &[Vec<usize>]) -> Option<Vec<usize>> {
    let mut is_done = vec![false; order.len()];
    for start in 0..order.len() {
        // The way down from `start`, each place with how many of those it waits for have been looked at.
        let mut way = vec![(start, 0)];
        while let Some((place, looked_at)) = way.last_mut() {
            let next = order[*place].get(*looked_at).copied();
            *looked_at += 1;
            let Some(next) = next else {
                is_done[*place] = true;
                way.pop();
                continue;
            };
            if let Some(begin) = way.iter().position(|(place, _)| *place == next) {
                let mut cycle: Vec<usize> = way[begin..].iter().map(|(place, _)| *place).collect();
                let lowest = cycle.iter().enumerate().min_by_key(|(_, place)| **place);
                let lowest = lowest.map_or(0, |(index, _)| index);
                cycle.rotate_left(lowest);
                return Some(cycle);
            }
            if !is_done[next] {
                way.push((next, 0));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn cycles() {
        let check = |order: &[&[usize]], expected: Option<&[usize]>| {
            let order: Vec<Vec<usize>> = order.iter().map(|after| after.to_vec()).collect();
            assert_eq!(cycle(&order).as_deref(), expected, "{order:?}");
        };
        check(&[], None);
        check(&[&[], &[0], &[0, 1]], None);
        check(&[&[1], &[0]], Some(&[0, 1]));
        check(&[&[1], &[2], &[3], &[1]], Some(&[1, 2, 3]));
        check(&[&[1, 2], &[3], &[3], &[]], None);
        check(&[&[], &[2, 0], &[0, 1]], Some(&[1, 2]));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Either there is a real cycle, or all can be read one after the other.
        #[test]
        fn every_input_is_read_or_waits_in_a_cycle(
            order in proptest::collection::vec(proptest::collection::vec(0..6_usize, 0..4), 6)
        ) {
            match cycle(&order) {
                Some(cycle) => {
                    for (place, next) in cycle.iter().zip(cycle.iter().cycle().skip(1)) {
                        prop_assert!(order[*place].contains(next), "{cycle:?}");
                    }
                    prop_assert_eq!(cycle.first(), cycle.iter().min());
                }
                None => {
                    let mut read = [false; 6];
                    for _ in 0..6 {
                        for (place, after) in order.iter().enumerate() {
                            read[place] = read[place] || after.iter().all(|before| read[*before]);
                        }
                    }
                    prop_assert!(read.iter().all(|read| *read));
                }
            }
        }
    }
}
