//! The reference model of the store: what `lua/token_bucket.lua` must answer and keep, from the rules of
//! [`crate::wire`] and [`crate::bucket`]. It stands in for companion and store in tests and simulations.

use std::collections::{BTreeMap, BTreeSet};

use crate::bucket::{Bucket, Fit, Standing};
use crate::quota::TokenBucket;
use crate::time::Instant;
use crate::wire::{
    Charge, Charged, LeaseAsk, Limit, MAX_LEASES, Return, Take, TakeReply, TakeRequest, Taken,
};

/// All keys of a store.
#[derive(Clone, Debug, Default)]
pub struct Authority {
    keys: BTreeMap<String, Kept>,
}

#[derive(Clone, Debug)]
enum Kept {
    /// A state, kept through the millisecond `expires_ms`.
    State { state: State, expires_ms: u64 },
    /// What is no state of a bucket.
    Unreadable,
}

/// What a key holds.
#[derive(Clone, Debug)]
struct State {
    bucket: Bucket,
    /// In the order of their grants.
    leases: Vec<Lease>,
}

/// A lease that is out: granted, not returned, not ended.
#[derive(Clone, Debug)]
struct Lease {
    holder: String,
    id: u64,
    tokens: u64,
    granted: Instant,
    ttl_us: u64,
}

/// A charge on its way through a decision.
struct Pending<'a> {
    charge: &'a Charge,
    quota: TokenBucket,
    /// Settled, and with the returns of the charge.
    state: State,
    /// Before anything is taken.
    standing: Standing,
    /// Whether `state` must be kept though nothing is taken.
    changed: bool,
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
        self.settled(charge, now).bucket.standing(&quota, charge.cost, now)
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
        if take.charges.iter().any(|charge| matches!(self.keys.get(&charge.key), Some(Kept::Unreadable))) {
            return Taken::Failed { error: "unreadable state".to_owned() };
        }
        let pending: Vec<_> = take.charges.iter().map(|charge| self.pending(charge, now)).collect();
        let admitted = pending.iter().all(|pending| pending.charge.shadow || pending.fits());
        let charges = pending.into_iter().map(|pending| self.charge(pending, admitted, now)).collect();
        Taken::Decided { admitted, charges }
    }

    /// Settles a charge's state and takes its returns back.
    fn pending<'a>(&self, charge: &'a Charge, now: Instant) -> Pending<'a> {
        let Limit::TokenBucket(quota) = charge.limit;
        let mut state = self.settled(charge, now);
        let must_store = self.kept(&charge.key).is_some_and(|kept| kept.bucket.must_store(&state.bucket));
        let returned = charge.lease.as_ref().is_some_and(|ask| state.take_back(ask, &quota));
        let standing = state.bucket.standing(&quota, charge.cost, now);
        Pending { charge, quota, state, standing, changed: must_store || returned }
    }

    fn charge(&mut self, pending: Pending<'_>, admitted: bool, now: Instant) -> Charged {
        let Pending { charge, quota, mut state, standing, mut changed } = pending;
        let mut granted = 0;
        if admitted && standing.fit == Fit::Now {
            state.bucket = state.bucket.charge(&quota, charge.cost);
            granted = charge.lease.as_ref().map_or(0, |ask| state.grant(ask, &quota));
            changed |= charge.cost > 0 || granted > 0;
        }
        let after = state.bucket.standing(&quota, charge.cost, now);
        if changed {
            self.keep(&charge.key, state, now);
        }
        let wait_us = match standing.fit {
            Fit::Now => Some(0),
            Fit::After(wait_us) => Some(wait_us),
            Fit::Never => None,
        };
        Charged { remaining: after.remaining, wait_us, full_us: after.full_us, granted }
    }

    fn settled(&self, charge: &Charge, now: Instant) -> State {
        let Limit::TokenBucket(quota) = charge.limit;
        self.kept(&charge.key).map_or_else(
            || State { bucket: Bucket::full(&quota, now), leases: Vec::new() },
            |kept| kept.settle(&quota, now),
        )
    }

    fn kept(&self, key: &str) -> Option<&State> {
        match self.keys.get(key)? {
            Kept::State { state, .. } => Some(state),
            Kept::Unreadable => None,
        }
    }

    /// Keeps a state until the bucket is full, by a clock of milliseconds. A full bucket is no state.
    fn keep(&mut self, key: &str, state: State, now: Instant) {
        if state.bucket.spent == 0 {
            self.keys.remove(key);
            return;
        }
        let full_us = state.bucket.full_at().micros_since(now);
        let expires_ms = now.as_micros() / 1_000 + full_us / 1_000 + 1;
        self.keys.insert(key.to_owned(), Kept::State { state, expires_ms });
    }

    fn expire(&mut self, now: Instant) {
        self.keys.retain(|_, kept| match kept {
            Kept::State { expires_ms, .. } => now.as_micros() / 1_000 <= *expires_ms,
            Kept::Unreadable => true,
        });
    }
}

