//! A steady load of equal requests, whether or not those before are answered in time.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// One request of a load.
#[derive(Debug, Clone, Copy)]
pub struct Shot {
    /// The answer's status.
    pub status: u16,
    /// Whether the answer tells of a limit: then some policy has decided the request.
    pub is_limited: bool,
    /// When the answer was there.
    pub answered_at: Instant,
    /// From the request to the answer.
    pub took: Duration,
}

impl Shot {
    /// When the request was sent.
    pub fn sent_at(&self) -> Instant {
        self.answered_at.checked_sub(self.took).unwrap_or(self.answered_at)
    }
}

/// Sends requests over `connections` HTTP/1.1 connections, together `per_second` of them, for `span`.
///
/// A connection sends its next request when the one before is answered, so where the machine is too slow fewer
/// are sent: count what comes back. Where Envoy closes a connection, as it may between two requests, another
/// one takes its place. Panics where that does not help.
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
    let mut connection = connect(addr).await;
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (begun, mut shots) = (Instant::now(), Vec::new());
    while begun.elapsed() < span {
        ticks.tick().await;
        let sent = Instant::now();
        let mut answer = exchange(&mut connection, request).await;
        if answer.is_none() {
            // Closed before a byte of an answer, as an idle connection may be at any time.
            connection = connect(addr).await;
            answer = exchange(&mut connection, request).await;
        }
        let Answer { status, is_limited, is_last } = answer.expect("a new connection carries an answer");
        shots.push(Shot { status, is_limited, answered_at: Instant::now(), took: sent.elapsed() });
        if is_last {
            connection = connect(addr).await;
        }
    }
    shots
}

async fn connect(addr: SocketAddr) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(addr).await.expect("Envoy accepts");
    stream.set_nodelay(true).expect("a socket takes options");
    BufReader::new(stream)
}

struct Answer {
    status: u16,
    is_limited: bool,
    /// The connection is closed after it.
    is_last: bool,
}

/// Sends a request and reads its answer, which must have a `content-length`; `None` where the connection ends
/// before the answer begins.
async fn exchange(connection: &mut BufReader<TcpStream>, request: &[u8]) -> Option<Answer> {
    connection.write_all(request).await.ok()?;
    let mut head = vec![connection.read_u8().await.ok()?];
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await.expect("Envoy answers in full"));
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let field = |name| head.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let length: usize = field("content-length:").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    connection.read_exact(&mut body).await.expect("Envoy answers in full");
    Some(Answer {
        status: head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status"),
        is_limited: field("ratelimit:").is_some(),
        is_last: field("connection:") == Some("close"),
    })
}
