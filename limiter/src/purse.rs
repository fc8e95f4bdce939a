//! Tokens in hand: leased from further up, spent here without asking, worthless after their end.
//!
//! A proxy holds a purse for each key that it leases from the store, in its slot table, and a worker holds
//! one for each hot key, drawn from its proxy's. Both are the same thing, one level apart.

use core::time::Duration;

use crate::bucket::{Fit, Standing};
use crate::quota::TokenBucket;
use crate::time::Instant;

/// Tokens of one lease.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Piece {
    /// The lease's number.
    pub id: u64,
    /// Tokens not spent.
    pub tokens: u64,
    /// When they are worth nothing any more.
    pub ends: Instant,
}

impl Piece {
    /// Tokens that can still be spent.
    pub fn live(&self, now: Instant) -> u64 {
        if self.ends > now { self.tokens } else { 0 }
    }
}

/// The number of tokens that come from several leases.
const NAMELESS: u64 = 0;

/// The most leases in a purse.
pub const MAX_PIECES: usize = 3;

/// The longest time for which a refusal is believed without asking again, so that a reset, an edit or a
/// give-back is seen soon.
pub const MAX_REFUSAL: Duration = Duration::from_secs(1);

/// Leased tokens of one key, and what is known of the store's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purse {
    /// Leases that are out: some to spend, and room for the next.
    pub pieces: [Piece; MAX_PIECES],
    /// Tokens in hand when some were last added, which with [`Purse::added_at`] measures the demand.
    pub stock: u64,
    /// When some were last added.
    pub added_at: Instant,
    /// Until when requests that do not fit are refused without asking.
    pub refused_until: Instant,
    /// The limit that the store refused by; see [`TokenBucket::tag`].
    pub refused_by: u32,
    /// When the store has its next whole token by that limit: one more than [`Purse::rest`].
    pub next_at: Instant,
    /// Whole tokens left further up when that was last heard of.
    pub rest: u64,
}

impl Purse {
    /// Tokens that can be spent.
    pub fn live(&self, now: Instant) -> u64 {
        self.pieces.iter().map(|piece| piece.live(now)).fold(0, u64::saturating_add)
    }

    /// Spends `cost` tokens, those that end first, and says when the first of them would have; nothing, and
    /// nothing spent, where there are too few.
    pub fn spend(&mut self, cost: u64, now: Instant) -> Option<Instant> {
        if self.live(now) < cost {
            return None;
        }
        let ends = self.first_end(now)?;
        let mut missing = cost;
        while missing > 0 {
            let first = self.first_live(now)?;
            let spent = first.tokens.min(missing);
            first.tokens -= spent;
            missing -= spent;
        }
        Some(ends)
    }

    /// Puts back tokens that were spent in vain and end at `ends`. They must not outlive that, so they are lost
    /// where no lease is left that ends by then.
    pub fn put_back(&mut self, tokens: u64, ends: Instant, now: Instant) {
        let open = self.pieces.iter_mut().filter(|piece| piece.ends > now && piece.ends <= ends);
        if let Some(last) = open.max_by_key(|piece| piece.ends) {
            last.tokens = last.tokens.saturating_add(tokens);
        }
    }

    /// Takes out at most `max` tokens of the lease that ends first among those with tokens.
    pub fn draw(&mut self, max: u64, now: Instant) -> Option<Piece> {
        let first = self.first_live(now)?;
        let tokens = first.tokens.min(max);
        first.tokens -= tokens;
        (tokens > 0).then_some(Piece { tokens, ..*first })
    }

    /// Puts tokens back into the lease that they were drawn from; false where that is gone.
    pub fn rejoin(&mut self, drawn: Piece, now: Instant) -> bool {
        let is_its = |piece: &&mut Piece| piece.id == drawn.id && piece.id != NAMELESS && piece.ends > now;
        let Some(lease) = self.pieces.iter_mut().find(is_its) else { return false };
        lease.tokens = lease.tokens.saturating_add(drawn.tokens);
        true
    }

