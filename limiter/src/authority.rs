//! The reference model of the store: what `lua/token_bucket.lua` must answer and keep, from the rules of
//! [`crate::wire`] and [`crate::bucket`]. It stands in for companion and store in tests and simulations.

mod state;

use std::collections::BTreeMap;

use crate::bucket::{Fit, Standing};
use crate::quota::TokenBucket;
use crate::time::Instant;
use crate::wire::{Charge, Charged, Limit, Take, TakeReply, TakeRequest, Taken};
use state::State;

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

/// A charge on its way through a decision.
struct Pending<'a> {
    charge: &'a Charge,
    quota: TokenBucket,
    /// Settled, and with what the charge returns and reports.
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

    /// Settles a charge's state, takes its returns back and its report in.
    fn pending<'a>(&self, charge: &'a Charge, now: Instant) -> Pending<'a> {
        let Limit::TokenBucket(quota) = charge.limit;
        let mut state = self.settled(charge, now);
        let must_store = self.kept(&charge.key).is_some_and(|kept| kept.bucket.must_store(&state.bucket));
        let returned = charge.lease.as_ref().is_some_and(|ask| state.take_back(ask, &quota));
        let reported = charge.report.as_ref().is_some_and(|report| state.take_in(report, &quota));
        let standing = state.bucket.standing(&quota, charge.cost, now);
        Pending { charge, quota, state, standing, changed: must_store || returned || reported }
    }

    fn charge(&mut self, pending: Pending<'_>, admitted: bool, now: Instant) -> Charged {
        let Pending { charge, quota, mut state, standing, mut changed } = pending;
        let mut granted = 0;
        if admitted && standing.fit == Fit::Now {
            state.bucket = state.bucket.charge(&quota, charge.cost);
            granted = charge.lease.as_ref().map_or(0, |ask| state.grant(ask, &quota));
            changed |= charge.cost > 0 || granted > 0;
        }
        let proxies = charge.report.as_ref().map_or(0, |report| state.proxies(report));
        let after = state.bucket.standing(&quota, charge.cost, now);
        if changed {
            self.keep(&charge.key, state, now);
        }
        let wait_us = match standing.fit {
            Fit::Now => Some(0),
            Fit::After(wait_us) => Some(wait_us),
            Fit::Never => None,
        };
        Charged { remaining: after.remaining, wait_us, full_us: after.full_us, granted, proxies }
    }

    fn settled(&self, charge: &Charge, now: Instant) -> State {
        let Limit::TokenBucket(quota) = charge.limit;
        self.kept(&charge.key).map_or_else(|| State::full(&quota, now), |kept| kept.settle(&quota, now))
    }

    fn kept(&self, key: &str) -> Option<&State> {
        match self.keys.get(key)? {
            Kept::State { state, .. } => Some(state),
            Kept::Unreadable => None,
        }
    }

    /// Keeps a state for as long as it matters, by a clock of milliseconds.
    fn keep(&mut self, key: &str, state: State, now: Instant) {
        let Some(until) = state.matters_until() else {
            self.keys.remove(key);
            return;
        };
        let expires_ms = now.as_micros() / 1_000 + until.micros_since(now) / 1_000 + 1;
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
