//! What policies that do not apply cost a request: two that do, alone and among fifty. Fifty may take twice the time.
//!
//! `make bench-core` runs it; what is read from the proxy is `tests/few_of_many.rs`'s.
#![expect(clippy::unwrap_used, clippy::disallowed_types, reason = "not the core")]

#[path = "../tests/gateway/mod.rs"]
mod gateway;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::Criterion;
use limiter::policies::Policies;
use limiter::request::demands;

/// The most that fifty policies may take, of what two take.
const MOST: f64 = 2.0;

/// How often both are measured one after the other, so that what else the machine does befalls both.
const ROUNDS: usize = 400;
/// How many requests a round has.
const REQUESTS: u32 = 500;

fn main() {
    let (few, many) = (gateway::two(), gateway::fifty());
    let mut criterion = Criterion::default().configure_from_args();
    for (name, policies) in [("two policies", &few), ("two of fifty policies", &many)] {
        let mut request = gateway::request();
        criterion.bench_function(name, |bench| {
            bench.iter(|| demands(policies, black_box(&mut request), 0).map(black_box).count());
        });
    }
    criterion.final_summary();
    let rounds: Vec<(Duration, Duration)> = (0..ROUNDS).map(|_| (round(&few), round(&many))).collect();
    let few = median(rounds.iter().map(|(few, _)| *few));
    let many = median(rounds.iter().map(|(_, many)| *many));
    let ratio = many.as_secs_f64() / few.as_secs_f64();
    println!("two policies: {few:?}; the same two of fifty: {many:?}; ratio: {ratio:.2}, at most {MOST}");
    assert!(ratio <= MOST, "policies that do not apply cost too much");
}

/// What a request takes.
fn round(policies: &Policies) -> Duration {
    let mut request = gateway::request();
    let start = Instant::now();
    for _ in 0..REQUESTS {
        black_box(demands(policies, black_box(&mut request), 0).map(black_box).count());
    }
    start.elapsed() / REQUESTS
}

fn median(durations: impl Iterator<Item = Duration>) -> Duration {
    let mut sorted: Vec<Duration> = durations.collect();
    sorted.sort();
    *sorted.get(sorted.len() / 2).unwrap()
}
