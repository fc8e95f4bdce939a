//! Ports for processes that must come back on the same one after a restart.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// The ports below the range from which systems take those of outgoing connections: a port that
/// is given up for a moment, while its process restarts, cannot be taken by a client's socket.
const FIRST: u32 = 12_000;
const COUNT: u32 = 20_000;

/// How far apart the processes of a test run begin to search, so that they do not meet.
const PER_PROCESS: u32 = 16;

static NEXT: AtomicU32 = AtomicU32::new(0);

/// A loopback port on which nothing listens and that no other call in this process has returned.
pub fn free_port() -> u16 {
    let start = std::process::id().wrapping_mul(PER_PROCESS);
    for _ in 0..COUNT {
        let step = NEXT.fetch_add(1, Ordering::Relaxed);
        let candidate = FIRST + start.wrapping_add(step) % COUNT;
        let port = u16::try_from(candidate).expect("the range lies within the ports");
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return port;
        }
    }
    panic!("no free port between {FIRST} and {}", FIRST + COUNT);
}

/// A loopback address that refuses connections.
pub fn refusing_addr() -> SocketAddr {
    loopback(free_port())
}

pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}
