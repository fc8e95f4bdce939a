//! The token bucket over time: the local algorithm of the filter and the reference model of
//! `lua/token_bucket.lua`, which must answer the same to the microsecond.
//!
//! Source: the leaky bucket as a meter (ITU-T I.371, where the virtual scheduling form is the GCRA),
//! counted from the full end. A bucket stores what is *spent*, not what is left: a full bucket is the
//! absence of state, state expires by itself, and an edited capacity or rate carries consumption over.

use crate::quota::{MAX_PARTS, TokenBucket};
use crate::time::Instant;

/// What a client has spent of its bucket.
///
/// The state carries the rate it was counted at, so that it can be read after the rate was edited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Parts taken and not yet back.
    pub spent: u64,
    /// Parts of one token when `spent` was written, at least 1.
    pub parts_per_token: u64,
    /// Parts that came back in a microsecond when `spent` was written, at least 1.
    pub parts_per_micro: u64,
    /// When `spent` was true.
    pub updated: Instant,
    /// Those of the spent parts that were taken for requests of which it is not known yet whether they pass, less
    /// what time has refilled of them: what is left of them when everything else is back.
    pub held: u64,
}

/// When a cost fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// At once.
    Now,
    /// After so many microseconds, at least 1, if nothing else is taken meanwhile.
    After(u64),
    /// Never: the cost is above the capacity.
    Never,
}

/// How a bucket stands towards one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Whole tokens left.
    pub remaining: u64,
    /// When the request's cost fits.
    pub fit: Fit,
    /// Microseconds until the bucket is full, rounded up.
    pub full_us: u64,
}

impl Bucket {
    /// A full bucket: nothing spent.
    pub const fn full(quota: &TokenBucket, now: Instant) -> Self {
        Self::spent(0, quota, now)
    }

    const fn spent(spent: u64, quota: &TokenBucket, updated: Instant) -> Self {
        let (parts_per_token, parts_per_micro) = (quota.parts_per_token(), quota.parts_per_micro());
        Self { spent, parts_per_token, parts_per_micro, updated, held: 0 }
    }

    /// When the bucket is full if nothing more is taken: what its state is worth keeping until.
    pub fn full_at(&self) -> Instant {
        self.updated.after_micros(self.spent.div_ceil(self.parts_per_micro.max(1)))
    }

    /// The same bucket at `now`, in the parts of `quota`.
    ///
    /// After an edit nothing is forgiven: what was spent stays spent, also beyond a capacity that was lowered,
    /// and the time since the last update refills at the slower of the two rates. Two proxies, of which one
    /// has the new limit and one the old, could else hand out at both. A bucket that was full before by its own rate
    /// is full: there was no state any more, wherever states expire.
    ///
    /// A `now` before the last update refills nothing and moves nothing: a clock that stepped back must
    /// not hand out the same time twice. Only a step further than a whole refill is taken for a clock
    /// that had run ahead; then the time starts anew, else the client would be shut out until the clock
    /// has caught up.
    #[must_use]
    pub fn settle(self, quota: &TokenBucket, now: Instant) -> Self {
        let ahead = self.updated.micros_since(now);
        let held = self.rescaled(quota, self.held);
        if ahead > quota.micros_for(quota.parts()) {
            return Self { held, ..Self::spent(self.rescaled(quota, self.spent), quota, now) };
        }
        let elapsed = now.micros_since(self.updated);
        let spent = if elapsed >= self.spent.div_ceil(self.parts_per_micro.max(1)) {
            0
        } else if tokens_per_micro(self.parts_per_token, self.parts_per_micro)
            < tokens_per_micro(quota.parts_per_token(), quota.parts_per_micro())
        {
            self.rescaled(quota, refilled(self.spent, elapsed, self.parts_per_micro.max(1)))
        } else {
            refilled(self.rescaled(quota, self.spent), elapsed, quota.parts_per_micro())
        };
        Self { held: held.min(spent), ..Self::spent(spent, quota, self.updated.max(now)) }
    }

    /// `spent` parts of this bucket in the parts of `quota`, rounded up; bounded, as scripts must count them.
    fn rescaled(&self, quota: &TokenBucket, spent: u64) -> u64 {
        rescale(spent, self.parts_per_token, quota.parts_per_token()).min(MAX_PARTS)
    }

