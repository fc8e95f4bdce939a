//! A simulation of many proxies on one store: time, network and misfortune are drawn from a seed.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that panics has failed"
)]

mod broken;
mod checks;
mod ledger;
mod memory;
mod meter;
mod plan;
mod promises;
mod proxy;
mod random;
mod regressions;
mod schedule;
mod store;
mod utilisation;
mod world;
