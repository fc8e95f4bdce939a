//! A circuit breaker: while the companion does not decide, nobody waits to see whether it does.
//!
//! Source: M. Nygard, *Release It!* (2007), with a probe of its own in place of a trial request, so that no
//! request waits for the trial.

use core::time::Duration;

use crate::time::Instant;

/// Calls that fail one after the other until it opens.
pub(crate) const MAX_FAILURES: u32 = 3;

/// How often an open breaker looks whether the companion decides again.
pub(crate) const PROBE_EVERY: Duration = Duration::from_millis(200);

/// The breaker of one worker.
#[derive(Debug, Default)]
pub(crate) struct Breaker {
    /// Since the last answer.
    failures: u32,
    /// When the next probe leaves; while it is open.
    probe_at: Option<Instant>,
    /// Times that it has opened.
    opened: u64,
}

impl Breaker {
    /// A call has brought decisions.
    pub(crate) fn on_answer(&mut self) {
        (self.failures, self.probe_at) = (0, None);
    }

    /// A call has brought none. True where that opens the breaker.
    pub(crate) fn on_failure(&mut self, now: Instant) -> bool {
        self.failures = self.failures.saturating_add(1);
        let opens = self.failures >= MAX_FAILURES && self.probe_at.is_none();
        if opens {
            self.probe_at = Some(now.after(PROBE_EVERY));
            self.opened += 1;
        }
        opens
    }

    /// True while no request is to wait.
    pub(crate) fn is_open(&self) -> bool {
        self.probe_at.is_some()
    }

    /// True where a probe is to leave, which is then taken for sent.
    pub(crate) fn wants_probe(&mut self, now: Instant) -> bool {
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
            assert!(!breaker.on_failure(START));
            assert!(!breaker.on_failure(START));
            breaker.on_answer();
        }
        assert!(!breaker.is_open());
        assert!(!breaker.on_failure(START));
        assert!(!breaker.on_failure(START));
        assert!(breaker.on_failure(START));
        assert!(!breaker.on_failure(START), "it is open already");
        assert!(breaker.is_open());
        assert_eq!((breaker.take_opened(), breaker.take_opened()), (1, 0));
    }

    #[test]
    fn it_probes_at_its_pace_until_an_answer_closes_it() {
        let mut breaker = Breaker::default();
        for _ in 0..MAX_FAILURES {
            breaker.on_failure(START);
        }
        assert!(!breaker.wants_probe(START));
        let later = START.after(PROBE_EVERY);
        assert!(breaker.wants_probe(later));
        assert!(!breaker.wants_probe(later));
        breaker.on_failure(later);
        assert!(breaker.is_open());
        assert!(breaker.wants_probe(later.after(PROBE_EVERY)));
        breaker.on_answer();
        assert!(!breaker.is_open());
        assert!(!breaker.wants_probe(later.after(PROBE_EVERY * 9)));
    }
}
