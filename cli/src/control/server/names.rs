//! Inputs and outputs by their names. Pure.

use axum::http::StatusCode;

use super::answer::Refusal;
use crate::control::Endpoint;

/// What a name is of.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Input,
    Output,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
        }
    }
}

/// Where in the pipeline the one of this name is.
///
/// # Errors
/// If there is none; the nearest name is in the message.
pub(super) fn place_of(name: &str, among: &[Endpoint], kind: Kind) -> Result<usize, Refusal> {
    let place = among.iter().position(|endpoint| endpoint.name == name);
    place.ok_or_else(|| {
        let kind = kind.word();
        let nearest = among
            .iter()
            .map(|endpoint| endpoint.name.as_str())
            .min_by_key(|known| strsim::damerau_levenshtein(name, known));
        let hint = nearest.map(|nearest| format!("; did you mean {nearest}?")).unwrap_or_default();
        // What was typed may be long.
        let name: String = name.chars().take(100).collect();
        Refusal::new(StatusCode::NOT_FOUND, format!("there is no {kind} {name:?}{hint}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_name_brings_the_nearest_one() {
        let known = ["orders", "users"].map(|name| Endpoint { name: name.into(), kind: "file" });
        assert_eq!(place_of("users", &known, Kind::Input), Ok(1));
        let refusal = place_of("oders", &known, Kind::Output).unwrap_err();
        assert_eq!(refusal.error, "there is no output \"oders\"; did you mean orders?");
        assert_eq!(refusal.status, StatusCode::NOT_FOUND);
    }
}
