//! A browser of one test's own, by the WebDriver protocol.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::http;

/// How long the page may take to show something.
const PATIENCE: Duration = Duration::from_secs(60);

/// The key that stands for an element in WebDriver's JSON.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// Keys, as WebDriver writes them.
pub(crate) const TAB: &str = "\u{e004}";
pub(crate) const ENTER: &str = "\u{e007}";
pub(crate) const ESCAPE: &str = "\u{e00c}";

/// A window with a page in it. The browser ends when this is dropped.
pub(crate) struct Browser {
    driver: Child,
    address: String,
    session: String,
}

impl Browser {
    /// Starts a browser without a screen.
    pub(crate) fn start() -> Self {
        let mut command = Command::new("chromedriver");
        command.args(["--port=0", "--log-level=SEVERE"]);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut driver = command.spawn().expect(
            "chromedriver cannot be started; get it with `apt-get install chromium chromium-driver`",
        );
        let mut lines = BufReader::new(driver.stdout.take().unwrap()).lines();
        let port = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, port) = line.split_once("started successfully on port ")?;
            Some(port.trim_end_matches('.').to_owned())
        });
        // What it prints later is for nobody, but it must not be held up.
        thread::spawn(move || lines.for_each(drop));
        let address = format!("127.0.0.1:{}", port.expect("chromedriver says no port"));
        let mut browser = Self { driver, address, session: String::new() };
        let arguments =
            ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }}});
        let session = browser.ask("POST", "/session", Some(&wanted)).unwrap();
        browser.session = format!("/session/{}", session["sessionId"].as_str().unwrap());
        browser.wears(1280, 900, &[]);
        browser
    }

    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let path = format!("{}{path}", self.session);
        let answer = http::ask(&self.address, method, &path, &[], body);
        let mut answer = answer.map_err(|error| format!("chromedriver is gone: {error}"))?;
        let value = answer.body["value"].take();
        if answer.status == 200 { Ok(value) } else { Err(value.to_string()) }
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", path, Some(body)).unwrap_or_else(|error| panic!("{path} {body}: {error}"))
    }

    /// Goes to a page and waits until it is loaded.
    pub(crate) fn goes_to(&self, url: &str) {
        self.post("/url", &json!({ "url": url }));
    }

    /// A command of the browser's own protocol.
    pub(crate) fn devtools(&self, command: &str, parameters: &Value) -> Value {
        self.post("/goog/cdp/execute", &json!({"cmd": command, "params": parameters}))
    }

    /// The size of the window, and what the person who looks prefers.
    pub(crate) fn wears(&self, width: u32, height: u32, prefers: &[(&str, &str)]) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", &size);
        let features: Vec<Value> =
            prefers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        self.devtools("Emulation.setEmulatedMedia", &json!({ "features": features }));
    }

    /// Runs before every page that is loaded from now on.
    pub(crate) fn prepares(&self, script: &str) {
        self.devtools("Page.addScriptToEvaluateOnNewDocument", &json!({ "source": script }));
    }

    /// What the function with this body returns in the page.
    pub(crate) fn evaluates(&self, body: &str) -> Value {
        self.post("/execute/sync", &json!({"script": body, "args": []}))
    }

    /// Waits until the expression holds in the page.
    pub(crate) fn waits_for(&self, expression: &str) {
        let begun = Instant::now();
        while self.evaluates(&format!("return !!({expression})")) != true {
            if begun.elapsed() > PATIENCE {
                let text = self.evaluates("return document.body.innerText");
                let text = text.as_str().unwrap_or_default();
                panic!("the page does not come to {expression}; it says:\n{text}");
            }
            thread::sleep(Duration::from_millis(20)); // polls: the page in another process
        }
    }

    /// Waits until the words are to be seen somewhere in the page.
    pub(crate) fn waits_for_words(&self, words: &str) {
        self.waits_for(&format!("document.body.innerText.includes({})", json!(words)));
    }

    /// Clicks as a mouse does, which needs the element to be in view and not covered.
    pub(crate) fn clicks(&self, selector: &str) {
        let wanted = json!({"using": "css selector", "value": selector});
        let element = self.post("/element", &wanted);
        let element = element[ELEMENT].as_str().unwrap();
        self.post(&format!("/element/{element}/click"), &json!({}));
    }

    /// Types these keys where the focus is.
    pub(crate) fn types(&self, keys: &str) {
        let strokes: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
            })
            .collect();
        let keyboard = json!({"type": "key", "id": "keyboard", "actions": strokes});
        self.post("/actions", &json!({ "actions": [keyboard] }));
    }

    /// Goes on with the Tab key until the expression holds for the element `focus` that has the focus.
    pub(crate) fn tabs_to(&self, expression: &str) {
        let reached =
            format!("const focus = document.activeElement; return !!focus && !!({expression})");
        for _ in 0..200 {
            self.types(TAB);
            if self.evaluates(&reached) == true {
                return;
            }
        }
        panic!("the Tab key does not lead to {expression}");
    }

    /// What was written to the console since the last look, warnings and worse.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({"type": "browser"}));
        let entries = log.as_array().unwrap().iter();
        let bad = entries.filter(|entry| entry["level"] != "INFO" && entry["level"] != "DEBUG");
        bad.map(|entry| entry["message"].as_str().unwrap().to_owned()).collect()
    }

    /// The addresses of all requests since the last look.
    pub(crate) fn requests(&self) -> Vec<String> {
        let log = self.post("/se/log", &json!({"type": "performance"}));
        let entries = log.as_array().unwrap().iter();
        let messages = entries.map(|entry| {
            let message = entry["message"].as_str().unwrap();
            serde_json::from_str::<Value>(message).unwrap()["message"].take()
        });
        let sent = messages.filter(|message| message["method"] == "Network.requestWillBeSent");
        sent.map(|message| message["params"]["request"]["url"].as_str().unwrap().to_owned())
            .collect()
    }

    /// A picture of the whole page, for people to look at.
    pub(crate) fn is_pictured(&self, name: &str) {
        let all = json!({"format": "png", "captureBeyondViewport": true});
        let picture = self.devtools("Page.captureScreenshot", &all);
        let picture = STANDARD.decode(picture["data"].as_str().unwrap()).unwrap();
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("browser");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{name}.png")), picture).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Without this the browser would outlive its driver.
        if !self.session.is_empty() {
            let _ = self.ask("DELETE", "", None);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
