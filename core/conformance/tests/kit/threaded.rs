//! A thread around readers that need none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use lockgate_core::{
    EndpointError, FaultTolerance, InputConsumer, InputEndpoint, InputReader, InputReaderCommand,
};
use serde_json::Value as JsonValue;

/// An endpoint whose readers carry out their commands on a thread.
pub(crate) struct Threaded<E>(pub(crate) E);

struct ThreadedReader {
    commands: Option<Sender<InputReaderCommand>>,
    is_closed: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl<E: InputEndpoint> InputEndpoint for Threaded<E> {
    fn fault_tolerance(&self) -> FaultTolerance {
        self.0.fault_tolerance()
    }

    fn open(
        self: Box<Self>,
        level: FaultTolerance,
        consumer: Arc<dyn InputConsumer>,
        resume: Option<JsonValue>,
    ) -> Result<Box<dyn InputReader>, EndpointError> {
        let inner = Box::new(self.0).open(level, consumer, resume)?;
        let (commands, inbox) = channel();
        let is_closed = Arc::new(AtomicBool::new(false));
        let closing = is_closed.clone();
        let thread = std::thread::spawn(move || {
            while let Ok(command) = inbox.recv() {
                inner.request(command);
                closing.store(inner.is_closed(), Ordering::Release);
            }
        });
        Ok(Box::new(ThreadedReader { commands: Some(commands), is_closed, thread: Some(thread) }))
    }
}

impl InputReader for ThreadedReader {
    fn request(&self, command: InputReaderCommand) {
        if let Some(commands) = &self.commands {
            let _ = commands.send(command);
        }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Acquire)
    }
}

impl Drop for ThreadedReader {
    fn drop(&mut self) {
        self.commands = None;
        self.thread.take().map(JoinHandle::join).transpose().unwrap();
    }
}
