//! Points in time, handed in by the caller. Nothing here reads a clock.

use core::time::Duration;

/// A point on some clock that all callers of one state share, in whole microseconds from its epoch.
///
/// In the filter it is the monotonic clock (one epoch for all workers of a process), in the scripts the
/// store's. Arithmetic saturates: a clock that is wrong must not bring a proxy down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The point `micros` microseconds after the clock's epoch.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the clock's epoch.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Microseconds from `earlier` to here; 0 where `earlier` is later.
    pub const fn micros_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// The point `span` later; the greatest point where that does not fit.
    #[must_use]
    pub fn after(self, span: Duration) -> Self {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(micros))
    }

    /// The point `span` earlier; the epoch where that is before it.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        let micros = u64::try_from(span.as_micros()).unwrap_or(u64::MAX);
        Self(self.0.saturating_sub(micros))
    }

    /// The point `micros` microseconds later; the greatest point where that does not fit.
    #[must_use]
    pub const fn after_micros(self, micros: u64) -> Self {
        Self(self.0.saturating_add(micros))
    }
}
