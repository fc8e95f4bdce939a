//! The store: the reference model, and variants of it that are wrong.

use limiter::authority::Authority;
use limiter::time::Instant;
use limiter::wire::{Charge, TakeReply, TakeRequest};

/// Who decides what is asked.
pub(crate) trait Store {
    fn decide(&mut self, request: &TakeRequest, now: Instant) -> TakeReply;

    /// Microseconds until the bucket of a charge is full.
    fn full_us(&self, charge: &Charge, now: Instant) -> u64;
}

impl Store for Authority {
    fn decide(&mut self, request: &TakeRequest, now: Instant) -> TakeReply {
        Authority::decide(self, request, now)
    }

    fn full_us(&self, charge: &Charge, now: Instant) -> u64 {
        self.standing(charge, now).full_us
    }
}
