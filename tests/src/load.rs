//! A steady load of equal requests, whether or not those before are answered in time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// One request of a load.
#[derive(Debug, Clone, Copy)]
pub struct Shot {
    /// The answer's status.
    pub status: u16,
    /// When the answer was there.
    pub answered_at: Instant,
    /// From the request to the answer.
    pub took: Duration,
}

/// Sends requests over `connections` HTTP/1.1 connections, together `per_second` of them, for `span`.
///
/// A connection sends its next request when the one before is answered, so where the machine is too slow fewer
/// are sent: count what comes back. Panics where a connection ends.
pub async fn load(
    addr: SocketAddr,
    path: &str,
    headers: &[(&str, &str)],
    connections: u32,
    per_second: u32,
    span: Duration,
) -> Vec<Shot> {
    let mut request = format!("GET {path} HTTP/1.1\r\nhost: load\r\n");
    for (name, value) in headers {
        request.extend([name, ": ", value, "\r\n"]);
    }
    request.push_str("\r\n");
    let period = Duration::from_secs(1) * connections / per_second;
    let mut tasks = JoinSet::new();
    for index in 0..connections {
        let request = request.clone();
        tasks.spawn(async move {
            // The connections take turns instead of sending all at the same moment.
            tokio::time::sleep(period * index / connections).await;
            shoot(addr, request.as_bytes(), period, span).await
        });
    }
    tasks.join_all().await.into_iter().flatten().collect()
}

async fn shoot(addr: SocketAddr, request: &[u8], period: Duration, span: Duration) -> Vec<Shot> {
    let stream = TcpStream::connect(addr).await.expect("Envoy accepts");
    stream.set_nodelay(true).expect("a socket takes options");
    let (read, mut write) = stream.into_split();
    let mut read = BufReader::new(read);
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (begun, mut shots) = (Instant::now(), Vec::new());
    while begun.elapsed() < span {
        ticks.tick().await;
        let sent = Instant::now();
        write.write_all(request).await.expect("Envoy reads");
        let status = answer(&mut read).await;
        shots.push(Shot { status, answered_at: Instant::now(), took: sent.elapsed() });
    }
    shots
}

/// Reads one answer with a `content-length`, and returns its status.
async fn answer(read: &mut BufReader<OwnedReadHalf>) -> u16 {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(read.read_u8().await.expect("Envoy answers"));
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
    let length: usize = length.and_then(|length| length.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    read.read_exact(&mut body).await.expect("Envoy answers in full");
    head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status")
}
