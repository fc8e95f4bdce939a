//! The store for many machines: a Redis or Valkey server.
//!
//! Calls of many requests share one connection, which `supervisor.rs` opens and renews; while there is none,
//! calls fail at once. Nothing here is sent twice: a call without an answer may have run.

mod backoff;
mod link;
mod server;
mod supervisor;
mod witness;

use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{ErrorKind, RedisError, ServerErrorKind, Value};
use tokio::sync::{Semaphore, watch};

pub use server::{LocationError, Server};

use super::{Call, StoreError};
use crate::script::TOKEN_BUCKET;
use link::Link;
use witness::Witness;

/// The most calls that are under way; beyond that they are refused at once. A call counts until it is
/// answered or its connection is given up, also after its caller's time is over, so that a store that
/// hangs cannot pile up memory.
pub const MAX_CALLS: usize = 1024;

/// A handle on the connection; the connection ends with the last handle.
#[derive(Clone, Debug)]
pub struct RedisStore {
    state: watch::Receiver<State>,
    permits: Arc<Semaphore>,
    witness: Arc<Witness>,
    timeout: Duration,
}

/// What the supervisor tells the callers.
#[derive(Clone, Debug)]
enum State {
    Connected(Link),
    Disconnected(StoreError),
}

impl RedisStore {
    /// Begins to connect in the background; a call that gets no answer within `timeout` is given up.
    pub(super) fn start(server: Server, timeout: Duration) -> Self {
        let detail = format!("the first connection to {server} is being made");
        let (publisher, state) = watch::channel(State::Disconnected(StoreError::Unreachable { detail }));
        tokio::spawn(supervisor::supervise(server, publisher, timeout));
        let permits = Arc::new(Semaphore::new(MAX_CALLS));
        Self { state, permits, witness: Arc::default(), timeout }
    }

    /// See [`super::Store::run`].
    pub(super) async fn run(&self, call: Call) -> Result<Vec<i64>, StoreError> {
        let answer = self.try_run(call).await;
        self.witness.note(&answer, Instant::now());
        answer
    }

    async fn try_run(&self, call: Call) -> Result<Vec<i64>, StoreError> {
        let link = self.link()?;
        let permit = Arc::clone(&self.permits).try_acquire_owned().map_err(|_| StoreError::Overloaded)?;
        let connection = link.connection();
        let answer = link.ask(self.timeout, async move {
            let _permit = permit;
            evaluate(connection, call).await
        });
        integers(answer.await?)
    }

    /// See [`super::Store::ready`].
    pub(super) async fn ready(&self) -> Result<(), StoreError> {
        self.link()?;
        if let Some(verdict) = self.witness.verdict(Instant::now()) {
            return verdict;
        }
        // A batch of no takes: whatever keeps every script from running keeps this one too.
        let nothing = Call { script: &TOKEN_BUCKET, keys: vec![], args: vec!["0".to_owned()] };
        self.run(nothing).await.map(|_| ())
    }

    fn link(&self) -> Result<Link, StoreError> {
        match &*self.state.borrow() {
            State::Connected(link) => {
                link.fault().map_or_else(|| Ok(link.clone()), |fault| Err(fault.clone()))
            }
            State::Disconnected(error) => Err(error.clone()),
        }
    }
}

/// Runs the script by its name, which after a restart of the server is unknown to it: then nothing has run
/// and the text is sent, once. That is no retry.
async fn evaluate(mut connection: MultiplexedConnection, call: Call) -> Result<Value, RedisError> {
    let by_name = command("EVALSHA", call.script.sha1(), &call);
    match by_name.query_async(&mut connection).await {
        Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
            command("EVAL", call.script.source(), &call).query_async(&mut connection).await
        }
        answer => answer,
    }
}

fn command(name: &str, script: &str, call: &Call) -> redis::Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(call.keys.len()).arg(&call.keys).arg(&call.args);
    command
}

fn integers(answer: Value) -> Result<Vec<i64>, StoreError> {
    match answer {
        Value::Array(values) => values.iter().map(integer).collect(),
        value => integer(&value).map(|number| vec![number]),
    }
}

fn integer(value: &Value) -> Result<i64, StoreError> {
    match value {
        Value::Int(number) => Ok(*number),
        _ => Err(StoreError::BadReply { detail: "something else where an integer should be".to_owned() }),
    }
}

/// What an error of the client library means here.
fn judge(error: &RedisError) -> StoreError {
    if let Some(code) = error.code() {
        return StoreError::refused(&format!("{code} {}", error.detail().unwrap_or_default()));
    }
    match error.kind() {
        ErrorKind::AuthenticationFailed => StoreError::refused(&format!("WRONGPASS {error}")),
        ErrorKind::Io => StoreError::Unreachable { detail: error.to_string() },
        _ => StoreError::BadReply { detail: error.to_string() },
    }
}
