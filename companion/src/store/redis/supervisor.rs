//! Keeps one connection: connects, publishes it, sees it end, connects again.
//!
//! It drives the connection itself and so sees its end at once: after a restart of the server the next call
//! finds a new connection, and no call has to fail first to find out about the old one.

use std::pin::Pin;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::backoff::Backoff;
use super::link::{self, Link};
use super::server::Server;
use super::{State, judge};
use crate::store::{Refusal, StoreError};

/// How long one attempt to connect may take, from the name's resolution to the first answer.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// A connection that lasted so long was worth its name: the next attempt comes quickly.
const STEADY_AFTER: Duration = Duration::from_secs(1);

/// A connection that is silent for so long is asked for a sign of life, so that a dead one is found by this
/// question and not by a client's.
const PROBE_EVERY: Duration = Duration::from_secs(1);

/// Runs as long as somebody holds the receiver of `publisher`.
pub(super) async fn supervise(server: Server, publisher: watch::Sender<State>, timeout: Duration) {
    let mut backoff = Backoff::new();
    let mut last_kind = None;
    loop {
        let begun = Instant::now();
        let (error, was_connected) = tokio::select! {
            () = publisher.closed() => return,
            ended = session(&server, &publisher, timeout) => ended,
        };
        if was_connected && begun.elapsed() >= STEADY_AFTER {
            backoff.reset();
        }
        // Changes only: a store that is away for a night must not fill a disk.
        if was_connected || last_kind != Some(error.kind()) {
            log(&server, &error);
            last_kind = Some(error.kind());
        }
        publisher.send_replace(State::Disconnected(error));
        tokio::select! {
            () = publisher.closed() => return,
            () = tokio::time::sleep(backoff.next()) => {}
        }
    }
}

fn log(server: &Server, error: &StoreError) {
    // A wrong password does not heal by itself.
    if matches!(error, StoreError::Refused { refusal: Refusal::Unauthenticated | Refusal::Forbidden, .. }) {
        tracing::error!(store = %server, kind = error.kind(), %error, "the store does not let us in");
    } else {
        tracing::warn!(store = %server, kind = error.kind(), %error, "the store is away");
    }
}

/// What moves the bytes of a connection; it ends with the connection, and the connection with it.
type Driver = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One connection from beginning to end: why it ended, and whether it ever worked.
async fn session(server: &Server, publisher: &watch::Sender<State>, timeout: Duration) -> (StoreError, bool) {
    let connecting = tokio::time::timeout(CONNECT_TIMEOUT, connect(server));
    let (link, mut driver) = match connecting.await {
        Ok(Ok(connected)) => connected,
        Ok(Err(error)) => return (error, false),
        Err(_) => return (StoreError::Timeout { waited: CONNECT_TIMEOUT }, false),
    };
    tracing::info!(store = %server, "the store is there");
    publisher.send_replace(State::Connected(link.clone()));
    let mut probes = tokio::time::interval(PROBE_EVERY);
    loop {
        tokio::select! {
            () = &mut driver => {
                let detail = "the server closed the connection".to_owned();
                return (StoreError::Unreachable { detail }, true);
            }
            error = link.given_up() => return (error, true),
            _ = probes.tick() => {
                if link.silence() >= PROBE_EVERY {
                    let link = link.clone();
                    // What it finds is noted in the link; nobody waits for the answer itself.
                    tokio::spawn(async move { link.ask(timeout, link::ping(link.connection())).await });
                }
            }
        }
    }
}

/// A connection that has answered once: a stopped server's kernel accepts connections too.
async fn connect(server: &Server) -> Result<(Link, Driver), StoreError> {
    let unreachable = |error: std::io::Error| StoreError::Unreachable { detail: error.to_string() };
    let stream = server.open().await.map_err(unreachable)?;
    let config = redis::AsyncConnectionConfig::new()
        // The link has its own clock, which goes on after the caller's time is over.
        .set_response_timeout(None)
        .set_pipeline_buffer_size(super::MAX_CALLS);
    let connected = redis::aio::MultiplexedConnection::new_with_config(&server.settings, stream, config);
    let (connection, driver) = connected.await.map_err(|error| judge(&error))?;
    let mut driver: Driver = Box::pin(driver);
    let answer = tokio::select! {
        () = &mut driver => {
            let detail = "the server closed the connection before it answered".to_owned();
            return Err(StoreError::Unreachable { detail });
        }
        answer = link::ping(connection.clone()) => answer,
    };
    answer.map_err(|error| judge(&error))?;
    Ok((Link::new(connection), driver))
}
