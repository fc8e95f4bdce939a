//! A lease: tokens taken from the store in advance, held by the proxy, drawn by its workers.
//!
//! The three levels are one mechanism: a [`Purse`] is filled from the one above, by a share that grows with
//! the demand and shrinks with what is left. Tokens end at every level when their lease does. What is lost
//! on the way is lost on the safe side.

use core::time::Duration;

use crate::purse::Purse;
use crate::quota::TokenBucket;
use crate::time::Instant;
use crate::wire::{LeaseAsk, MAX_RETURNS, Return};

/// How long a lease of a limit lasts: a fiftieth of what fills the bucket, so that the promise exceeds the
/// limit by a fiftieth of the capacity; not so short that renewing it is all that is done, not so long that
/// a client that has gone keeps tokens from others.
pub fn ttl(quota: &TokenBucket) -> Duration {
    let fill = Duration::from_micros(quota.micros_for(quota.parts()));
    (fill / 50).clamp(Duration::from_millis(200), Duration::from_secs(10))
}

/// What a proxy holds of one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lease {
    /// Its tokens.
    pub purse: Purse,
    /// The number of the next lease that is asked for.
    pub next_id: u64,
    /// Until when no more is asked for in the background.
    pub asked_until: Instant,
}

impl Lease {
    /// When nothing is lost by forgetting it.
    pub fn matters_until(&self) -> Instant {
        let ends = self.purse.pieces.iter().filter(|piece| piece.tokens > 0).map(|piece| piece.ends);
        ends.chain([self.purse.refused_until, self.asked_until]).max().unwrap_or_default()
    }

    /// The question for a new lease.
    pub(crate) fn ask(
        &mut self,
        holder: &str,
        quota: &TokenBucket,
        want: u64,
        patience: Duration,
        now: Instant,
    ) -> LeaseAsk {
        self.asked_until = now.after(patience);
        // No limit has more, and the store refuses to be asked for more than any has.
        let want = if self.purse.has_room(now) { want.min(quota.capacity()) } else { 0 };
        LeaseAsk { want, ..self.question(holder, quota, now) }
    }

    /// A question that wants nothing.
    pub(crate) fn question(&mut self, holder: &str, quota: &TokenBucket, now: Instant) -> LeaseAsk {
        // Numbers start at the clock, so that a lease that was forgotten does not lend its number to another.
        self.next_id = self.next_id.max(now.as_micros()).saturating_add(1);
        let ttl_us = u64::try_from(ttl(quota).as_micros()).unwrap_or(u64::MAX);
        LeaseAsk { holder: holder.to_owned(), id: self.next_id, want: 0, ttl_us, returns: Vec::new() }
    }

    /// The question that gives back what will end soon, if there is something.
    pub(crate) fn give_back(&mut self, holder: &str, quota: &TokenBucket, now: Instant) -> Option<LeaseAsk> {
        let ending = self.purse.end_before(now.after(ttl(quota) / 4), now);
        let returns: Vec<Return> = ending
            .filter(|piece| piece.id > 0)
            .map(|piece| Return { id: piece.id, tokens: piece.tokens })
            .take(MAX_RETURNS)
            .collect();
        if returns.is_empty() {
            return None;
        }
        Some(LeaseAsk { returns, ..self.question(holder, quota, now) })
    }
}
