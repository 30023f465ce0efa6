//! Asks a running pipeline as programs do.

use std::fs;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value as JsonValue;
use ureq::Agent;

use crate::site::{Running, Site};

/// Where a pipeline answers.
#[derive(Clone)]
pub(crate) struct Api {
    url: String,
    token: Option<String>,
    agent: Agent,
}

impl Api {
    /// That of the pipeline with this name, which was started with `control` or `--listen`.
    pub(crate) fn of(site: &Site, pipeline: &str, running: &mut Running) -> Self {
        let said = site.path(&format!(".lockgate/{pipeline}/control.json"));
        assert!(running.until(|| said.exists()), "{}", running.stderr());
        let said: JsonValue = serde_json::from_slice(&fs::read(said).unwrap()).unwrap();
        let config = Agent::config_builder().http_status_as_error(false).build();
        let url = said["url"].as_str().unwrap().to_owned();
        Self { url, token: None, agent: config.into() }
    }

    /// The same with this token.
    pub(crate) fn knowing(mut self, token: &str) -> Self {
        self.token = Some(format!("Bearer {token}"));
        self
    }

    /// The status and the text of an answer.
    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        let mut request = self.agent.get(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("authorization", token);
        }
        let mut answer = request.call().unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    }

    /// The same of a request that wants something to be done.
    pub(crate) fn post(&self, path: &str) -> (u16, String) {
        let mut request = self.agent.post(format!("{}{path}", self.url));
        if let Some(token) = &self.token {
            request = request.header("authorization", token);
        }
        let answer = request.header("content-type", "application/json").send("{}");
        let mut answer = answer.unwrap();
        (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
    }

    pub(crate) fn status(&self) -> JsonValue {
        serde_json::from_str(&self.get("api/v1/status").1).unwrap()
    }
}

/// How often settings are changed.
const PERIOD: Duration = Duration::from_millis(50);

/// Puts `pipeline` of 0, 1, 2 … in force, one every 50 ms, each without waiting for those before it, for so long. All
/// of them must be answered well; the number of the last one.
pub(crate) fn reload_again_and_again(
    site: &Site,
    api: &Api,
    length: Duration,
    pipeline: impl Fn(u64) -> String,
) -> u64 {
    let begun = Instant::now();
    let (pace, paced) = channel::<()>();
    let mut asked = Vec::new();
    let mut n = 0;
    loop {
        // As careful people do, so that nobody reads half a file.
        site.write("pipeline.new", pipeline(n));
        fs::rename(site.path("pipeline.new"), site.path("pipeline.yaml")).unwrap();
        let api = api.clone();
        asked.push(thread::spawn(move || api.post("api/v1/reload")));
        if begun.elapsed() >= length {
            break;
        }
        assert_eq!(paced.recv_timeout(PERIOD), Err(RecvTimeoutError::Timeout));
        n += 1;
    }
    drop(pace);
    for answer in asked {
        let (code, text) = answer.join().unwrap();
        assert_eq!(code, 200, "{text}");
    }
    n
}
