//! What a service manager that speaks systemd's protocol (sd_notify(3)) is told: that the pipeline is ready, is
//! reloading or stopping, what it is doing, and that it is alive.
//!
//! A message is one datagram of lines `NAME=VALUE` to the socket in `NOTIFY_SOCKET`. Without that variable nobody
//! listens, and nothing is sent. A message that cannot be sent is logged once; a pipeline does not end for it.
//! Deliberately not here: when to say what.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[cfg(test)]
mod deployed;
#[cfg(test)]
mod tests;

/// The service manager, if there is one.
pub(crate) struct Supervisor {
    socket: Option<UnixDatagram>,
    watchdog: Option<Duration>,
    failed: AtomicBool,
}

impl Supervisor {
    /// The one that started this process.
    pub(crate) fn from_env() -> Self {
        Self::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let socket = variable("NOTIFY_SOCKET").filter(|name| !name.is_empty());
        let socket = socket.and_then(|name| match connect(name.as_bytes()) {
            Ok(socket) => Some(socket),
            Err(error) => {
                let name = name.display();
                tracing::warn!("cannot tell the service manager anything: {name}: {error}");
                None
            }
        });
        let number = |name| variable(name)?.to_str()?.parse::<u64>().ok();
        // A process that the service started may have inherited what is meant for another one.
        let is_ours = match variable("WATCHDOG_PID") {
            None => true,
            Some(_) => number("WATCHDOG_PID") == Some(u64::from(std::process::id())),
        };
        let watchdog = number("WATCHDOG_USEC").filter(|us| *us > 0 && is_ours && socket.is_some());
        Self {
            socket,
            watchdog: watchdog.map(|us| Duration::from_micros(us) / 2),
            failed: AtomicBool::new(false),
        }
    }

    /// The pipeline works; also after [`reloading`](Self::reloading), when that is over.
    pub(crate) fn ready(&self) {
        self.tell("READY=1\n");
    }

    /// What the pipeline is doing, for people: one line.
    pub(crate) fn status(&self, text: &str) {
        // A line break would begin another message.
        let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        self.tell(&format!("STATUS={text}\n"));
    }

    /// The pipeline file is being read again; [`ready`](Self::ready) must follow.
    pub(crate) fn reloading(&self) {
        self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={}\n", monotonic_us()));
    }

    /// The pipeline is ending.
    pub(crate) fn stopping(&self) {
        self.tell("STOPPING=1\n");
    }

    /// How often to say that the process is [`alive`](Self::alive): twice as often as is asked for; `None` if nobody
    /// asks.
    pub(crate) fn watchdog_interval(&self) -> Option<Duration> {
        self.watchdog
    }

    /// The process does what it should.
    pub(crate) fn alive(&self) {
        self.tell("WATCHDOG=1\n");
    }

    fn tell(&self, message: &str) {
        let Some(socket) = &self.socket else { return };
        match socket.send(message.as_bytes()) {
            Ok(_) => self.failed.store(false, Ordering::Relaxed),
            Err(error) if !self.failed.swap(true, Ordering::Relaxed) => {
                let what = message.trim_end();
                tracing::warn!("cannot tell the service manager {what:?}: {error}");
            }
            Err(_) => {}
        }
    }
}

/// A path, or with `@` before it a name of Linux that is no file. What listens must not be able to hold the pipeline
/// up, so sending does not wait.
fn connect(name: &[u8]) -> io::Result<UnixDatagram> {
    let address = match name {
        [b'@', name @ ..] => abstract_address(name)?,
        [b'/', ..] => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
        _ => return Err(io::Error::new(io::ErrorKind::Unsupported, "neither a path nor @NAME")),
    };
    let socket = UnixDatagram::unbound()?;
    socket.connect_addr(&address)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

#[cfg(target_os = "linux")]
fn abstract_address(name: &[u8]) -> io::Result<SocketAddr> {
    use std::os::linux::net::SocketAddrExt;

    SocketAddr::from_abstract_name(name)
}

#[cfg(not(target_os = "linux"))]
fn abstract_address(_name: &[u8]) -> io::Result<SocketAddr> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux has such names"))
}

/// The clock that systemd compares with, which `Instant` does not show.
fn monotonic_us() -> u128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u32::try_from(now.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanoseconds.unwrap_or(0)).as_micros()
}
