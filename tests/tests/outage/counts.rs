//! What became of requests, counted by when they were sent and answered.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use harness::{Envoy, Shot};

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// By the limit.
    Admitted,
    /// By the limit.
    Refused,
    /// Passed without being checked.
    Unprotected,
    /// Answered 503.
    Unavailable,
}

impl Outcome {
    /// All of them, with the name of the policy's counter.
    pub(crate) const ALL: [(Self, &str); 4] = [
        (Self::Admitted, "admitted"),
        (Self::Refused, "refused"),
        (Self::Unprotected, "unprotected"),
        (Self::Unavailable, "unavailable"),
    ];

    pub(crate) fn of(shot: &Shot) -> Self {
        match (shot.status, shot.is_limited) {
            (200, true) => Self::Admitted,
            (429, true) => Self::Refused,
            (200, false) => Self::Unprotected,
            (503, false) => Self::Unavailable,
            other => panic!("neither decided nor failed: {other:?}"),
        }
    }

    /// Whether the limit has decided.
    pub(crate) fn is_decided(self) -> bool {
        matches!(self, Self::Admitted | Self::Refused)
    }
}

/// The filter's own counts at a moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Counted {
    callouts: u64,
    /// Requests that had to wait.
    pub(crate) waits: u64,
}

impl Counted {
    pub(crate) async fn of(envoys: &[Envoy]) -> Self {
        let (callouts, waits) = tokio::join!(counter(envoys, "callouts"), counter(envoys, "waits"));
        Self { callouts, waits }
    }
}

/// A counter of the filter, over all proxies.
pub(crate) async fn counter(envoys: &[Envoy], name: &str) -> u64 {
    let mut sum = 0;
    for envoy in envoys {
        sum += envoy.counter(&format!("wasmcustom.tidegate.{name}")).await;
    }
    sum
}

/// The requests that were sent and answered between two moments.
pub(crate) fn within(shots: &[Shot], from: Instant, to: Instant) -> Vec<Shot> {
    shots.iter().filter(|shot| shot.sent_at() >= from && shot.answered_at <= to).copied().collect()
}

pub(crate) fn count(shots: &[Shot]) -> BTreeMap<Outcome, u64> {
    let mut counts = BTreeMap::new();
    for shot in shots {
        *counts.entry(Outcome::of(shot)).or_insert(0) += 1;
    }
    counts
}

pub(crate) fn longest(shots: &[Shot]) -> Duration {
    shots.iter().map(|shot| shot.took).max().unwrap_or_default()
}

/// The time that ninety-nine of a hundred requests took at most.
fn p99(shots: &[Shot]) -> Duration {
    let mut times: Vec<Duration> = shots.iter().map(|shot| shot.took).collect();
    times.sort();
    times.get(times.len() * 99 / 100).copied().unwrap_or_default()
}

/// A line about a phase.
pub(crate) fn print(what: &str, shots: &[Shot], before: Counted, after: Counted) {
    println!(
        "{what}: {:?}; p99 {:?}, longest {:?}; {} callouts, {} waits",
        count(shots),
        p99(shots),
        longest(shots),
        after.callouts - before.callouts,
        after.waits - before.waits
    );
}
