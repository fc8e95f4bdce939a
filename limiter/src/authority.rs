//! The reference model of the store: what `lua/token_bucket.lua` must answer and keep, from the rules of
//! [`crate::wire`] and [`crate::bucket`]. It stands in for companion and store in tests and simulations.

use std::collections::BTreeMap;

use crate::bucket::{Bucket, Fit, Standing};
use crate::time::Instant;
use crate::wire::{Charge, Charged, Limit, Take, TakeReply, TakeRequest, Taken};

/// All keys of a store.
#[derive(Clone, Debug, Default)]
pub struct Authority {
    keys: BTreeMap<String, Kept>,
}

#[derive(Clone, Debug)]
enum Kept {
    /// A bucket, kept through the millisecond `expires_ms`.
    Bucket { bucket: Bucket, expires_ms: u64 },
    /// What is no state of a bucket.
    Unreadable,
}

impl Authority {
    /// Decides a batch, one take after the other.
    pub fn decide(&mut self, request: &TakeRequest, now: Instant) -> TakeReply {
        self.expire(now);
        TakeReply { takes: request.takes.iter().map(|take| self.take(take, now)).collect() }
    }

    /// How a charge's bucket stands. Changes nothing.
    pub fn standing(&self, charge: &Charge, now: Instant) -> Standing {
        let Limit::TokenBucket(quota) = charge.limit;
        self.settled(charge, now).standing(&quota, charge.cost, now)
    }

    /// Forgets a key, as a person who resets it does.
    pub fn reset(&mut self, key: &str) {
        self.keys.remove(key);
    }

    /// Somebody else has written to a key.
    pub fn spoil(&mut self, key: &str) {
        self.keys.insert(key.to_owned(), Kept::Unreadable);
    }

    /// Charges all that fits, or nothing where an enforced charge does not fit.
    fn take(&mut self, take: &Take, now: Instant) -> Taken {
        let charges = &take.charges;
        if charges.iter().any(|charge| matches!(self.keys.get(&charge.key), Some(Kept::Unreadable))) {
            return Taken::Failed { error: "unreadable state".to_owned() };
        }
        let fits = |charge: &Charge| self.standing(charge, now).fit == Fit::Now;
        let admitted = charges.iter().all(|charge| charge.shadow || fits(charge));
        let charges = charges.iter().map(|charge| self.charge(charge, admitted, now)).collect();
        Taken::Decided { admitted, charges }
    }

    fn charge(&mut self, charge: &Charge, admitted: bool, now: Instant) -> Charged {
        let Limit::TokenBucket(quota) = charge.limit;
        let before = self.standing(charge, now);
        let settled = self.settled(charge, now);
        if admitted && before.fit == Fit::Now {
            self.keep(&charge.key, settled.charge(&quota, charge.cost), now);
        } else if self.kept(&charge.key).is_some_and(|kept| kept.must_store(&settled)) {
            self.keep(&charge.key, settled, now);
        }
        let after = self.standing(charge, now);
        let wait_us = match before.fit {
            Fit::Now => Some(0),
            Fit::After(wait_us) => Some(wait_us),
            Fit::Never => None,
        };
        Charged { remaining: after.remaining, wait_us, full_us: after.full_us }
    }

    fn settled(&self, charge: &Charge, now: Instant) -> Bucket {
        let Limit::TokenBucket(quota) = charge.limit;
        let kept = self.kept(&charge.key);
        kept.map_or_else(|| Bucket::full(&quota, now), |bucket| bucket.settle(&quota, now))
    }

    fn kept(&self, key: &str) -> Option<Bucket> {
        match self.keys.get(key)? {
            Kept::Bucket { bucket, .. } => Some(*bucket),
            Kept::Unreadable => None,
        }
    }

    /// Keeps a state until the bucket is full, by a clock of milliseconds.
    fn keep(&mut self, key: &str, bucket: Bucket, now: Instant) {
        let full_us = bucket.full_at().micros_since(now);
        let expires_ms = now.as_micros() / 1_000 + full_us / 1_000 + 1;
        self.keys.insert(key.to_owned(), Kept::Bucket { bucket, expires_ms });
    }

    fn expire(&mut self, now: Instant) {
        self.keys.retain(|_, kept| match kept {
            Kept::Bucket { expires_ms, .. } => now.as_micros() / 1_000 <= *expires_ms,
            Kept::Unreadable => true,
        });
    }
}
