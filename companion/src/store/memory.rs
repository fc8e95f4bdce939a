//! The store for one machine: the scripts run in this process, on a thread of their own.
//!
//! One thread and one queue make a call atomic and keep a long script off the threads that serve
//! connections. What the scripts see is in [`interpreter`], what they keep in [`Keyspace`].

mod clock;
mod commands;
mod fullness;
pub mod interpreter;
mod keyspace;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

pub use clock::Clock;
pub use interpreter::Interpreter;
pub use keyspace::{Keyspace, MAX_KEYS};

use super::{Call, StoreError};
use fullness::Fullness;

/// The most calls that wait for the thread; beyond that they are refused at once.
pub const MAX_WAITING: usize = 1024;

/// A handle on the thread; the thread ends with the last handle.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    jobs: mpsc::Sender<Job>,
    timeout: Duration,
    fullness: Fullness,
}

struct Job {
    call: Call,
    answer: oneshot::Sender<Result<Vec<i64>, StoreError>>,
}

impl MemoryStore {
    /// Starts an empty store; a call that gets no answer within `timeout` is given up.
    ///
    /// # Errors
    /// No thread or no interpreter can be made.
    pub fn start(clock: Clock, timeout: Duration) -> std::io::Result<Self> {
        Self::start_for(MAX_KEYS, clock, timeout)
    }

    /// The same for another number of keys than [`MAX_KEYS`].
    ///
    /// # Errors
    /// As [`MemoryStore::start`].
    pub fn start_for(max_keys: usize, clock: Clock, timeout: Duration) -> std::io::Result<Self> {
        let keyspace = Arc::new(Mutex::new(Keyspace::new(max_keys)));
        let interpreter =
            Interpreter::new(Arc::clone(&keyspace), clock.clone()).map_err(std::io::Error::other)?;
        let (jobs, queue) = mpsc::channel(MAX_WAITING);
        let fullness = Fullness::default();
        let noted = fullness.clone();
        std::thread::Builder::new()
            .name("memory-store".to_owned())
            .spawn(move || work(queue, interpreter, &keyspace, &clock, &noted))?;
        Ok(Self { jobs, timeout, fullness })
    }

    /// True where takes on new keys fail.
    pub(super) fn is_full(&self) -> bool {
        self.fullness.is_full()
    }

    /// See [`super::Store::run`].
    pub(super) async fn run(&self, call: Call) -> Result<Vec<i64>, StoreError> {
        let (answer, answered) = oneshot::channel();
        self.jobs.try_send(Job { call, answer }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => StoreError::Overloaded,
            mpsc::error::TrySendError::Closed(_) => ended(),
        })?;
        match tokio::time::timeout(self.timeout, answered).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(ended())),
            Err(_) => Err(StoreError::Timeout { waited: self.timeout }),
        }
    }
}

fn ended() -> StoreError {
    StoreError::Unreachable { detail: "the memory store's thread has ended".to_owned() }
}

fn work(
    mut queue: mpsc::Receiver<Job>,
    mut interpreter: Interpreter,
    keyspace: &Arc<Mutex<Keyspace>>,
    clock: &Clock,
    fullness: &Fullness,
) {
    while let Some(Job { call, answer }) = queue.blocking_recv() {
        // Whoever gave up would be charged for nothing.
        if answer.is_closed() {
            continue;
        }
        let outcome = catch_unwind(AssertUnwindSafe(|| interpreter.run(&call)));
        let outcome = outcome.unwrap_or_else(|_| {
            // The keys survive; the interpreter, of which nobody knows the state, does not.
            tracing::error!("the memory store's interpreter panicked and starts anew");
            match Interpreter::new(Arc::clone(keyspace), clock.clone()) {
                Ok(new) => interpreter = new,
                Err(error) => tracing::error!(%error, "the interpreter cannot start anew"),
            }
            Err(StoreError::BadReply { detail: "the interpreter panicked".to_owned() })
        });
        fullness.note(&interpreter::lock(keyspace));
        // An error means that the caller has gone meanwhile, which is its right.
        let _ = answer.send(outcome);
    }
}