    /// Whether the bucket, settled to `settled`, must be stored though nothing is taken.
    ///
    /// Time alone can be read again from the old state, so that a refusal need not write. An edited rate
    /// changes how long the state must be kept, and a healed clock would not heal if nobody noted it.
    pub fn must_store(&self, settled: &Self) -> bool {
        let rate = |bucket: &Self| (bucket.parts_per_token, bucket.parts_per_micro);
        settled.spent > 0 && (rate(self) != rate(settled) || settled.updated < self.updated)
    }

    /// How this bucket, settled to `now`, stands towards a request of `cost` tokens. Changes nothing.
    pub fn standing(&self, quota: &TokenBucket, cost: u64, now: Instant) -> Standing {
        // State from the future (see `settle`) refills only once the clock is there.
        let ahead = self.updated.micros_since(now);
        let left = quota.parts().saturating_sub(self.spent);
        let fit = match quota.parts_of(cost) {
            None => Fit::Never,
            // Nothing always fits, also where a lowered capacity is exceeded already.
            Some(0) => Fit::Now,
            Some(parts) if self.spent + parts <= quota.parts() => Fit::Now,
            Some(parts) => Fit::After(quota.micros_for(self.spent + parts - quota.parts()) + ahead),
        };
        let full_us = if self.spent == 0 { 0 } else { quota.micros_for(self.spent) + ahead };
        Standing { remaining: left / quota.parts_per_token(), fit, full_us }
    }

    /// Takes `cost` tokens from a settled bucket. The caller has seen that they fit.
    #[must_use]
    pub fn charge(self, quota: &TokenBucket, cost: u64) -> Self {
        let parts = quota.parts_of(cost).unwrap_or_else(|| quota.parts());
        Self { spent: self.spent.saturating_add(parts).min(MAX_PARTS), ..self }
    }

    /// Notes that `tokens` were taken from a settled bucket, also where they did not fit: what is more than a full
    /// bucket has to come back before a token fits again.
    #[must_use]
    pub fn owe(self, quota: &TokenBucket, tokens: u64) -> Self {
        let parts = tokens.saturating_mul(quota.parts_per_token());
        Self { spent: self.spent.saturating_add(parts).min(MAX_PARTS), ..self }
    }

    /// Gives back at once what was taken from a settled bucket, as if it had never been taken.
    #[must_use]
    pub fn refund(self, quota: &TokenBucket, tokens: u64) -> Self {
        let parts = tokens.saturating_mul(quota.parts_per_token());
        Self { spent: self.spent.saturating_sub(parts), ..self }
    }

    /// Notes that `tokens` just taken may be given back later.
    ///
    /// A bucket that is full meanwhile would have been full without them, too, and has nothing to give back:
    /// as time refills, no more is held than is spent.
    #[must_use]
    pub fn hold(self, quota: &TokenBucket, tokens: u64) -> Self {
        let parts = tokens.saturating_mul(quota.parts_per_token());
        Self { held: self.held.saturating_add(parts).min(self.spent), ..self }
    }

    /// Gives back what was held in a settled bucket, as if it had never been taken.
    #[must_use]
    pub fn release(self, quota: &TokenBucket, tokens: u64) -> Self {
        let parts = tokens.saturating_mul(quota.parts_per_token()).min(self.held);
        Self { spent: self.spent.saturating_sub(parts), held: self.held - parts, ..self }
    }

    /// What was held in a settled bucket stays taken.
    #[must_use]
    pub fn confirm(self, quota: &TokenBucket, tokens: u64) -> Self {
        let parts = tokens.saturating_mul(quota.parts_per_token());
        Self { held: self.held.saturating_sub(parts), ..self }
    }
}

/// What becomes of tokens that were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// They go back at once; see [`Bucket::refund`].
    Refund,
    /// They may go back later; see [`Bucket::hold`].
    Hold,
    /// They go back now; see [`Bucket::release`].
    Release,
    /// They stay taken; see [`Bucket::confirm`].
    Confirm,
}

impl Fate {
    /// The settled bucket after this has become of `tokens`.
    #[must_use]
    pub fn of(self, bucket: Bucket, quota: &TokenBucket, tokens: u64) -> Bucket {
        match self {
            Self::Refund => bucket.refund(quota, tokens),
            Self::Hold => bucket.hold(quota, tokens),
            Self::Release => bucket.release(quota, tokens),
            Self::Confirm => bucket.confirm(quota, tokens),
        }
    }
}

