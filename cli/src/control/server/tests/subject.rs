//! A pipeline that runs, and a server that answers for it.

use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use lockgate_controller::{Controller, Delivery, Pipeline, Settings};
use lockgate_core::{Framing, MemoryOutput};
use lockgate_file_adapter::{FileInput, FileInputConfig, Overlong, StartAt};
use serde_json::Value as JsonValue;
use tempfile::TempDir;

use super::super::{Server, ServerSettings, Token};
use super::wire::{Answer, ask};
use crate::control::report::Change;
use crate::control::{Asked, Board, Endpoint, Facts, Wish};

/// How long anything may take before a test gives up.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);

/// A server whose pipeline is being opened, until [`Subject::run`].
pub(super) struct Subject {
    pub(super) server: Option<Server>,
    pub(super) board: Arc<Board>,
    pub(super) output: MemoryOutput,
    folder: TempDir,
    runs: Option<JoinHandle<()>>,
    wishes: Option<JoinHandle<()>>,
}

impl Subject {
    pub(super) fn new() -> Self {
        Self::with("exactly_once", None)
    }

    pub(super) fn with(delivery: &'static str, token: Option<&str>) -> Self {
        let endpoint = |name: &str| Endpoint { name: name.into(), kind: "file" };
        let facts = Facts {
            pipeline: "test".into(),
            file: "pipeline.yaml".into(),
            delivery,
            inputs: vec![endpoint("orders"), endpoint("users")],
            outputs: vec![endpoint("copy")],
            started_at: SystemTime::now(),
        };
        let (board, mut wished) = Board::new(facts);
        let board = Arc::new(board);
        let of_wishes = board.clone();
        let wishes = std::thread::spawn(move || {
            while let Some(Asked { wish, answer }) = wished.blocking_recv() {
                // As the loop of `run` does.
                match (wish, of_wishes.run()) {
                    (Wish::Stop, Some(run)) => run.stop(),
                    (Wish::Stop, None) => return,
                    (Wish::Reload, _) => {
                        let path = "checkpoint_interval".into();
                        let (was, is) = (Some("10s".into()), Some("20s".into()));
                        let changes = vec![Change { path, was, is }];
                        let _ = answer.map(|answer| answer.send(Ok(changes)));
                    }
                }
            }
        });
        let settings = ServerSettings {
            address: "127.0.0.1:0".parse().unwrap(),
            token: token.map(|token| Token::new(token).unwrap()),
            tls: None,
        };
        let server = Server::start(settings, board.clone()).unwrap();
        let folder = TempDir::new().unwrap();
        let output = MemoryOutput::default();
        let wishes = Some(wishes);
        Self { server: Some(server), board, output, folder, runs: None, wishes }
    }

    /// Runs a pipeline that follows two files.
    pub(super) fn run(&mut self) {
        for name in ["orders", "users"] {
            std::fs::write(self.path(name), "").unwrap();
        }
        let delivery = match self.board.facts.delivery {
            "none" => Delivery::None,
            _ => Delivery::ExactlyOnce,
        };
        let settings = Settings { delivery, ..Settings::new(self.path("state")) };
        let input = |name: &str| {
            let follow = FileInputConfig {
                paths: vec![self.path(name).display().to_string()],
                framing: Framing::Lines,
                max_record_bytes: 1 << 20,
                overlong: Overlong::Stop,
                follow: true,
                start_at: StartAt::Beginning,
            };
            FileInput::new(follow)
        };
        let pipeline = Pipeline::new("test", settings)
            .input("orders", input("orders"))
            .input("users", input("users"))
            .output("copy", self.output.clone());
        let board = self.board.clone();
        self.runs = Some(std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let controller = Controller::open(pipeline).unwrap();
                board.show(Some(controller.handle()));
                controller.run().await.unwrap();
            });
        }));
        self.until("it reads", |subject| subject.get("/readyz").status == 200);
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(super) fn append(&self, name: &str, text: &str) {
        let mut file = std::fs::File::options().append(true).open(self.path(name)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.server.as_ref().unwrap().address()
    }

    /// Asks with this head, to which `Host` and `Connection: close` are added.
    pub(super) fn ask(&self, head: &str, body: &str) -> Answer {
        ask(self.address(), head, body)
    }

    pub(super) fn get(&self, path: &str) -> Answer {
        self.ask(&format!("GET {path} HTTP/1.1"), "")
    }

    pub(super) fn json(&self, path: &str) -> JsonValue {
        let answer = self.get(path);
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.json()
    }

    pub(super) fn post(&self, path: &str, body: &str) -> Answer {
        self.ask(&format!("POST {path} HTTP/1.1\r\nContent-Type: application/json"), body)
    }

    /// Whoever hears wishes.
    pub(super) fn take_wishes(&mut self) -> JoinHandle<()> {
        self.wishes.take().unwrap()
    }

    /// Waits until `reached`, which is asked again and again.
    pub(super) fn until(&self, what: &str, reached: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !reached(self) {
            assert!(begun.elapsed() < DEADLINE, "waited too long until {what}");
            std::thread::sleep(Duration::from_millis(2)); // polls: the state of another thread
        }
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        match self.board.run() {
            Some(run) => run.stop(),
            None => self.board.stop(),
        }
        if let Some(runs) = self.runs.take() {
            let ended = runs.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
        drop(self.server.take());
        // Whoever waits for wishes goes when nobody can have any; it holds the board itself.
        self.board.show(None);
        self.board.stop();
        if let Some(wishes) = self.wishes.take() {
            let _ = wishes.join();
        }
    }
}
