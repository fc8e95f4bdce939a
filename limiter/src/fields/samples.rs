//! What the tests of the fields share: a response that records, and items of buckets with a history.

use std::collections::BTreeMap;

use super::*;
use crate::bucket::{Bucket, Fit};
use crate::quota::TokenBucket;
use crate::time::Instant;

const START: Instant = Instant::from_micros(1_000_000_000);

/// A response's headers that count what is asked of the host.
#[derive(Default)]
pub(super) struct Recorded {
    pub(super) fields: BTreeMap<String, Vec<u8>>,
    pub(super) calls: usize,
}

impl Recorded {
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).map(|value| core::str::from_utf8(value).unwrap())
    }

    pub(super) fn triple(&self, prefix: &str) -> Option<String> {
        let part = |name: &str| self.text(&format!("{prefix}-{name}"));
        Some(format!("{}/{}/{}", part("limit")?, part("remaining")?, part("reset").unwrap_or("-")))
    }
}

impl ResponseHeaders for Recorded {
    fn get(&mut self, name: &'static str) -> Option<Vec<u8>> {
        self.calls += 1;
        self.fields.get(name).cloned()
    }

    fn set(&mut self, name: &'static str, value: &[u8]) {
        self.calls += 1;
        self.fields.insert(name.to_owned(), value.to_vec());
    }

    fn remove(&mut self, name: &'static str) {
        self.calls += 1;
        self.fields.remove(name);
    }
}

pub(super) fn item(name: &str, quota: u64, window_s: u64, state: State) -> Item<'_> {
    Item { name, advertised: Advertised { quota, window_s: Some(window_s) }, state }
}

/// The item of a bucket from which `spent` was taken `ago_us` ago and `cost` is asked now, and what
/// becomes of the request.
pub(super) fn asked<'a>(
    name: &'a str,
    capacity: u64,
    rate: &str,
    spent: u64,
    ago_us: u64,
    cost: u64,
) -> (Item<'a>, Verdict) {
    let quota = TokenBucket::new(capacity, rate.parse().unwrap()).unwrap();
    let now = START.after_micros(ago_us);
    let held = Bucket::full(&quota, START).charge(&quota, spent).settle(&quota, now);
    let before = held.standing(&quota, cost, now);
    let (state, verdict) = if before.fit == Fit::Now {
        let after = held.charge(&quota, cost).standing(&quota, cost, now);
        (State::passed(&quota, &after), Verdict::Admit)
    } else {
        (State::violated(&before), Verdict::Refuse)
    };
    (Item { name, advertised: Advertised::from(&quota), state }, verdict)
}
