//! `lua/token_bucket.lua` answers what `limiter::authority` says, to the microsecond and the token, whatever
//! happens.

#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "a panic is a test's report")]

mod buckets;
mod histories;
mod leases;
mod planned;
mod reports;
mod script;
