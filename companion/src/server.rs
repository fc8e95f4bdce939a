//! Connections: HTTP/1.1 and HTTP/2 without TLS on one port, bounded, and drained at the end.

mod opening;

use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use opening::Opening;

/// The most connections; more wait in the kernel's queue. A proxy has one or two for each of its workers.
pub const MAX_CONNECTIONS: usize = 4096;

/// How long a connection may take from its beginning to its first request's header or its HTTP/2 preface.
pub const OPENING_TIMEOUT: Duration = Duration::from_secs(10);

/// The least time between two log lines that say that the most connections are open.
const FULL_LINE_EVERY: Duration = Duration::from_mins(1);

/// The most requests at a time on one HTTP/2 connection.
const MAX_STREAMS: u32 = 1024;

/// The most bytes of a request's header.
const MAX_HEADER_BYTES: u32 = 16 * 1024;

/// The most bytes that an HTTP/1.1 connection reads ahead, a request's header among them.
const MAX_READ_BYTES: usize = 64 * 1024;

/// How long an HTTP/1.1 connection may take for the next request's header, idle time included.
const HEADER_TIMEOUT: Duration = Duration::from_mins(1);

/// How often a silent HTTP/2 connection is asked whether somebody is there, and how long for an answer.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the requests under way may take once the end was asked for.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause after a connection could not be accepted, as when there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// What bounds the connections.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// See [`MAX_CONNECTIONS`].
    pub max_connections: usize,
    /// See [`OPENING_TIMEOUT`].
    pub opening_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_connections: MAX_CONNECTIONS, opening_timeout: OPENING_TIMEOUT }
    }
}

/// Serves `routes` on `listener` until `end`, then finishes what is under way.
pub async fn serve(listener: TcpListener, routes: Router, end: impl Future<Output = ()>) {
    serve_within(Limits::default(), listener, routes, end).await;
}

/// The same within other limits than the companion's own.
pub async fn serve_within(
    limits: Limits,
    listener: TcpListener,
    routes: Router,
    end: impl Future<Output = ()>,
) {
    let builder = Arc::new(connection_builder());
    let mut places = Places::new(limits.max_connections);
    let connections = GracefulShutdown::new();
    let mut end = pin!(end);
    loop {
        let accepted = tokio::select! {
            () = &mut end => break,
            accepted = accept(&listener, &mut places) => accepted,
        };
        let Some((stream, place)) = accepted else { continue };
        let (builder, watcher) = (Arc::clone(&builder), connections.watcher());
        let service = TowerToHyperService::new(routes.clone());
        let stream = TokioIo::new(Opening::new(stream, limits.opening_timeout));
        tokio::spawn(async move {
            let connection = builder.serve_connection(stream, service).into_owned();
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(%error, "a connection ended with an error");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIMEOUT, connections.shutdown()).await.is_err() {
        tracing::warn!(waited = ?DRAIN_TIMEOUT, "connections are still busy; ending all the same");
    }
}

/// The next connection with its place among the most there may be; `None` where accepting failed.
async fn accept(listener: &TcpListener, places: &mut Places) -> Option<(TcpStream, OwnedSemaphorePermit)> {
    let place = places.next().await?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Answers are small and somebody waits for each. A failure leaves a slower connection.
            let _ = stream.set_nodelay(true);
            Some((stream, place))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

/// The places of connections. That none is left is logged, though not each time.
struct Places {
    free: Arc<Semaphore>,
    most: usize,
    last_line: Option<Instant>,
}

impl Places {
    fn new(most: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(most)), most, last_line: None }
    }

    async fn next(&mut self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.free).try_acquire_owned() {
            return Some(place);
        }
        if self.last_line.is_none_or(|last| last.elapsed() >= FULL_LINE_EVERY) {
            self.last_line = Some(Instant::now());
            tracing::warn!(connections = self.most, "no more connections are accepted until some end");
        }
        Arc::clone(&self.free).acquire_owned().await.ok()
    }
}

fn connection_builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT).max_buf_size(MAX_READ_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn that_no_place_is_left_is_logged_once_in_a_while() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let lines = crate::log::lines_of(|| {
            runtime.block_on(async {
                let mut places = Places::new(1);
                for _ in 0..100 {
                    let place = places.next().await;
                    let waits = places.next();
                    assert!(tokio::select! { biased; _ = waits => false, () = async {} => true });
                    drop(place);
                }
            });
        });
        assert_eq!(lines.matches("no more connections").count(), 1, "{lines}");
        assert!(lines.contains("connections=1"), "{lines}");
    }
}
