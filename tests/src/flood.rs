//! Very many requests as fast as Envoy takes them: HTTP/1.1, pipelined over a few connections.
//!
//! A client library would spend more time on a request than Envoy does, and the tests are built without
//! optimisation, so an answer is read here with no more than its status and its end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// Requests that a connection sends before it reads their answers. Envoy takes more than two answers that wait
/// to be sent for an attack, and closes the connection.
const PIPELINED: u32 = 2;

/// What came of a flood.
#[derive(Debug)]
pub struct Flooded {
    /// The answers by their status.
    pub statuses: BTreeMap<u16, u64>,
    /// From the first request to the last answer.
    pub took: Duration,
}

/// Sends `count` requests over `connections` connections and reads every answer. `request` makes the bytes of
/// each from its number, which no other has. Panics where a connection ends.
pub async fn flood(
    addr: SocketAddr,
    connections: u32,
    count: u32,
    request: impl Fn(u32) -> String + Send + Sync + 'static,
) -> Flooded {
    let (request, begun) = (Arc::new(request), Instant::now());
    let mut tasks = JoinSet::new();
    for connection in 0..connections {
        let request = Arc::clone(&request);
        let numbers = (connection..count).step_by(connections as usize);
        tasks.spawn(async move { pour(addr, numbers, &*request).await });
    }
    let mut statuses = BTreeMap::new();
    for (status, times) in tasks.join_all().await.into_iter().flatten() {
        *statuses.entry(status).or_insert(0) += times;
    }
    Flooded { statuses, took: begun.elapsed() }
}

async fn pour(
    addr: SocketAddr,
    mut numbers: impl Iterator<Item = u32>,
    request: &(impl Fn(u32) -> String + Sync),
) -> BTreeMap<u16, u64> {
    let stream = TcpStream::connect(addr).await.expect("Envoy accepts");
    stream.set_nodelay(true).expect("a socket takes options");
    let mut answers = Answers { stream, bytes: Vec::new(), read: 0 };
    let mut statuses = BTreeMap::new();
    loop {
        let (mut requests, mut sent) = (String::new(), 0);
        while sent < PIPELINED
            && let Some(number) = numbers.next()
        {
            requests.push_str(&request(number));
            sent += 1;
        }
        if sent == 0 {
            return statuses;
        }
        answers.stream.write_all(requests.as_bytes()).await.expect("Envoy reads");
        for _ in 0..sent {
            *statuses.entry(answers.next().await).or_insert(0) += 1;
        }
    }
}

/// The answers of one connection, in their order.
struct Answers {
    stream: TcpStream,
    bytes: Vec<u8>,
    /// How many of the bytes belong to answers that were taken.
    read: usize,
}

impl Answers {
    /// The status of the next answer, which must have a `content-length`.
    async fn next(&mut self) -> u16 {
        if self.read == self.bytes.len() {
            self.bytes.clear();
            self.read = 0;
        }
        let (mut at, mut length) = (self.read, None);
        // One line after the other, up to the empty one.
        loop {
            let end = self.line_end(at).await;
            if end == at {
                break;
            }
            length = length.or_else(|| content_length(&self.bytes[at..end]));
            at = end + 2;
        }
        let status = self.bytes.get(self.read + 9..self.read + 12);
        let status = status.and_then(|digits| str::from_utf8(digits).ok()).and_then(|text| text.parse().ok());
        let end = at + 2 + length.expect("an answer says its length");
        while self.bytes.len() < end {
            self.receive().await;
        }
        self.read = end;
        status.expect("a status")
    }

    /// Where the line that begins at `start` ends, at its CR.
    async fn line_end(&mut self, start: usize) -> usize {
        let mut at = start;
        loop {
            while at + 1 < self.bytes.len() {
                if self.bytes[at] == b'\r' && self.bytes[at + 1] == b'\n' {
                    return at;
                }
                at += 1;
            }
            self.receive().await;
        }
    }

    async fn receive(&mut self) {
        let count = self.stream.read_buf(&mut self.bytes).await.expect("Envoy answers");
        assert!(count > 0, "Envoy closed the connection");
    }
}

fn content_length(line: &[u8]) -> Option<usize> {
    const NAME: &[u8] = b"content-length:";
    if line.len() <= NAME.len() || !line[..NAME.len()].eq_ignore_ascii_case(NAME) {
        return None;
    }
    str::from_utf8(&line[NAME.len()..]).ok()?.trim().parse().ok()
}
