//! The clock that scripts of the memory store see through `TIME`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Microseconds since the Unix epoch.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The wall clock's time at the start, carried on by the monotonic clock, so that setting the system's
    /// clock changes nothing.
    System {
        /// When this clock was made.
        start: Instant,
        /// What the wall clock said then.
        epoch_us: u64,
    },
    /// Whatever a test sets.
    Manual(Arc<AtomicU64>),
}

impl Clock {
    /// The real clock.
    pub fn system() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::System { start: Instant::now(), epoch_us: micros(since_epoch) }
    }

    /// The time.
    pub fn now_us(&self) -> u64 {
        match self {
            Self::System { start, epoch_us } => epoch_us.saturating_add(micros(start.elapsed())),
            Self::Manual(now_us) => now_us.load(Ordering::Relaxed),
        }
    }
}

fn micros(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
