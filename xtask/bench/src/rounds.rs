//! Who is compared runs in turn, so that whatever the machine does besides meets all of them.

use anyhow::{Context, Result};

use crate::site::Site;
use crate::spread::Spread;

/// One of those that are compared.
pub(crate) struct Contestant<'a> {
    name: &'a str,
    /// Does its work once; how fast, or how long, as the benchmark sees it.
    run: Box<dyn FnMut() -> Result<f64> + 'a>,
}

impl<'a> Contestant<'a> {
    pub(crate) fn new(name: &'a str, run: impl FnMut() -> Result<f64> + 'a) -> Self {
        Self { name, run: Box::new(run) }
    }
}

/// Runs all of them in each round, in the opposite order in every other one; the first round is not counted. Their
/// values in the order of the contestants.
pub(crate) fn in_turn(site: &Site, mut contestants: Vec<Contestant<'_>>) -> Result<Vec<Spread>> {
    let mut values = vec![Vec::new(); contestants.len()];
    for round in 0..=site.rounds {
        let mut order: Vec<usize> = (0..contestants.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for place in order {
            let contestant = &mut contestants[place];
            let value = (contestant.run)().with_context(|| contestant.name.to_owned())?;
            let counts = if round == 0 { " (warm-up)" } else { "" };
            eprintln!("  round {round}: {:<40} {value:>14.2}{counts}", contestant.name);
            if round > 0 {
                values[place].push(value);
            }
        }
    }
    Ok(values.into_iter().map(Spread::of).collect())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn the_first_round_does_not_count_and_the_order_changes() {
        let ran = RefCell::new(String::new());
        let contestant = |name: &'static str| {
            let ran = &ran;
            Contestant::new(name, move || {
                ran.borrow_mut().push_str(name);
                Ok(ran.borrow().len() as f64)
            })
        };
        let site = Site::sketch(2);
        let spreads = in_turn(&site, vec![contestant("a"), contestant("b")]).unwrap();
        assert_eq!(ran.borrow().as_str(), "abbaab");
        assert_eq!(spreads[0].values, [4.0, 5.0]);
        assert_eq!(spreads[1].values, [3.0, 6.0]);
    }
}
