//! Where the scripts run. A store runs one script call atomically and answers integers; it knows nothing
//! about what they mean.

pub mod error;
pub mod memory;
pub mod redis;

use std::time::Duration;

use crate::script::Script;

pub use error::{Refusal, StoreError};

/// One call of a script.
#[derive(Clone, Debug)]
pub struct Call {
    /// What runs.
    pub script: &'static Script,
    /// Its `KEYS`.
    pub keys: Vec<String>,
    /// Its `ARGV`.
    pub args: Vec<String>,
}

/// A store of one of the supported kinds.
#[derive(Clone, Debug)]
pub enum Store {
    /// This process' own memory.
    Memory(memory::MemoryStore),
    /// A Redis or Valkey server.
    Redis(redis::RedisStore),
}

impl Store {
    /// Starts the store that `location` names. Call it within a Tokio runtime.
    ///
    /// A server that cannot be reached is no error: the store connects in the background and says in
    /// [`Store::ready`] how that goes.
    ///
    /// # Errors
    /// The memory store cannot start its thread or its interpreter.
    pub fn start(location: &Location, timeout: Duration) -> std::io::Result<Self> {
        Ok(match location {
            Location::Memory => Self::Memory(memory::MemoryStore::start(memory::Clock::system(), timeout)?),
            Location::Redis(server) => Self::Redis(redis::RedisStore::start(server.clone(), timeout)),
        })
    }

    /// Runs a script once or not at all, and never a second time: after an error other than
    /// [`StoreError::Refused`] it may have run.
    ///
    /// # Errors
    /// See [`StoreError`]. An answer never takes longer than the store's timeout.
    pub async fn run(&self, call: Call) -> Result<Vec<i64>, StoreError> {
        match self {
            Self::Memory(store) => store.run(call).await,
            Self::Redis(store) => store.run(call).await,
        }
    }

    /// Whether the store would run a script now, and has not refused a write lately.
    ///
    /// # Errors
    /// The reason why it would not.
    pub async fn ready(&self) -> Result<(), StoreError> {
        match self {
            Self::Memory(_) => Ok(()),
            Self::Redis(store) => store.ready().await,
        }
    }

    /// True where the store decides for the keys that it has and refuses new ones. A Redis server that is full
    /// refuses every write and is not ready.
    pub fn is_full(&self) -> bool {
        match self {
            Self::Memory(store) => store.is_full(),
            Self::Redis(_) => false,
        }
    }
}

/// What `--store` names.
#[derive(Clone, Debug, PartialEq)]
pub enum Location {
    /// `memory`
    Memory,
    /// `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`
    Redis(redis::Server),
}

/// Without user and password: this goes into logs.
impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory => f.write_str("memory"),
            Self::Redis(server) => server.fmt(f),
        }
    }
}

impl std::str::FromStr for Location {
    type Err = redis::LocationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "memory" { Ok(Self::Memory) } else { text.parse().map(Self::Redis) }
    }
}
