//! What arrives at a real socket.

use std::path::Path;

use super::*;

fn supervisor(variables: &[(&str, &str)]) -> Supervisor {
    Supervisor::from_variables(|name| {
        let found = variables.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| (*value).into())
    })
}

fn heard(socket: &UnixDatagram) -> String {
    let mut buffer = [0; 4096];
    let length = socket.recv(&mut buffer).unwrap();
    String::from_utf8(buffer[..length].to_vec()).unwrap()
}

/// A socket in a directory of its own, which is removed with it.
fn listen() -> (tempfile::TempDir, UnixDatagram, String) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let socket = UnixDatagram::bind(&path).unwrap();
    (directory, socket, path.to_str().unwrap().to_owned())
}

#[test]
fn each_message_is_one_datagram() {
    let (_directory, socket, path) = listen();
    let supervisor = supervisor(&[("NOTIFY_SOCKET", &path)]);
    supervisor.ready();
    assert_eq!(heard(&socket), "READY=1\n");
    supervisor.status("running, 3 steps\nREADY=0");
    assert_eq!(heard(&socket), "STATUS=running, 3 steps READY=0\n");
    supervisor.alive();
    assert_eq!(heard(&socket), "WATCHDOG=1\n");
    supervisor.stopping();
    assert_eq!(heard(&socket), "STOPPING=1\n");
}

#[test]
fn a_reload_carries_the_time_by_the_clock_of_the_machine() {
    let (_directory, socket, path) = listen();
    let before = monotonic_us();
    supervisor(&[("NOTIFY_SOCKET", &path)]).reloading();
    let heard = heard(&socket);
    let time = heard.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap().trim_end();
    let time: u128 = time.parse().unwrap();
    assert!(before > 0 && before <= time && time <= monotonic_us(), "{before} {time}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_socket_may_have_a_name_that_is_no_file() {
    use std::os::linux::net::SocketAddrExt;

    let name = format!("lockgate-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).unwrap();
    let socket = UnixDatagram::bind_addr(&address).unwrap();
    supervisor(&[("NOTIFY_SOCKET", &format!("@{name}"))]).ready();
    assert_eq!(heard(&socket), "READY=1\n");
}

#[test]
fn without_a_service_manager_nothing_happens() {
    for variables in [&[][..], &[("NOTIFY_SOCKET", "")], &[("NOTIFY_SOCKET", "relative")]] {
        let supervisor = supervisor(variables);
        supervisor.ready();
        supervisor.status("running");
        assert!(supervisor.socket.is_none());
        assert_eq!(supervisor.watchdog_interval(), None);
    }
}

#[test]
fn a_service_manager_that_has_gone_or_does_not_read_holds_nothing_up() {
    let (directory, socket, path) = listen();
    let supervisor = supervisor(&[("NOTIFY_SOCKET", &path)]);
    // More than any queue of a socket has room for.
    for _ in 0..10_000 {
        supervisor.alive();
    }
    assert!(supervisor.failed.load(Ordering::Relaxed));
    socket.set_nonblocking(true).unwrap();
    while socket.recv(&mut [0; 64]).is_ok() {}
    supervisor.alive();
    assert!(!supervisor.failed.load(Ordering::Relaxed));
    drop((socket, directory));
    assert!(!Path::new(&path).exists());
    supervisor.ready();
    assert!(supervisor.failed.load(Ordering::Relaxed));
}

#[test]
fn the_watchdog_is_ours_if_the_process_is() {
    let (_directory, _socket, path) = listen();
    let own = std::process::id().to_string();
    let interval = |more: &[(&str, &str)]| {
        let variables = [&[("NOTIFY_SOCKET", path.as_str())], more].concat();
        supervisor(&variables).watchdog_interval()
    };
    let half = Some(Duration::from_secs(15));
    assert_eq!(interval(&[]), None);
    assert_eq!(interval(&[("WATCHDOG_USEC", "30000000")]), half);
    assert_eq!(interval(&[("WATCHDOG_USEC", "30000000"), ("WATCHDOG_PID", &own)]), half);
    assert_eq!(interval(&[("WATCHDOG_USEC", "30000000"), ("WATCHDOG_PID", "1")]), None);
    assert_eq!(interval(&[("WATCHDOG_USEC", "30000000"), ("WATCHDOG_PID", "x")]), None);
    assert_eq!(interval(&[("WATCHDOG_USEC", "0")]), None);
    assert_eq!(interval(&[("WATCHDOG_USEC", "soon")]), None);
}
