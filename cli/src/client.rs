//! Asks a running pipeline, as the commands do.
//!
//! How it is found: [`place`]. Blocking; what may take long is waited for without a limit.

mod place;

use std::fmt;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::{Response, StatusCode};
use ureq::tls::{PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};
use ureq::{Agent, Body};

use crate::args::At;
use crate::control::answers::Refused;
use crate::control::{PROCESS, Token};
use crate::exit::{Code, Failed};
use place::Place;

/// How long a connection may take, and an answer that is there.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long a process may take to end after its run has.
const ENDING: Duration = Duration::from_secs(10);
/// How often to look whether it has.
const GLANCE: Duration = Duration::from_millis(20);
/// The largest answer.
const MAX_BYTES: u64 = 64 << 20;

/// Asks one pipeline.
pub(crate) struct Client {
    agent: Agent,
    /// Without a slash at its end.
    url: String,
    token: Option<Token>,
    /// The process that is meant, if it is known.
    process: Option<u32>,
    place: Place,
}

/// What was asked for did not happen.
#[derive(Debug)]
pub(crate) struct NotDone {
    pub(crate) status: StatusCode,
    pub(crate) words: String,
}

impl Client {
    /// The client of the pipeline that was chosen. Nothing is asked yet.
    ///
    /// # Errors
    /// If there is no such pipeline, or a file that is needed cannot be read.
    pub(crate) fn new(at: &At) -> Result<Self, Failed> {
        let place::Found { url, token, ca, process, place } = place::find(at)?;
        let roots = match ca {
            None => RootCerts::PlatformVerifier,
            Some(path) => roots(&path)?,
        };
        let tls = TlsConfig::builder().provider(TlsProvider::NativeTls).root_certs(roots).build();
        // The token goes to the pipeline alone: not to a proxy, and not to where an answer points.
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .proxy(None)
            .timeout_connect(Some(PATIENCE))
            .tls_config(tls)
            .build();
        Ok(Self { agent: agent.into(), url, token, process, place })
    }

    /// Where it asks.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// What is answered at once.
    ///
    /// # Errors
    /// If that is nothing.
    pub(crate) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failed> {
        self.read(self.send_get(path, Some(PATIENCE))?)?.map_err(Failed::from)
    }

    /// Asks for something to happen, and waits for it.
    ///
    /// # Errors
    /// If there is no answer. That it did not happen is one.
    pub(crate) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        wish: &impl Serialize,
    ) -> Result<Result<T, NotDone>, Failed> {
        let wish = serde_json::to_vec(wish);
        let wish = wish.map_err(|error| Failed::new(Code::Bug, error.to_string()))?;
        let mut request = self.agent.post(format!("{}{path}", self.url));
        request = request.header("content-type", "application/json");
        for (name, value) in self.headers() {
            request = request.header(name, value);
        }
        let answer = request.send(&wish[..]).map_err(|error| self.silent(&error))?;
        self.read(answer)
    }

    /// The lines of an answer, as they come.
    ///
    /// # Errors
    /// If there is no answer.
    pub(crate) fn lines(&self, path: &str) -> Result<impl BufRead + use<>, Failed> {
        let answer = self.send_get(path, None)?;
        if answer.status() == StatusCode::OK {
            return Ok(BufReader::new(answer.into_body().into_reader()));
        }
        Err(match self.read::<()>(answer)? {
            Err(not_done) => not_done.into(),
            Ok(()) => self.unknown(),
        })
    }

    /// Waits until nothing answers any more, but not for ever.
    pub(crate) fn wait_until_gone(&self) {
        let begun = Instant::now();
        let is_there = || match self.send_get("/healthz", Some(PATIENCE)) {
            Ok(answer) => answer.status() != StatusCode::MISDIRECTED_REQUEST,
            Err(_) => false,
        };
        while begun.elapsed() < ENDING && is_there() {
            std::thread::sleep(GLANCE);
        }
    }

    fn send_get(&self, path: &str, patience: Option<Duration>) -> Result<Response<Body>, Failed> {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        for (name, value) in self.headers() {
            request = request.header(name, value);
        }
        let request = request.config().timeout_global(patience).build();
        request.call().map_err(|error| self.silent(&error))
    }

    fn headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        let token = self.token.as_ref().map(|token| ("authorization", token.bearer()));
        let process = self.process.map(|process| (PROCESS, process.to_string()));
        token.into_iter().chain(process)
    }

    fn read<T: DeserializeOwned>(
        &self,
        mut answer: Response<Body>,
    ) -> Result<Result<T, NotDone>, Failed> {
        let status = answer.status();
        let body = answer.body_mut().with_config().limit(MAX_BYTES).read_to_vec();
        let body = body.map_err(|error| self.silent(&error))?;
        if status == StatusCode::OK {
            return serde_json::from_slice(&body).map(Ok).map_err(|_| self.unknown());
        }
        let Ok(Refused { error: words }) = serde_json::from_slice(&body) else {
            return Err(self.unknown());
        };
        match status {
            StatusCode::MISDIRECTED_REQUEST => Err(self.place.gone(&words)),
            StatusCode::UNAUTHORIZED => {
                let message = format!("{} refuses: {words}; give --token-file FILE", self.url);
                Err(Failed::new(Code::Usage, message))
            }
            _ => Ok(Err(NotDone { status, words })),
        }
    }

    /// Nothing was answered.
    fn silent(&self, error: &ureq::Error) -> Failed {
        match error {
            ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                self.place.gone(&format!("nothing answers at {}", self.url))
            }
            error => {
                let message = format!("asking {}: {error}", self.url);
                Failed::new(Code::Unavailable, message)
            }
        }
    }

    /// Something else was answered.
    fn unknown(&self) -> Failed {
        let message = format!("what answers at {} is not this version of lockgate", self.url);
        Failed::new(Code::Unavailable, message)
    }
}

impl From<NotDone> for Failed {
    fn from(NotDone { status, words }: NotDone) -> Self {
        let code = match status {
            StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => Code::Configuration,
            StatusCode::SERVICE_UNAVAILABLE => Code::Temporary,
            StatusCode::INTERNAL_SERVER_ERROR => Code::Bug,
            _ => Code::Usage,
        };
        Self::new(code, words)
    }
}

/// The authorities in a file.
fn roots(path: &Path) -> Result<RootCerts, Failed> {
    let wrong = |what: &dyn fmt::Display| {
        Failed::new(Code::Usage, format!("certificates {}: {what}", path.display()))
    };
    let text = std::fs::read(path).map_err(|error| wrong(&error))?;
    let mut found = Vec::new();
    for item in parse_pem(&text) {
        match item.map_err(|error| wrong(&error))? {
            PemItem::Certificate(certificate) => found.push(certificate),
            _ => continue,
        }
    }
    if found.is_empty() {
        return Err(wrong(&"there is none in it; it must be PEM"));
    }
    Ok(RootCerts::Specific(Arc::new(found)))
}
