//! The secret that whoever looks and steers must know.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};

use subtle::ConstantTimeEq;

use crate::exit::{Code, Failed};

/// The longest token, in bytes: it must fit into a header.
const MAX_BYTES: u64 = 4096;

/// A secret. It is never shown.
#[derive(Clone)]
pub(crate) struct Token(String);

/// The token that clients must know at the moment, if any; it may be changed while the server runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct CurrentToken(Arc<RwLock<Option<Token>>>);

impl CurrentToken {
    pub(crate) fn new(token: Option<Token>) -> Self {
        Self(Arc::new(RwLock::new(token)))
    }

    /// From now on clients must know this one.
    pub(crate) fn set(&self, token: Token) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(token);
    }

    /// Whether `given` is enough.
    pub(super) fn admits(&self, given: Option<&[u8]>) -> bool {
        let token = self.0.read().unwrap_or_else(PoisonError::into_inner);
        token.as_ref().is_none_or(|token| given.is_some_and(|given| token.is(given)))
    }
}

impl Token {
    /// # Errors
    /// If it is empty, or has what a header cannot carry. The message does not have it.
    pub(crate) fn new(text: &str) -> Result<Self, &'static str> {
        let text = text.trim_ascii();
        if text.is_empty() {
            return Err(
                "it is empty; write a long random word into it, such as `openssl rand -hex 32` gives",
            );
        }
        if !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("it must be one word of visible ASCII characters");
        }
        Ok(Self(text.to_owned()))
    }

    /// Reads it from the file at `path`, without white space around it.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn read(path: &Path) -> Result<Self, Failed> {
        let shown = path.display();
        let wrong = |what: &dyn fmt::Display| {
            Failed::new(Code::Configuration, format!("token file {shown}: {what}"))
        };
        let mut text = String::new();
        let file = File::open(path).map_err(|error| wrong(&error))?;
        file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(|error| wrong(&error))?;
        if text.len() as u64 > MAX_BYTES {
            return Err(wrong(&"longer than 4096 bytes, which no token is"));
        }
        Self::new(&text).map_err(|what| wrong(&what))
    }

    /// Whether `given` is the same, in a time that does not tell how much of it is.
    pub(crate) fn is(&self, given: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(given).into()
    }

    /// The secret itself, to be hidden by whoever keeps it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// The value of the header `Authorization` that proves to know it.
    pub(crate) fn bearer(&self) -> String {
        format!("Bearer {}", self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_one_word_and_is_not_shown() {
        let token = Token::new(" s3cret\n").unwrap();
        assert!(token.is(b"s3cret") && !token.is(b"s3creT") && !token.is(b"s3cre"));
        assert_eq!(format!("{token:?}"), "Token(…)");
        assert!(Token::new("  ").is_err() && Token::new("a b").is_err());
        assert!(Token::new("schlüssel").is_err());
    }

    #[test]
    fn a_token_file_that_is_none_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let message = |path: &Path| Token::read(path).unwrap_err().message;
        assert!(message(&path).starts_with("token file "), "{}", message(&path));
        std::fs::write(&path, "two words").unwrap();
        assert!(!message(&path).contains("two words"), "{}", message(&path));
        std::fs::write(&path, "x".repeat(5000)).unwrap();
        assert!(message(&path).contains("longer than"), "{}", message(&path));
    }
}
