//! A circuit breaker: while the companion does not decide, nobody waits to see whether it does.
//!
//! Source: M. Nygard, *Release It!* (2007), with a probe of its own in place of a trial request, so that no
//! request waits for the trial.

use core::time::Duration;

use crate::time::Instant;

/// Calls that fail one after the other until it opens, each made after the one before had failed: of calls that are
/// under way together one pause of the companion fails all.
pub(crate) const MAX_FAILURES: u32 = 3;

/// How often an open breaker looks whether the companion decides again.
pub(crate) const PROBE_EVERY: Duration = Duration::from_millis(200);

/// How long a breaker stays open, and probes, when no request would have asked.
pub(crate) const FORGET_AFTER: Duration = Duration::from_secs(10);

/// The breaker of one worker.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// Since the last answer.
    failures: u32,
    /// When the last of them was noted.
    failed_at: Instant,
    /// When the next probe leaves; while it is open.
    probe_at: Option<Instant>,
    /// When a request would have asked last.
    wanted_at: Instant,
    /// Times that it has opened.
    opened: u64,
}

impl Breaker {
    /// A call has brought decisions.
    pub(crate) fn on_answer(&mut self) {
        (self.failures, self.failed_at, self.probe_at) = (0, Instant::default(), None);
    }

    /// A call that was made at `sent_at` has brought none. True where that opens the breaker.
    pub(crate) fn on_failure(&mut self, sent_at: Instant, now: Instant) -> bool {
        if sent_at < self.failed_at {
            return false;
        }
        self.failed_at = now;
        self.failures = self.failures.saturating_add(1);
        let opens = self.failures >= MAX_FAILURES && self.probe_at.is_none();
        if opens {
            self.probe_at = Some(now.after(PROBE_EVERY));
            self.wanted_at = now;
            self.opened += 1;
        }
        opens
    }

    /// A request would have asked, had the breaker not been open.
    pub(crate) fn on_wanted(&mut self, now: Instant) {
        self.wanted_at = now;
    }

    /// True while no request is to wait.
    pub(crate) fn is_open(&self) -> bool {
        self.probe_at.is_some()
    }

    /// True where a probe is to leave, which is then taken for sent. Closes the breaker where nobody has wanted to
    /// ask for long: the next request finds out by itself.
    pub(crate) fn wants_probe(&mut self, now: Instant) -> bool {
        if now >= self.wanted_at.after(FORGET_AFTER) {
            self.on_answer();
        }
        let is_due = self.probe_at.is_some_and(|probe_at| probe_at <= now);
        if is_due {
            self.probe_at = Some(now.after(PROBE_EVERY));
        }
        is_due
    }

    /// How often it has opened since this was last asked.
    pub(crate) fn take_opened(&mut self) -> u64 {
        core::mem::take(&mut self.opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_micros(1_000_000);

    #[test]
    fn it_opens_after_failures_in_a_row_only() {
        let mut breaker = Breaker::default();
        for _ in 0..10 {
            assert!(!breaker.on_failure(START, START));
            assert!(!breaker.on_failure(START, START));
            breaker.on_answer();
        }
        assert!(!breaker.is_open());
        assert!(!breaker.on_failure(START, START));
        assert!(!breaker.on_failure(START, START));
        assert!(breaker.on_failure(START, START));
        assert!(!breaker.on_failure(START, START), "it is open already");
        assert!(breaker.is_open());
        assert_eq!((breaker.take_opened(), breaker.take_opened()), (1, 0));
    }

    #[test]
    fn one_pause_that_fails_all_calls_under_way_does_not_open_it() {
        let mut breaker = Breaker::default();
        let (sent_at, now) = (START, START.after(PROBE_EVERY));
        for call in 0..4 {
            assert!(!breaker.on_failure(sent_at, now.after_micros(call)));
        }
        assert!(!breaker.is_open());
        // The next ones were made after that.
        assert!(!breaker.on_failure(now.after(PROBE_EVERY), now.after(PROBE_EVERY)));
        assert!(breaker.on_failure(now.after(PROBE_EVERY), now.after(PROBE_EVERY)));
    }

    #[test]
    fn it_probes_at_its_pace_until_an_answer_closes_it() {
        let mut breaker = Breaker::default();
        for _ in 0..MAX_FAILURES {
            breaker.on_failure(START, START);
        }
        assert!(!breaker.wants_probe(START));
        let later = START.after(PROBE_EVERY);
        assert!(breaker.wants_probe(later));
        assert!(!breaker.wants_probe(later));
        breaker.on_failure(later, later);
        assert!(breaker.is_open());
        assert!(breaker.wants_probe(later.after(PROBE_EVERY)));
        breaker.on_answer();
        assert!(!breaker.is_open());
        assert!(!breaker.wants_probe(later.after(PROBE_EVERY * 9)));
    }

    #[test]
    fn it_does_not_probe_for_ever_for_nobody() {
        let mut breaker = Breaker::default();
        for _ in 0..MAX_FAILURES {
            breaker.on_failure(START, START);
        }
        let later = START.after(FORGET_AFTER / 2);
        breaker.on_wanted(later);
        assert!(breaker.wants_probe(START.after(FORGET_AFTER)));
        assert!(!breaker.wants_probe(later.after(FORGET_AFTER)));
        assert!(!breaker.is_open());
    }
}