    /// Whether another lease can be added without joining one that is there, which would cost it its name.
    pub fn has_room(&self, now: Instant) -> bool {
        self.pieces.iter().any(|piece| piece.live(now) == 0)
    }

    /// When the first of the tokens end.
    pub fn first_end(&self, now: Instant) -> Option<Instant> {
        self.pieces.iter().filter(|piece| piece.live(now) > 0).map(|piece| piece.ends).min()
    }

    /// Adds tokens. They never outlive their end: where there is no room for another lease they join the
    /// one that ends later, or end with it.
    pub fn add(&mut self, new: Piece, now: Instant) {
        self.refused_until = Instant::default();
        let same = self.pieces.iter().position(|piece| piece.id == new.id && piece.ends > now);
        let free = || self.pieces.iter().position(|piece| piece.live(now) == 0);
        let into = match same.or_else(free) {
            Some(index) => self.pieces.get_mut(index),
            None => self.pieces.iter_mut().max_by_key(|piece| piece.ends),
        };
        let Some(into) = into else { return };
        let kept = into.live(now);
        let (id, ends) = match kept {
            0 => (new.id, new.ends),
            _ if into.id == new.id => (new.id, into.ends.min(new.ends)),
            // Without a name it can neither rejoin nor be given back, where the ends differ.
            _ => (NAMELESS, into.ends.min(new.ends)),
        };
        *into = Piece { id, tokens: kept.saturating_add(new.tokens), ends };
        (self.stock, self.added_at) = (self.live(now), now);
    }

    /// Notes that the store has refused `cost` tokens until `fits_at`, and has `rest`.
    pub fn refuse(&mut self, quota: &TokenBucket, cost: u64, fits_at: Instant, rest: u64, now: Instant) {
        let more = cost.saturating_sub(rest).saturating_sub(1).min(quota.capacity());
        let more_us = quota.micros_for(more * quota.parts_per_token());
        (self.rest, self.next_at) = (rest, fits_at.before(Duration::from_micros(more_us)));
        (self.refused_by, self.refused_until) = (quota.tag(), fits_at.min(now.after(MAX_REFUSAL)));
    }

    /// Takes over what another purse knows of a refusal.
    pub const fn learn_refusal(&mut self, other: &Self) {
        (self.rest, self.next_at) = (other.rest, other.next_at);
        (self.refused_by, self.refused_until) = (other.refused_by, other.refused_until);
    }

    /// When so many tokens fit by this limit, where the store is known to refuse them until then. What it has
    /// refused says nothing about a smaller cost that it has tokens for, nor about another limit, as another plan's.
    pub fn fits_at(&self, quota: &TokenBucket, cost: u64, now: Instant) -> Option<Instant> {
        if now >= self.refused_until || self.refused_by != quota.tag() || cost <= self.rest {
            return None;
        }
        let more = (cost - self.rest - 1).min(quota.capacity());
        let fits_at = self.next_at.after_micros(quota.micros_for(more * quota.parts_per_token()));
        (now < fits_at).then_some(fits_at)
    }

    /// Tokens that the demand seen since the last addition would use in `horizon`. A stock that was used up in less
    /// than a quarter of that says little about a stream, so it is only doubled. None where nothing was seen for
    /// as long: what is taken for a client that comes once is only in the way of others.
    pub fn demand(&self, horizon: Duration, now: Instant) -> u64 {
        if self.stock == 0 && now > self.added_at.after(horizon) {
            return 0;
        }
        let left: u64 = self.pieces.iter().map(|piece| piece.tokens).fold(0, u64::saturating_add);
        let used = self.stock.saturating_sub(left);
        let elapsed_us = u128::from(now.micros_since(self.added_at));
        if elapsed_us * 4 < horizon.as_micros() {
            return self.stock.saturating_mul(2).max(1);
        }
        let wanted = u128::from(used) * horizon.as_micros() / elapsed_us.max(1);
        u64::try_from(wanted).unwrap_or(u64::MAX).max(1)
    }

    /// Notes that a request came while nothing was there, so that the next one shows a demand.
    pub const fn see(&mut self, now: Instant) {
        if self.stock == 0 {
            self.added_at = now;
        }
    }

