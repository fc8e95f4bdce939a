//! How long to wait before the next attempt to connect.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The first wait: a server that restarts is there again at once.
const FIRST_MS: u64 = 10;

/// The longest wait. Recovery takes at most that long after the server's return.
const LONGEST_MS: u64 = 500;

/// Waits that double, each shortened by a random part so that many companions do not come at once.
#[derive(Debug)]
pub(super) struct Backoff {
    next_ms: u64,
}

impl Backoff {
    pub(super) const fn new() -> Self {
        Self { next_ms: FIRST_MS }
    }

    /// Begins anew after a connection that was worth its name.
    pub(super) const fn reset(&mut self) {
        self.next_ms = FIRST_MS;
    }

    /// Half to all of the wait that is due.
    pub(super) fn next(&mut self) -> Duration {
        let whole_ms = self.next_ms;
        self.next_ms = (whole_ms * 2).min(LONGEST_MS);
        // A hasher with a random key is the standard library's source of entropy.
        let random = RandomState::new().hash_one(whole_ms);
        let half_us = whole_ms * 500;
        Duration::from_micros(half_us + random % half_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_anew() {
        let mut backoff = Backoff::new();
        for whole_ms in [10, 20, 40, 80, 160, 320, 500, 500] {
            let wait = backoff.next();
            assert!(wait >= Duration::from_millis(whole_ms) / 2 && wait < Duration::from_millis(whole_ms));
        }
        backoff.reset();
        assert!(backoff.next() < Duration::from_millis(10));
    }
}
