//! The store: the reference model, and variants of it that are wrong.

use limiter::authority::Authority;
use limiter::time::Instant;
use limiter::wire::{TakeReply, TakeRequest};

/// Who decides what is asked.
pub(crate) trait Store {
    fn decide(&mut self, request: &TakeRequest, now: Instant) -> TakeReply;
}

impl Store for Authority {
    fn decide(&mut self, request: &TakeRequest, now: Instant) -> TakeReply {
        Authority::decide(self, request, now)
    }
}
