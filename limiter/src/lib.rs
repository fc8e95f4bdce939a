//! The decision core of Tidegate, sans-io: it knows no clock, socket, proxy or store.
//!
//! Time and input come in as arguments, effects go out as values, so that the same code runs in Envoy's
//! worker threads, in the companion and, with a virtual clock, in tests. The filter adapts it to
//! proxy-wasm; the companion shares its quotas and wire messages.

pub mod answer;
mod applied;
pub mod authority;
mod breaker;
pub mod bucket;
pub mod calls;
pub mod decision;
mod errand;
pub mod explain;
pub mod fields;
pub mod key;
pub mod lease;
pub mod leases;
pub mod limiter;
pub mod matching;
pub mod path;
pub mod policies;
pub mod policy;
mod proxy;
pub mod purse;
mod questions;
pub mod quota;
pub mod rate;
pub mod request;
mod sieve;
pub mod span;
pub mod table;
mod tallies;
pub mod tally;
pub mod time;
pub mod wire;
