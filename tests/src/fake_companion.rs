//! A companion that misbehaves byte by byte: HTTP/1.1 over TCP, with answers written by the test.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// What a fake companion does with one request. Start from [`Self::http`], [`Self::bytes`] or
/// [`Self::silence`] and spoil it.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct FakeAnswer {
    bytes: Vec<u8>,
    delay: Duration,
    then: Then,
}

#[derive(Debug, Clone, Copy, Default)]
enum Then {
    #[default]
    KeepOpen,
    Close,
    Silence,
}

impl FakeAnswer {
    /// A well-formed answer with a `content-length` that fits.
    pub fn http(status: u16, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let length = body.as_ref().len();
        Self::http_of_length(status, headers, body, length)
    }

    /// An answer whose `content-length` says `length`, whatever the body is.
    pub fn http_of_length(
        status: u16,
        headers: &[(&str, &str)],
        body: impl AsRef<[u8]>,
        length: usize,
    ) -> Self {
        let mut bytes = format!("HTTP/1.1 {status} Fake\r\ncontent-length: {length}\r\n").into_bytes();
        for (name, value) in headers {
            bytes.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
        }
        bytes.extend_from_slice(b"\r\n");
        bytes.extend_from_slice(body.as_ref());
        Self::bytes(bytes)
    }

    /// These bytes, HTTP or not.
    pub fn bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), ..Self::default() }
    }

    /// Nothing at all, on a connection that stays open.
    pub fn silence() -> Self {
        Self { then: Then::Silence, ..Self::default() }
    }

    /// Nothing at all: the connection is closed at once.
    pub fn close() -> Self {
        Self::default().and_close()
    }

    /// Waits before the first byte.
    pub fn late_by(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Leaves the last `count` bytes out and closes the connection.
    pub fn cut_short_by(mut self, count: usize) -> Self {
        self.bytes.truncate(self.bytes.len().saturating_sub(count));
        self.and_close()
    }

    /// Sends everything twice, as two answers to one request.
    pub fn twice(mut self) -> Self {
        self.bytes.extend_from_within(..);
        self
    }

    /// Closes the connection after the last byte.
    pub fn and_close(mut self) -> Self {
        self.then = Then::Close;
        self
    }
}

/// A running fake companion. Dropping it ends it and closes its connections.
#[derive(Debug)]
pub struct FakeCompanion {
    addr: SocketAddr,
    requests: Arc<AtomicUsize>,
    server: JoinHandle<()>,
}

impl FakeCompanion {
    /// Starts one whose answer to a request is a function of the request's body.
    pub async fn start(script: impl Fn(&[u8]) -> FakeAnswer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a loopback port is free");
        let addr = listener.local_addr().expect("a listener has an address");
        let requests = Arc::<AtomicUsize>::default();
        let (script, counter) = (Arc::new(script), Arc::clone(&requests));
        let server = tokio::spawn(async move {
            // The set ends its tasks when this one is aborted.
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (script, counter) = (Arc::clone(&script), Arc::clone(&counter));
                connections.spawn(async move {
                    // An error is the proxy closing the connection, which is its right.
                    let _ = serve(stream, &*script, &counter).await;
                });
            }
        });
        Self { addr, requests, server }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many requests it has seen.
    pub fn count(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for FakeCompanion {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn serve(
    stream: TcpStream,
    script: &(dyn Fn(&[u8]) -> FakeAnswer + Send + Sync),
    requests: &AtomicUsize,
) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufStream::new(stream);
    while let Some(body) = read_request(&mut stream).await? {
        requests.fetch_add(1, Ordering::Relaxed);
        let answer = script(&body);
        tokio::time::sleep(answer.delay).await;
        stream.write_all(&answer.bytes).await?;
        stream.flush().await?;
        match answer.then {
            Then::KeepOpen => {}
            Then::Close => break,
            Then::Silence => std::future::pending().await,
        }
    }
    Ok(())
}

/// The body of the next request; `None` at the end of the connection. Envoy sends a
/// `content-length` with every callout.
async fn read_request(stream: &mut BufStream<TcpStream>) -> std::io::Result<Option<Vec<u8>>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(std::io::Error::other)?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Some(body))
}
