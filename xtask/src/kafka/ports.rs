//! Free ports on loopback.
//!
//! They lie below those that systems give to outgoing connections: while a broker is down, a client that
//! tries to reach it could otherwise be given the broker's own port and connect to itself.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Result, ensure};

const RANGE: std::ops::Range<u16> = 21_000..31_000;

/// As many as wanted, from a random place on, so that two that choose at once hardly meet.
pub(super) fn free(wanted: usize) -> Result<Vec<u16>> {
    let offset = (RandomState::new().hash_one(0) % u64::from(RANGE.end - RANGE.start)) as u16;
    let from = RANGE.start + offset;
    let ports: Vec<u16> = (from..RANGE.end)
        .chain(RANGE.start..from)
        .filter(|port| is_free(*port))
        .take(wanted)
        .collect();
    ensure!(ports.len() == wanted, "no {wanted} free ports between {RANGE:?}");
    Ok(ports)
}

pub(super) fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ports_are_free_and_none_is_given_twice() {
        let mut ports = free(6).unwrap();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 6);
        assert!(ports.iter().all(|port| RANGE.contains(port)));
    }

    #[test]
    fn a_port_in_use_is_not_free() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(!is_free(listener.local_addr().unwrap().port()));
    }
}
