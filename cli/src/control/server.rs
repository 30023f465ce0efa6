//! The server through which a running pipeline is looked at and steered.
//!
//! It has a thread and a runtime of its own, so that no client holds up the pipeline; what clients may cost is bounded
//! in number, size, time and pace (`connection`). Who may ask what is in `guard`.

mod answer;
mod connection;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod guard;
mod guarded;
mod health;
mod look;
mod names;
mod office;
mod openapi;
mod pace;
mod page;
mod routes;
mod steer;
mod tap;
#[cfg(test)]
mod tests;
mod tls;
mod token;

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_native_tls::TlsAcceptor;

use super::Board;
use crate::exit::{Code, Failed};
use guard::Guard;
use office::{MAX_CONNECTIONS, Office};

pub(crate) use guard::PROCESS;
pub(crate) use tls::TlsFiles;
pub(crate) use token::{CurrentToken, Token};

/// So many clients may wait to be accepted.
const BACKLOG: u32 = 1024;
/// How much the thread of the server stands back, in the units of nice(1). On Linux it counts for the thread alone.
const NICE: i32 = 15;
/// How long connections have to end when the server is stopped.
const LETTING_GO: Duration = Duration::from_secs(1);

/// Where the server listens, and to whom.
#[derive(Debug)]
pub(crate) struct ServerSettings {
    /// Where; port 0 is any that is free.
    pub(crate) address: SocketAddr,
    /// What clients must know; without it only this machine can ask.
    pub(crate) token: Option<Token>,
    /// For TLS.
    pub(crate) tls: Option<TlsFiles>,
}

/// A server that listens; it stops when dropped.
pub(crate) struct Server {
    address: SocketAddr,
    is_tls: bool,
    token: CurrentToken,
    closing: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens, and answers for `board` from now on.
    ///
    /// # Errors
    /// If the address cannot be listened at, the settings would let anybody steer, or TLS lacks something.
    pub(crate) fn start(settings: ServerSettings, board: Arc<Board>) -> Result<Self, Failed> {
        let ServerSettings { address, token, tls } = settings;
        if token.is_none() && !address.ip().is_loopback() {
            let message = format!(
                "control: {address} is within reach of other machines, so a token is needed; set a token file, or \
                 listen at 127.0.0.1:{}",
                address.port()
            );
            return Err(Failed::new(Code::Configuration, message));
        }
        let tls = tls.map(|files| files.acceptor()).transpose()?;
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| Failed::storage("starting the control server", &error))?;
        let listener = listen(&runtime, address)?;
        let address = listener.local_addr();
        let address =
            address.map_err(|error| Failed::storage("asking for the control address", &error))?;
        let is_tls = tls.is_some();
        let (closing, closed) = watch::channel(false);
        let token = CurrentToken::new(token);
        let guard = Guard { address, token: token.clone(), is_tls };
        let office = Office::new(board, guard, closed);
        let work = move || {
            give_way();
            runtime.block_on(work(listener, tls, Arc::new(office)));
        };
        let thread = std::thread::Builder::new().name("control".into()).spawn(work);
        let thread =
            thread.map_err(|error| Failed::storage("starting the control server", &error))?;
        Ok(Self { address, is_tls, token, closing, thread: Some(thread) })
    }

    /// Where it listens.
    #[cfg(test)]
    fn address(&self) -> SocketAddr {
        self.address
    }

    /// What clients must know, to be changed.
    pub(crate) fn token(&self) -> CurrentToken {
        self.token.clone()
    }

    /// Where this machine reaches it.
    pub(crate) fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        let ip = match self.address.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        format!("{scheme}://{}/", SocketAddr::new(ip, self.address.port()))
    }

    /// Answers the requests that wait and ends the server; takes at most a second.
    fn close(&mut self) {
        self.closing.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A panic of it has been printed.
            let _ = thread.join();
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

fn listen(runtime: &Runtime, address: SocketAddr) -> Result<TcpListener, Failed> {
    let _entered = runtime.enter();
    let listen = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // Connections of a process before this one do not matter.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    listen().map_err(|error| {
        let remedy = match error.kind() {
            ErrorKind::AddrInUse => {
                "another process listens there; stop it, or choose another port, or 0 for any that is free"
            }
            ErrorKind::AddrNotAvailable => "this machine has no such address; choose one that it has",
            ErrorKind::PermissionDenied => "choose a port above 1023",
            _ => "choose another address",
        };
        let message = format!("control: cannot listen at {address}: {error}; {remedy}");
        Failed::new(Code::Configuration, message)
    })
}

/// Lets this thread run when the threads of the pipeline do not want to. Where that cannot be, bounds must do.
fn give_way() {
    if let Err(error) = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICE) {
        tracing::debug!("the control server does not give way: {error}");
    }
}

/// Serves until the server is stopped, and lets the connections end then.
async fn work(listener: TcpListener, tls: Option<TlsAcceptor>, office: Arc<Office>) {
    let router = routes::router(office.clone());
    tokio::select! {
        never = connection::accept(&listener, tls, &office, &router) => match never {},
        () = health::feel(&office.board, &office.pulse) => office.closed().await,
        () = office.closed() => {}
    }
    drop(listener);
    let all = office.seats.acquire_many(MAX_CONNECTIONS as u32);
    let _ = timeout(LETTING_GO, all).await;
}
