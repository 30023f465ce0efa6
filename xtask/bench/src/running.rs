//! A pipeline that goes on until it is killed, and what it says of itself.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use serde_json::Value as JsonValue;

use crate::site::Site;

/// How long something that is waited for may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// Killed when it is dropped.
pub(crate) struct Running {
    child: Child,
    address: String,
    complaints: PathBuf,
}

impl Running {
    /// Starts a pipeline, and waits until it answers.
    pub(crate) fn start(site: &Site, pipeline: &Path, state: &Path) -> Result<Self> {
        let complaints = site.path("stderr.log");
        let mut command = site.lockgate_run(pipeline, state);
        command.args(["--listen", "127.0.0.1:0"]).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(fs::File::create(&complaints)?);
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let mut running = Self { child, address: String::new(), complaints };
        let said = state.join("control.json");
        running.address = running.until("an address", |_| {
            let Ok(text) = fs::read(&said) else { return Ok(None) };
            let said: JsonValue = serde_json::from_slice(&text)?;
            let url = said["url"].as_str().context("control.json has no url")?;
            let address = url.trim_start_matches("http://").trim_end_matches('/');
            Ok(Some(address.to_owned()))
        })?;
        Ok(running)
    }

    /// Looks again and again until there is something.
    pub(crate) fn until<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut(&Self) -> Result<Option<T>>,
    ) -> Result<T> {
        let begun = Instant::now();
        loop {
            if let Some(found) = look(self)? {
                return Ok(found);
            }
            let alive = self.child.try_wait()?.is_none();
            ensure!(
                alive && begun.elapsed() < PATIENCE,
                "lockgate {} before there was {what}: {}",
                if alive { "took too long" } else { "ended" },
                fs::read_to_string(&self.complaints).unwrap_or_default()
            );
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The status as JSON.
    pub(crate) fn status(&self) -> Result<JsonValue> {
        Ok(serde_json::from_str(&self.get("/api/v1/status")?)?)
    }

    /// The metrics in the text format of Prometheus.
    pub(crate) fn metrics(&self) -> Result<String> {
        self.get("/metrics")
    }

    fn get(&self, path: &str) -> Result<String> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: {}\r\n\r\n", self.address)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
        let line = head.lines().next().unwrap_or_default();
        if line.contains(" 200") { Ok(body.to_owned()) } else { Err(anyhow!("{path}: {line}")) }
    }

    /// How long it has been running, and how many records of its first input are in steps.
    pub(crate) fn progress(&self) -> Result<(f64, u64)> {
        let status = self.status()?;
        let seconds = status["running_seconds"].as_f64().context("no running_seconds")?;
        Ok((seconds, status["inputs"][0]["records"].as_u64().context("no records")?))
    }

    /// Waits until so many records of the first input went through.
    pub(crate) fn until_through(&mut self, records: u64) -> Result<()> {
        self.until("all records", |running| {
            let status = running.status()?;
            let done = status["outputs"][0]["records"].as_u64() >= Some(records)
                && status["steps"]["in_flight"] == 0;
            Ok(done.then_some(()))
        })
    }

    /// As a crash would.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