    /// Whether it is time to ask for more: little is left, or all that is left ends within `margin`.
    pub fn is_low(&self, margin: Duration, now: Instant) -> bool {
        let ends = self.pieces.iter().filter(|piece| piece.tokens > 0).map(|piece| piece.ends).max();
        self.live(now).saturating_mul(4) < self.stock || ends.is_none_or(|ends| ends <= now.after(margin))
    }

    /// Takes out the leases that end before `end` and still have tokens.
    pub fn end_before(&mut self, end: Instant, now: Instant) -> impl Iterator<Item = Piece> {
        let mut ending = [None; MAX_PIECES];
        for (piece, ending) in self.pieces.iter_mut().zip(&mut ending) {
            if piece.ends <= end {
                let piece = core::mem::take(piece);
                // What is taken out was not used.
                self.stock = self.stock.saturating_sub(piece.tokens);
                *ending = (piece.live(now) > 0).then_some(piece);
            }
        }
        ending.into_iter().flatten()
    }

    /// How the key stands for a client, as far as is known here.
    pub fn standing(&self, quota: &TokenBucket, cost: u64, now: Instant) -> Standing {
        let remaining = self.live(now).saturating_add(self.rest).min(quota.capacity());
        let full_us = quota.micros_for((quota.capacity() - remaining) * quota.parts_per_token());
        let fit = if cost > quota.capacity() {
            Fit::Never
        } else {
            let fits_at = self.fits_at(quota, cost, now).filter(|_| self.live(now) < cost);
            fits_at.map_or(Fit::Now, |fits_at| Fit::After(fits_at.micros_since(now).max(1)))
        };
        Standing { remaining, fit, full_us }
    }

    fn first_live(&mut self, now: Instant) -> Option<&mut Piece> {
        self.pieces.iter_mut().filter(|piece| piece.live(now) > 0).min_by_key(|piece| piece.ends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Instant = Instant::from_micros(1_000_000_000);

    fn quota(capacity: u64, rate: &str) -> TokenBucket {
        TokenBucket::new(capacity, rate.parse().unwrap()).unwrap()
    }

    fn seconds(seconds: u64) -> Instant {
        NOW.after(Duration::from_secs(seconds))
    }

    /// A bucket of 10 that holds 3, and half of the next token: 7 fit in 35 s.
    fn refused() -> (Purse, TokenBucket) {
        let (mut purse, quota) = (Purse::default(), quota(10, "6/m"));
        purse.refuse(&quota, 7, seconds(35), 3, NOW);
        (purse, quota)
    }

    #[test]
    fn a_refusal_tells_when_each_cost_fits_that_the_store_has_no_tokens_for() {
        let (purse, quota) = refused();
        for (cost, fits_at) in
            [(1, None), (3, None), (4, Some(5)), (5, Some(15)), (7, Some(35)), (10, Some(65))]
        {
            assert_eq!(purse.fits_at(&quota, cost, NOW), fits_at.map(seconds), "{cost}");
        }
    }

    #[test]
    fn a_refusal_says_nothing_about_another_limit() {
        let (purse, _) = refused();
        for other in [quota(20, "6/m"), quota(10, "7/m"), quota(10, "6/h")] {
            assert_eq!(purse.fits_at(&other, 7, NOW), None, "{other:?}");
        }
        assert!(purse.fits_at(&quota(10, "60/m"), 7, NOW).is_none());
        assert!(purse.fits_at(&quota(10, "6/m"), 7, NOW).is_some());
    }

    #[test]
    fn a_refusal_is_believed_for_a_second_and_no_longer_than_it_holds() {
        let (mut purse, quota) = refused();
        assert!(purse.fits_at(&quota, 7, NOW.after_micros(999_999)).is_some());
        assert_eq!(purse.fits_at(&quota, 7, seconds(1)), None);
        purse.refuse(&quota, 4, NOW.after_micros(500_000), 3, NOW);
        assert!(purse.fits_at(&quota, 4, NOW.after_micros(499_999)).is_some());
        assert_eq!(purse.fits_at(&quota, 4, NOW.after_micros(500_000)), None);
    }
}
