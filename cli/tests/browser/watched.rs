//! A pipeline that runs, with its page in a browser.

use std::net::TcpListener;

use serde_json::{Value, json};

use crate::chromium::Browser;
use crate::http::{self, Answer};
use crate::site::{Running, Site};

/// Two followed files into one.
pub(crate) const PIPELINE: &str = "\
name: watched
checkpoint_interval: 1h
control: {listen: '127.0.0.1:0'}
inputs:
  orders: {file: {paths: orders.log, follow: true}}
  clicks: {file: {paths: clicks.log, follow: true}}
outputs:
  copy: {file: {path: out/all.log}}
";

/// A pipeline that runs, and a browser.
pub(crate) struct Watched {
    pub(crate) site: Site,
    pub(crate) running: Running,
    pub(crate) browser: Browser,
    /// Where the pipeline can be asked, `HOST:PORT`.
    pub(crate) address: String,
}

impl Watched {
    /// Starts the pipeline with three orders and no clicks, and shows its page.
    pub(crate) fn start(pipeline: &str) -> Self {
        let watched = Self::with(site(pipeline), Browser::start());
        watched.opens_page();
        watched.browser.waits_for("document.querySelector('#input-cards li')");
        watched
    }

    /// Starts the pipeline; the browser shows nothing yet.
    pub(crate) fn with(site: Site, browser: Browser) -> Self {
        let mut running = site.start();
        let address = address(&site, &mut running);
        Self { site, running, browser, address }
    }

    pub(crate) fn opens_page(&self) {
        self.browser.goes_to(&format!("http://{}/", self.address));
    }

    /// The status, as the API tells it.
    pub(crate) fn status(&self) -> Value {
        let Answer { status, body } =
            http::ask(&self.address, "GET", "/api/v1/status", &[], None).unwrap();
        assert_eq!(status, 200, "{body}");
        body
    }

    /// Waits until the card of an input or output has these words.
    pub(crate) fn waits_for_card(&self, name: &str, words: &str) {
        let expression = format!(
            "[...document.querySelectorAll('.card')].some(card => card.querySelector('h3').textContent === {} \
             && card.textContent.includes({}))",
            json!(name),
            json!(words)
        );
        self.browser.waits_for(&expression);
    }
}

/// A folder with the pipeline and what it reads.
pub(crate) fn site(pipeline: &str) -> Site {
    let site = Site::new(pipeline);
    site.write("orders.log", "one\ntwo\nthree\n");
    site.write("clicks.log", "");
    site
}

/// Waits until the pipeline that was started says where it can be asked, and that it runs.
pub(crate) fn address(site: &Site, running: &mut Running) -> String {
    let pid = running.child.id();
    let mut found = None;
    let is_there = running.until(|| {
        let text = std::fs::read(site.path(".lockgate/watched/control.json"));
        let said = text.ok().and_then(|text| serde_json::from_slice::<Value>(&text).ok());
        // A process before this one may have left a file behind.
        let said = said.filter(|said| said["pid"] == pid);
        let url = said.and_then(|said| said["url"].as_str().map(str::to_owned));
        found = url.map(|url| url.trim_start_matches("http://").trim_end_matches('/').to_owned());
        found.is_some()
    });
    assert!(is_there, "{}", running.stderr());
    found.unwrap()
}

/// A port that was free a moment ago, for a pipeline that is to be found again at the same place.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
