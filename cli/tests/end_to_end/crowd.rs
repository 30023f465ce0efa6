//! Clients of the control server that mean no good: greedy, slow, deaf, huge and senseless ones.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How long a client waits for something at most, before it looks whether it is to end.
const GLANCE: Duration = Duration::from_millis(100);

/// How far away a client is: without it they would take the processor from what they ask.
const ROUND_TRIP: Duration = Duration::from_millis(20);

/// Many clients at once.
pub(crate) struct Crowd {
    ended: Arc<AtomicBool>,
    answers: Arc<AtomicU64>,
    clients: Vec<JoinHandle<()>>,
}

impl Crowd {
    /// So many clients of all kinds, which ask until they are told to end.
    pub(crate) fn of(clients: usize, address: SocketAddr) -> Self {
        let (ended, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let client = |number: usize| {
            let client = Client { address, ended: ended.clone(), answers: answers.clone() };
            std::thread::spawn(move || {
                while !client.has_ended() {
                    // Whoever is thrown out comes again, as soon as a network would let it.
                    let _ = client.misbehave(number);
                    std::thread::park_timeout(ROUND_TRIP);
                }
            })
        };
        let clients = (0..clients).map(client).collect();
        Self { ended, answers, clients }
    }

    /// Ends all clients; how many answers they had.
    pub(crate) fn end(self) -> u64 {
        self.ended.store(true, Ordering::Relaxed);
        for client in self.clients {
            let _ = client.join();
        }
        self.answers.load(Ordering::Relaxed)
    }
}

struct Client {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    answers: Arc<AtomicU64>,
}

impl Client {
    fn has_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }

    /// One connection, until it is closed.
    fn misbehave(&self, number: usize) -> std::io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&self.address, GLANCE * 10)?;
        stream.set_read_timeout(Some(GLANCE))?;
        stream.set_write_timeout(Some(GLANCE))?;
        let head = |line: &str| format!("{line} HTTP/1.1\r\nHost: {}\r\n", self.address);
        let get = ["/api/v1/status", "/metrics", "/api/v1/partitions", "/"][number / 5 % 4];
        match number % 5 {
            // Greedy: asks again as soon as there is an answer.
            0 => {
                let request = head(&format!("GET {get}")) + "\r\n";
                while !self.has_ended() {
                    stream.write_all(request.as_bytes())?;
                    self.listen(&mut stream)?;
                }
            }
            // Slow: a byte of its head at a time.
            1 => {
                for byte in head("GET /healthz").bytes() {
                    stream.write_all(&[byte])?;
                    self.listen(&mut stream)?;
                }
            }
            // Deaf: asks and never takes an answer.
            2 => {
                let request = head("GET /api/v1/status") + "\r\n";
                while !self.has_ended() {
                    stream.write_all(request.as_bytes())?;
                }
            }
            // Huge: a body without an end.
            3 => {
                let kind = "Content-Type: application/json\r\nContent-Length: 999999999\r\n\r\n";
                stream.write_all((head("POST /api/v1/pause") + kind).as_bytes())?;
                while !self.has_ended() {
                    stream.write_all(&[b'['; 64 << 10])?;
                }
            }
            // Senseless.
            _ => {
                stream.write_all(&[number as u8; 3000])?;
                self.listen(&mut stream)?;
            }
        }
        Ok(())
    }

    /// Waits for a piece of an answer, but not for long.
    fn listen(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        match stream.read(&mut [0; 64 << 10]) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                self.answers.fetch_add(1, Ordering::Relaxed);
                Ok(())
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}