/// `spent`, counted in `from` parts a token, in `to` parts a token, rounded up: an edit forgives nothing.
fn rescale(spent: u64, from: u64, to: u64) -> u64 {
    if from == to || from == 0 {
        return spent;
    }
    let scaled = (u128::from(spent) * u128::from(to)).div_ceil(u128::from(from));
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// What is left of `spent` after `elapsed_us`. Compared before it is multiplied: a long absence must not
/// overflow.
const fn refilled(spent: u64, elapsed_us: u64, parts_per_micro: u64) -> u64 {
    if elapsed_us >= spent.div_ceil(parts_per_micro) { 0 } else { spent - elapsed_us * parts_per_micro }
}

/// A rate, for comparison. A double, since the scripts have nothing else, and must come to the same.
#[expect(clippy::cast_precision_loss, reason = "both numbers are below 2^53")]
fn tokens_per_micro(parts_per_token: u64, parts_per_micro: u64) -> f64 {
    parts_per_micro as f64 / parts_per_token.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Instant = Instant::from_micros(1_000_000_000);

    fn quota(capacity: u64, rate: &str) -> TokenBucket {
        TokenBucket::new(capacity, rate.parse().unwrap()).unwrap()
    }

    /// Takes if it fits, as every user of the bucket does.
    fn take(bucket: &mut Bucket, quota: &TokenBucket, cost: u64, now: Instant) -> Standing {
        *bucket = bucket.settle(quota, now);
        let standing = bucket.standing(quota, cost, now);
        if standing.fit == Fit::Now {
            *bucket = bucket.charge(quota, cost);
        }
        standing
    }

    #[test]
    fn full_bucket_admits_its_capacity_and_not_one_more() {
        let quota = quota(5, "1/m");
        let mut bucket = Bucket::full(&quota, START);
        for _ in 0..5 {
            assert_eq!(take(&mut bucket, &quota, 1, START).fit, Fit::Now);
        }
        assert_eq!(take(&mut bucket, &quota, 1, START).fit, Fit::After(60_000_000));
    }

    #[test]
    fn the_wait_is_exact_to_the_microsecond() {
        let quota = quota(10, "3/s");
        let mut bucket = Bucket::full(&quota, START);
        take(&mut bucket, &quota, 10, START);
        let Fit::After(wait_us) = take(&mut bucket, &quota, 1, START).fit else { panic!() };
        assert_eq!(wait_us, 333_334);
        assert_ne!(take(&mut bucket, &quota, 1, START.after_micros(wait_us - 1)).fit, Fit::Now);
        assert_eq!(take(&mut bucket, &quota, 1, START.after_micros(wait_us)).fit, Fit::Now);
    }

    #[test]
    fn denied_request_leaves_bucket_unchanged() {
        let quota = quota(3, "1/s");
        let mut bucket = Bucket::full(&quota, START).charge(&quota, 2);
        let before = bucket;
        assert_eq!(take(&mut bucket, &quota, 2, START).fit, Fit::After(1_000_000));
        assert_eq!(bucket, before);
    }

    #[test]
    fn cost_above_capacity_never_fits() {
        let quota = quota(3, "1/s");
        let standing = Bucket::full(&quota, START).standing(&quota, 4, START);
        assert_eq!(standing, Standing { remaining: 3, fit: Fit::Never, full_us: 0 });
    }

    #[test]
    fn an_odd_rate_loses_nothing_over_a_million_takes() {
        // A token each 36 s, asked in steps that never meet a whole token.
        let quota = quota(1, "100/h");
        let mut bucket = Bucket::full(&quota, START);
        let step_us = 7_777_777;
        let admitted = (0..1_000_000)
            .filter(|step| {
                let now = START.after_micros(step * step_us);
                take(&mut bucket, &quota, 1, now).fit == Fit::Now
            })
            .count();
        // With one token of capacity, a token is taken at the first step after it is whole: every fifth.
        assert_eq!(admitted, 200_000);
    }

    #[test]
    fn a_clock_that_steps_back_refills_nothing_twice() {
        let quota = quota(10, "1/s");
        let mut bucket = Bucket::full(&quota, START).charge(&quota, 10);
        bucket = bucket.settle(&quota, START.after_micros(2_000_000));
        let back = bucket.settle(&quota, START);
        assert_eq!(back, bucket);
        assert_eq!(back.standing(&quota, 3, START).fit, Fit::After(3_000_000));
    }

    #[test]
    fn a_clock_that_ran_ahead_does_not_shut_the_client_out() {
        let quota = quota(10, "1/s");
        let year_us = 365 * 86_400 * 1_000_000;
        let ahead = Bucket::full(&quota, START.after_micros(year_us)).charge(&quota, 10);
        let settled = ahead.settle(&quota, START);
        assert_eq!(settled.updated, START);
        assert_eq!(settled.spent, quota.parts());
    }

    #[test]
    fn an_edit_carries_consumption_over() {
        let hourly = quota(100, "100/h");
        let spent = Bucket::full(&hourly, START).charge(&hourly, 40);
        let edited = quota(1000, "7/s");
        assert_eq!(spent.settle(&edited, START).standing(&edited, 1, START).remaining, 960);
        let smaller = quota(10, "1/s");
        let settled = spent.settle(&smaller, START);
        assert_eq!(settled.standing(&smaller, 1, START).remaining, 0);
        assert_eq!(settled.standing(&smaller, 1, START).fit, Fit::After(31_000_000));
        // Back to the old limit, nothing has been forgiven.
        assert_eq!(settled.settle(&hourly, START).standing(&hourly, 1, START).remaining, 60);
    }

    #[test]
    fn what_was_paid_back_before_an_edit_is_no_debt_after_it() {
        let (old, new) = (quota(2_000, "500/s"), quota(10, "2/m"));
        let spent = Bucket::full(&old, START).charge(&old, 100);
        let paid = START.after_micros(200_000);
        assert_eq!(spent.settle(&new, paid).standing(&new, 1, paid).remaining, 10);
        let before = START.after_micros(199_999);
        assert_eq!(spent.settle(&new, before).standing(&new, 1, before).remaining, 0);
    }

    #[test]
    fn two_limits_in_use_at_once_refill_at_the_slower() {
        let (slow, fast) = (quota(100, "100/d"), quota(5, "10/s"));
        let mut bucket = Bucket::full(&slow, START).charge(&slow, 100);
        for step in 1..=1_000 {
            let quota = if step % 2 == 0 { &slow } else { &fast };
            bucket = bucket.settle(quota, START.after_micros(step * 300_000));
        }
        let now = START.after_micros(300_000_000);
        assert_eq!(bucket.settle(&slow, now).standing(&slow, 1, now).remaining, 0);
    }

    #[test]
    fn a_refund_is_as_if_nothing_had_been_taken() {
        let quota = quota(10, "1/s");
        let before = Bucket::full(&quota, START).charge(&quota, 5);
        let later = START.after_micros(1_500_000);
        let refunded = before.charge(&quota, 3).settle(&quota, later).refund(&quota, 3);
        assert_eq!(refunded, before.settle(&quota, later));
        let full = Bucket::full(&quota, START);
        assert_eq!(full.refund(&quota, 3), full);
    }

    #[test]
    fn what_is_released_late_is_as_if_it_had_never_been_taken() {
        let quota = quota(10, "1/s");
        for spent in 0..8 {
            for wait_us in [0, 500_000, 1_000_000, 2_500_000, 4_000_000, 20_000_000] {
                let before = Bucket::full(&quota, START).charge(&quota, spent);
                let later = START.after_micros(wait_us);
                let held = before.charge(&quota, 3).hold(&quota, 3).settle(&quota, later);
                // Others take what they find meanwhile.
                let others =
                    |bucket: Bucket| bucket.charge(&quota, 2).settle(&quota, later.after_micros(700_000));
                let released = others(held).release(&quota, 3);
                assert_eq!(released, others(before.settle(&quota, later)), "{spent} spent, {wait_us} µs");
            }
        }
    }

    #[test]
    fn what_is_confirmed_is_not_released() {
        let quota = quota(10, "1/s");
        let both = Bucket::full(&quota, START).charge(&quota, 5).hold(&quota, 3).hold(&quota, 2);
        let one = both.confirm(&quota, 3).release(&quota, 2);
        assert_eq!(one.standing(&quota, 1, START).remaining, 7);
        assert_eq!(one.release(&quota, 3), one);
    }
}
