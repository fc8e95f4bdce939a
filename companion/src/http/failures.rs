//! Logs failures without one line for each: the first at once, then at most one line a second that says
//! how many there were.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The least time between two lines.
const QUIET: Duration = Duration::from_secs(1);

/// Counts failures between two lines.
#[derive(Debug, Default)]
pub(super) struct Failures {
    window: Mutex<Window>,
}

#[derive(Debug, Default)]
struct Window {
    last_line: Option<Instant>,
    unlogged: u64,
}

impl Failures {
    /// Counts a failure, and logs it where no line was logged lately.
    pub(super) fn note(&self, kind: &'static str, detail: &dyn std::fmt::Display) {
        if let Some(failures) = self.count(Instant::now()) {
            tracing::warn!(kind, %detail, failures, "takes without a decision");
        }
    }

    /// Counts a failure; returns the count since the last line where a line is due.
    fn count(&self, now: Instant) -> Option<u64> {
        let mut window = self.window.lock().unwrap_or_else(PoisonError::into_inner);
        window.unlogged += 1;
        if window.last_line.is_some_and(|last| now.saturating_duration_since(last) < QUIET) {
            return None;
        }
        window.last_line = Some(now);
        Some(std::mem::take(&mut window.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_failure_is_logged_at_once_and_the_next_are_summed_up() {
        let failures = Failures::default();
        let start = Instant::now();
        assert_eq!(failures.count(start), Some(1));
        for _ in 0..1_000 {
            assert_eq!(failures.count(start + QUIET / 2), None);
        }
        assert_eq!(failures.count(start + QUIET), Some(1_001));
    }
}
