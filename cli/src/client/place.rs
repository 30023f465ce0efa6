//! Where a running pipeline is asked.
//!
//! At the address that was typed; otherwise at the one in the state directory, which its process wrote there.

use std::env;
use std::path::{Path, PathBuf};

use crate::args::At;
use crate::control::{Advertised, Token};
use crate::exit::{Code, Failed};
use crate::pipeline;

/// The pipeline where nothing is said.
const USUAL: &str = "pipeline.yaml";
/// The variables for what is not typed.
const AT: &str = "LOCKGATE_AT";
const TOKEN_FILE: &str = "LOCKGATE_TOKEN_FILE";

/// What is needed to ask.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) url: String,
    pub(super) token: Option<Token>,
    /// The certificates by which to know the server.
    pub(super) ca: Option<PathBuf>,
    pub(super) process: Option<u32>,
    pub(super) place: Place,
}

/// How the pipeline was chosen.
#[derive(Debug)]
pub(super) enum Place {
    /// By its address.
    Address,
    /// By its state directory, where this process said where it is.
    State { directory: PathBuf, process: u32 },
}

impl Place {
    /// The process that was meant is not there.
    pub(super) fn gone(&self, why: &str) -> Failed {
        let message = match self {
            Self::Address => format!("{why}; start the pipeline, or choose another with --at"),
            Self::State { directory, process } => format!(
                "no lockgate runs on {} (control.json is from process {process}): {why}",
                directory.display()
            ),
        };
        Failed::new(Code::Unavailable, message)
    }
}

/// Finds the pipeline.
///
/// # Errors
/// If nothing says where it is, or a file that is needed cannot be read.
pub(super) fn find(at: &At) -> Result<Found, Failed> {
    let from = |name: &str| env::var_os(name).filter(|value| !value.is_empty());
    let token_file = at.token_file.clone().or_else(|| from(TOKEN_FILE).map(PathBuf::from));
    let token = token_file.map(|path| Token::read(&path)).transpose()?;
    let is_chosen = at.pipeline.is_some() || at.state_dir.is_some();
    let address = match &at.at {
        Some(address) => Some(address.clone()),
        None if is_chosen => None,
        None => from(AT).map(|value| value.to_string_lossy().into_owned()),
    };
    match address {
        Some(address) => Ok(Found {
            url: url(&address, at.ca.is_some())?,
            token,
            ca: at.ca.clone(),
            process: None,
            place: Place::Address,
        }),
        None => in_state(at, token),
    }
}

fn in_state(at: &At, token: Option<Token>) -> Result<Found, Failed> {
    let (directory, pipeline) = match &at.state_dir {
        Some(directory) => (directory.clone(), None),
        None => {
            let file = at.pipeline.clone().unwrap_or_else(|| USUAL.into());
            if at.pipeline.is_none() && !file.exists() {
                let message = format!(
                    "there is no {USUAL} here; say which pipeline: --pipeline FILE, --state-dir DIR or --at HOST:PORT"
                );
                return Err(Failed::new(Code::Usage, message));
            }
            let pipeline = pipeline::load(&file)?;
            (pipeline.state_dir.clone(), Some(pipeline))
        }
    };
    let Some(advertised) = Advertised::read(&directory)? else {
        return Err(silent(&directory));
    };
    // Whoever has come to listen there since must not be told the token.
    if !is_alive(advertised.pid) {
        return Err(Place::State { directory, process: advertised.pid }.gone("it has ended"));
    }
    let token = match (token, &advertised.token_file) {
        (Some(token), _) => Some(token),
        (None, Some(path)) => Some(Token::read(path)?),
        (None, None) => pipeline.and_then(|pipeline| pipeline.control?.token),
    };
    Ok(Found {
        url: url(&advertised.url, false)?,
        token,
        ca: at.ca.clone().or(advertised.ca),
        process: Some(advertised.pid),
        place: Place::State { directory, process: advertised.pid },
    })
}

/// Whether there is a process of this number.
fn is_alive(process: u32) -> bool {
    let process = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw);
    let found = process.map(rustix::process::test_kill_process);
    // One of another user is there, too.
    matches!(found, Some(Ok(()) | Err(rustix::io::Errno::PERM)))
}

fn silent(directory: &Path) -> Failed {
    let message = format!(
        "no lockgate that can be asked runs on {}; the pipeline must be running, and its file must have `control`",
        directory.display()
    );
    Failed::new(Code::Unavailable, message)
}

/// The address as a URL without a slash at its end.
fn url(address: &str, is_tls: bool) -> Result<String, Failed> {
    let address = address.trim_end_matches('/');
    let url = match address.split_once("://") {
        None if is_tls => format!("https://{address}"),
        None => format!("http://{address}"),
        Some(("http" | "https", _)) => address.to_owned(),
        Some((scheme, _)) => {
            let message =
                format!("--at {address}: {scheme} is not known; it must be http or https");
            return Err(Failed::new(Code::Usage, message));
        }
    };
    match url.parse::<ureq::http::Uri>() {
        Ok(uri) if uri.path() == "/" && uri.query().is_none() => Ok(url),
        _ => {
            let message = format!("--at {address}: it must be HOST:PORT or a URL without a path");
            Err(Failed::new(Code::Usage, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_becomes_a_url() {
        let check = |address: &str, is_tls, expected: &str| {
            assert_eq!(url(address, is_tls).unwrap(), expected);
        };
        check("localhost:80", false, "http://localhost:80");
        check("[::1]:80", true, "https://[::1]:80");
        check("http://a:1/", true, "http://a:1");
        for wrong in ["ftp://a", "http://a/b", "a b", ""] {
            assert_eq!(url(wrong, false).unwrap_err().code, Code::Usage, "{wrong}");
        }
    }
}