impl Pending<'_> {
    fn fits(&self) -> bool {
        self.standing.fit == Fit::Now
    }
}

impl State {
    /// The state at `now`, with the leases that have not ended.
    fn settle(&self, quota: &TokenBucket, now: Instant) -> Self {
        let bucket = self.bucket.settle(quota, now);
        // Time started anew: what the leases say of it is worth nothing.
        let healed = bucket.updated < self.bucket.updated;
        // What time has refilled since a lease was granted cannot be told any more.
        let rate = |bucket: &Bucket| (bucket.parts_per_token, bucket.parts_per_micro);
        let edited = rate(&bucket) != rate(&self.bucket);
        let out =
            |lease: &&Lease| !healed && !edited && bucket.updated.micros_since(lease.granted) < lease.ttl_us;
        Self { bucket, leases: self.leases.iter().filter(out).cloned().collect() }
    }

    /// Takes back what `ask` returns; whether any of it was out.
    fn take_back(&mut self, ask: &LeaseAsk, quota: &TokenBucket) -> bool {
        let before = self.leases.len();
        for back in &ask.returns {
            let lease = self.leases.iter().position(|lease| lease.is(&ask.holder, back.id));
            if let Some(lease) = lease.map(|index| self.leases.remove(index)) {
                let credit = lease.credit(*back, quota, self.bucket.updated);
                self.bucket.spent = self.bucket.spent.saturating_sub(credit);
            }
        }
        self.leases.len() < before
    }

    /// Grants what can be spared of what `ask` wants; how many tokens that are.
    fn grant(&mut self, ask: &LeaseAsk, quota: &TokenBucket) -> u64 {
        // A request that came twice is granted once.
        if self.leases.len() >= MAX_LEASES || self.leases.iter().any(|lease| lease.is(&ask.holder, ask.id)) {
            return 0;
        }
        let holders = self.leases.iter().map(|lease| lease.holder.as_str());
        let others: BTreeSet<_> = holders.filter(|holder| *holder != ask.holder).collect();
        let left = quota.parts().saturating_sub(self.bucket.spent) / quota.parts_per_token();
        let tokens = ask.want.min(left / (2 * (others.len() as u64 + 1)));
        if tokens > 0 {
            self.bucket = self.bucket.charge(quota, tokens);
            self.leases.push(Lease {
                holder: ask.holder.clone(),
                id: ask.id,
                tokens,
                granted: self.bucket.updated,
                ttl_us: ask.ttl_us,
            });
        }
        tokens
    }
}

impl Lease {
    fn is(&self, holder: &str, id: u64) -> bool {
        self.holder == holder && self.id == id
    }

    /// The parts that a return at `now` gives back to the bucket.
    ///
    /// Time has refilled the bucket for what was out, too. Giving that back would hand out this time
    /// twice: what can still be given back must never be more than what is spent.
    fn credit(&self, back: Return, quota: &TokenBucket, now: Instant) -> u64 {
        // A capacity that was lowered bounds the tokens too, as it does the spent ones.
        let tokens = back.tokens.min(self.tokens).min(quota.capacity());
        let refilled = now.micros_since(self.granted).saturating_mul(quota.parts_per_micro());
        (tokens * quota.parts_per_token()).saturating_sub(refilled)
    }
}
