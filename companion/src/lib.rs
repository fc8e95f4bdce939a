//! The Tidegate companion: it owns the truth of shared limits by running the scripts of `lua/`, in Redis
//! or Valkey or in its own memory, and answers the proxies over HTTP.
//!
//! It holds no limits of its own: callers state them. What the messages mean is in [`limiter::wire`], what
//! the scripts decide in [`limiter::bucket`]. `main.rs` puts the parts together.

pub mod args;
pub mod check;
pub mod explain;
pub mod http;
pub mod log;
pub mod script;
pub mod server;
pub mod store;
pub mod take;
