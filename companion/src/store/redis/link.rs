//! One connection that works, as callers and supervisor share it.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::sync::Notify;

use super::judge;
use crate::store::StoreError;

/// How much longer than a caller's timeout an answer may take before the connection is taken for dead.
///
/// Answers come in the order of the calls: where one does not come, none behind it does. A store that is
/// only slow answers within this and keeps its connection, though its callers have gone.
pub(super) const SILENCE_LIMIT: Duration = Duration::from_millis(500);

/// A cheap handle; all clones mean the same connection.
#[derive(Clone, Debug)]
pub(super) struct Link {
    connection: MultiplexedConnection,
    health: Arc<Health>,
}

#[derive(Debug)]
struct Health {
    last_answer: Mutex<Instant>,
    given_up: Notify,
    fault: OnceLock<StoreError>,
}

impl Link {
    /// A connection that has just answered.
    pub(super) fn new(connection: MultiplexedConnection) -> Self {
        let health = Health {
            last_answer: Mutex::new(Instant::now()),
            given_up: Notify::new(),
            fault: OnceLock::new(),
        };
        Self { connection, health: Arc::new(health) }
    }

    /// What commands are sent over.
    pub(super) fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }

    /// Sends what `exchange` sends and waits `timeout` for its answer.
    ///
    /// The exchange lives on by itself until it is answered, so that what is under way stays counted, and
    /// an answer that comes late still shows that the connection lives.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        timeout: Duration,
        exchange: impl Future<Output = Result<T, RedisError>> + Send + 'static,
    ) -> Result<T, StoreError> {
        let link = self.clone();
        let exchange = tokio::spawn(async move {
            let limit = timeout + SILENCE_LIMIT;
            if let Ok(answer) = tokio::time::timeout(limit, exchange).await {
                return link.judge(answer);
            }
            let error = StoreError::Timeout { waited: limit };
            link.give_up(error.clone());
            Err(error)
        });
        match tokio::time::timeout(timeout, exchange).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(lost)) => Err(StoreError::BadReply { detail: lost.to_string() }),
            Err(_) => Err(StoreError::Timeout { waited: timeout }),
        }
    }

    /// How long nothing was answered.
    pub(super) fn silence(&self) -> Duration {
        lock(&self.health.last_answer).elapsed()
    }

    /// Why the connection was given up, where it was: nobody should send anything more over it.
    pub(super) fn fault(&self) -> Option<&StoreError> {
        self.health.fault.get()
    }

    /// Waits until a call finds that the connection is of no use, and says why.
    pub(super) async fn given_up(&self) -> StoreError {
        self.health.given_up.notified().await;
        let unknown = || StoreError::Unreachable { detail: "given up".to_owned() };
        self.fault().cloned().unwrap_or_else(unknown)
    }

    fn judge<T>(&self, answer: Result<T, RedisError>) -> Result<T, StoreError> {
        let error = match answer {
            Ok(answer) => {
                *lock(&self.health.last_answer) = Instant::now();
                return Ok(answer);
            }
            Err(error) => judge(&error),
        };
        match &error {
            StoreError::Refused { refusal, .. } => {
                *lock(&self.health.last_answer) = Instant::now();
                if refusal.wants_new_connection() {
                    self.give_up(error.clone());
                }
            }
            // The connection has ended, or whatever follows on it may belong to another call.
            StoreError::Unreachable { .. } | StoreError::BadReply { .. } => self.give_up(error.clone()),
            StoreError::Timeout { .. } | StoreError::Overloaded => {}
        }
        Err(error)
    }

    fn give_up(&self, fault: StoreError) {
        // The first fault is the cause; those after it are its consequences.
        let _ = self.health.fault.set(fault);
        self.health.given_up.notify_one();
    }
}

/// Asks for a sign of life. A user who may not ask for one got an answer all the same; whatever answers
/// something else is no Redis.
pub(super) async fn ping(mut connection: MultiplexedConnection) -> Result<(), RedisError> {
    match redis::cmd("PING").query_async(&mut connection).await {
        Ok(Value::SimpleString(answer)) if answer == "PONG" => Ok(()),
        Ok(_) => Err(RedisError::from((ErrorKind::UnexpectedReturnType, "PING is not answered by PONG"))),
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoPerm) => Ok(()),
        Err(error) => Err(error),
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
