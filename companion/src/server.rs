//! Connections: HTTP/1.1 and HTTP/2 without TLS on one port, bounded, and drained at the end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// The most connections; more wait in the kernel's queue. A proxy has one or two for each of its workers.
pub const MAX_CONNECTIONS: usize = 4096;

/// The most requests at a time on one HTTP/2 connection.
const MAX_STREAMS: u32 = 1024;

/// The most bytes of a request's header.
const MAX_HEADER_BYTES: u32 = 16 * 1024;

/// How long an HTTP/1.1 connection may take for the next request's header, idle time included.
const HEADER_TIMEOUT: Duration = Duration::from_mins(1);

/// How often a silent HTTP/2 connection is asked whether somebody is there, and how long for an answer.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the requests under way may take once the end was asked for.
pub const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause after a connection could not be accepted, as when there are no file descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves `routes` on `listener` until `end`, then finishes what is under way.
pub async fn serve(listener: TcpListener, routes: Router, end: impl Future<Output = ()>) {
    let builder = Arc::new(connection_builder());
    let permits = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let connections = GracefulShutdown::new();
    let mut end = pin!(end);
    loop {
        let accepted = tokio::select! {
            () = &mut end => break,
            accepted = accept(&listener, &permits) => accepted,
        };
        let Some((stream, permit)) = accepted else { continue };
        let (builder, watcher) = (Arc::clone(&builder), connections.watcher());
        let service = TowerToHyperService::new(routes.clone());
        tokio::spawn(async move {
            let connection = builder.serve_connection(TokioIo::new(stream), service).into_owned();
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(%error, "a connection ended with an error");
            }
            drop(permit);
        });
    }
    drop(listener);
    if tokio::time::timeout(DRAIN_TIMEOUT, connections.shutdown()).await.is_err() {
        tracing::warn!(waited = ?DRAIN_TIMEOUT, "connections are still busy; ending all the same");
    }
}

/// The next connection with its place among the most there may be; `None` where accepting failed.
async fn accept(
    listener: &TcpListener,
    permits: &Arc<Semaphore>,
) -> Option<(TcpStream, tokio::sync::OwnedSemaphorePermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, _)) => {
            // Answers are small and somebody waits for each. A failure leaves a slower connection.
            let _ = stream.set_nodelay(true);
            Some((stream, permit))
        }
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
            None
        }
    }
}

fn connection_builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER_BYTES)
        .keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .keep_alive_timeout(KEEP_ALIVE_TIMEOUT);
    builder
}
