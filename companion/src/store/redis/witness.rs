//! What the last script calls say of the store, for whoever asks whether it is ready.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::store::{Refusal, StoreError};

/// A script that ran so lately shows that scripts run.
const READY_FOR: Duration = Duration::from_millis(100);

/// How long a refusal that no probe can find counts: a probe has no keys to write.
const REFUSED_FOR: Duration = Duration::from_secs(1);

/// Remembers the last script that ran and the last that was refused its writes.
#[derive(Debug, Default)]
pub(super) struct Witness {
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    ran: Option<Instant>,
    refused: Option<(Instant, StoreError)>,
}

impl Witness {
    /// Notes how a script call ended.
    pub(super) fn note<T>(&self, answer: &Result<T, StoreError>, now: Instant) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match answer {
            Ok(_) => seen.ran = Some(now),
            Err(error) if is_of_writes(error) => seen.refused = Some((now, error.clone())),
            Err(_) => {}
        }
    }

    /// Whether the store is ready; `None` where it has to be asked.
    pub(super) fn verdict(&self, now: Instant) -> Option<Result<(), StoreError>> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let within = |then: Instant, span| now.saturating_duration_since(then) < span;
        match (&seen.refused, seen.ran) {
            // First: where some takes are refused, those that change nothing still run.
            (Some((then, error)), _) if within(*then, REFUSED_FOR) => Some(Err(error.clone())),
            (_, Some(then)) if within(then, READY_FOR) => Some(Ok(())),
            _ => None,
        }
    }
}

fn is_of_writes(error: &StoreError) -> bool {
    use Refusal::{Forbidden, NotDurable, OutOfMemory, ReadOnly};
    let StoreError::Refused { refusal, .. } = error else { return false };
    matches!(refusal, OutOfMemory | Forbidden | ReadOnly | NotDurable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_write_outweighs_scripts_that_run_for_a_second() {
        let (witness, start) = (Witness::default(), Instant::now());
        assert_eq!(witness.verdict(start), None);
        witness.note(&Ok(()), start);
        assert_eq!(witness.verdict(start), Some(Ok(())));
        assert_eq!(witness.verdict(start + READY_FOR), None);
        for words in ["OOM full", "NOPERM no", "READONLY replica", "MISCONF disk"] {
            let error = StoreError::refused(words);
            witness.note(&Err::<(), _>(error.clone()), start);
            witness.note(&Ok(()), start);
            assert_eq!(witness.verdict(start), Some(Err(error)));
        }
        assert!(matches!(witness.verdict(start + REFUSED_FOR / 2), Some(Err(_))));
        assert_eq!(witness.verdict(start + REFUSED_FOR), None);
    }

    #[test]
    fn a_refusal_of_one_key_or_moment_is_no_verdict() {
        let (witness, now) = (Witness::default(), Instant::now());
        for words in ["MOVED 1 there", "BUSY script", "ERR fault"] {
            witness.note(&Err::<(), _>(StoreError::refused(words)), now);
        }
        witness.note(&Err::<(), _>(StoreError::Timeout { waited: REFUSED_FOR }), now);
        assert_eq!(witness.verdict(now), None);
    }
}
