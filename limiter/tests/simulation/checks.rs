//! What must hold of every decision.

use core::time::Duration;
use std::collections::BTreeMap;

use limiter::decision::{Decision, Outcome, Verdict};
use limiter::lease;
use limiter::policy::{OnFailure, Policy, Sync};
use limiter::quota::TokenBucket;
use limiter::tally;

use crate::ledger::Ledger;
use crate::meter::Meter;
use crate::plan::{Arrival, Plan, SLOWEST_US, applies, cost, quota, store_key};

/// Which promise was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    /// More was admitted in some window than the formula says.
    Formula,
    /// What was spent had not been taken, or was taken twice.
    Books,
    /// A decision too many, too late, or that contradicts itself.
    Decision,
    /// Something grew beyond its bound, or did not end.
    Bound,
}

/// How.
#[derive(Clone, Debug)]
pub(crate) struct Violation {
    pub(crate) broken: Broken,
    pub(crate) what: String,
}

/// A request that has no decision yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) arrival: Arrival,
    pub(crate) arrived_us: u64,
    pub(crate) has_left: bool,
}

/// Ticks come so often.
pub(crate) const TICK_US: u64 = 10_000;

#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    pub(crate) unavailable: u64,
    pub(crate) unprotected: u64,
}

/// Whose admissions a meter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Counted {
    pub(crate) policy: usize,
    pub(crate) client: usize,
    /// For local policies; the greatest number for others.
    pub(crate) proxy: usize,
    /// Of all requests; else only of those that were decided at once.
    pub(crate) waits: bool,
}

pub(crate) struct Checks {
    timeout_us: u64,
    has_layers: bool,
    strangers: u64,
    is_answered: bool,
    is_acquainted: bool,
    meters: BTreeMap<Counted, Meter>,
    /// Admissions before count for nothing towards the formula of shared policies.
    shared_from_us: u64,
    pub(crate) ledger: Ledger,
    pub(crate) counts: Counts,
    pub(crate) violation: Option<Violation>,
}

impl Checks {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            timeout_us: u64::try_from(plan.timeout.as_micros()).unwrap(),
            has_layers: plan.policies.len() > 1,
            strangers: plan.strangers(),
            is_answered: plan.is_answered(),
            is_acquainted: plan.is_acquainted,
            meters: BTreeMap::new(),
            shared_from_us: 0,
            ledger: Ledger::new(plan.policies.iter().all(|policy| policy.sync == Sync::Async)),
            counts: Counts::default(),
            violation: None,
        }
    }

    /// Notes a broken promise; the first counts.
    pub(crate) fn fail(&mut self, broken: Broken, what: impl Into<String>) {
        self.violation.get_or_insert(Violation { broken, what: what.into() });
    }

    pub(crate) fn expect<T>(&mut self, broken: Broken, result: Result<T, String>) -> Option<T> {
        result.map_err(|what| self.fail(broken, what)).ok()
    }

    /// A request is decided.
    pub(crate) fn decide(&mut self, policies: &[Policy], open: Open, decision: &Decision, now_us: u64) {
        let waited_us = now_us - open.arrived_us;
        if waited_us > self.timeout_us + TICK_US {
            self.fail(Broken::Decision, format!("a request has waited {waited_us} µs"));
        }
        if open.has_left {
            self.fail(Broken::Decision, "a request is decided whose client has left");
        }
        if !is_consistent(policies, open.arrival.path, decision) {
            self.fail(Broken::Decision, format!("a decision contradicts itself: {decision:?}"));
        }
        match decision.verdict {
            Verdict::Refuse => self.counts.refused += 1,
            Verdict::Unavailable { .. } => self.counts.unavailable += 1,
            Verdict::Admit => self.counts.admitted += 1,
        }
        for mark in &decision.marks {
            match mark.outcome {
                Outcome::Admitted => self.admit(mark.policy, &policies[mark.policy], &open, now_us),
                Outcome::Unprotected => self.counts.unprotected += 1,
                _ => {}
            }
        }
    }

    fn admit(&mut self, index: usize, policy: &Policy, open: &Open, now_us: u64) {
        let arrival = &open.arrival;
        let is_local = policy.sync == Sync::Local;
        if !is_local {
            let paid = self.ledger.admit(&store_key(arrival.client, policy), cost(policy), must_ask(policy));
            self.expect(Broken::Books, paid);
        }
        let from_us = if is_local { 0 } else { self.shared_from_us };
        let proxy = if is_local { arrival.proxy } else { usize::MAX };
        let is_at_once = now_us == open.arrived_us;
        for waits in [true, false].into_iter().filter(|waits| *waits || is_at_once) {
            let place = Counted { policy: index, client: arrival.client, proxy, waits };
            let slack_us = self.slack_us(policy, waits);
            let metered = self.metered(policy);
            let new = || Meter::new(metered, slack_us, from_us);
            if let Err(parts) = self.meters.entry(place).or_insert_with(new).admit(cost(policy), now_us) {
                let excess = format!("{parts}/{} tokens too many", quota(policy).parts_per_token());
                self.fail(Broken::Formula, format!("{excess} in {place:?} for {arrival:?}"));
            }
        }
    }

    /// The T beyond its own length for which a window may admit.
    fn slack_us(&self, policy: &Policy, waits: bool) -> u64 {
        // The formulas hold of the moments when tokens are taken. Who waits for the store passes later, and
        // answers may bunch up, for as long as one is waited for.
        let wait_us = if waits { self.timeout_us + TICK_US } else { 0 };
        match policy.sync {
            Sync::Local | Sync::Lease(_) if !self.has_layers => self.base_slack_us(policy),
            _ => self.base_slack_us(policy) + wait_us,
        }
    }

    fn base_slack_us(&self, policy: &Policy) -> u64 {
        let micros = |span: Duration| u64::try_from(span.as_micros()).unwrap();
        match policy.sync {
            Sync::Local => 0,
            Sync::Exact(on_failure) => reunion_us(on_failure),
            Sync::Lease(on_failure) => micros(lease::ttl(&quota(policy))) + reunion_us(on_failure),
            Sync::Async => {
                let late_us = if self.is_answered { 0 } else { 2 * SLOWEST_US };
                let unknown_us =
                    micros(tally::interval(&quota(policy))) + self.timeout_us + TICK_US + late_us;
                (self.strangers - 1) * unknown_us
            }
        }
    }

    /// The limit that a policy's formula names over any span, with its slack beside it.
    fn metered(&self, policy: &Policy) -> TokenBucket {
        let quota = quota(policy);
        let (capacity, proxies) = (quota.capacity(), self.strangers);
        let (capacity, is_split) = match policy.sync {
            // Each proxy may let through a whole bucket that the others do not know of.
            Sync::Async => (capacity * proxies, !self.is_answered),
            // A share below one request lets one through.
            Sync::Exact(OnFailure::Share) if self.is_acquainted => {
                (capacity + capacity.max(proxies * cost(policy)), false)
            }
            // A proxy that has not heard of the others lately takes all for its share.
            Sync::Exact(OnFailure::Share) | Sync::Lease(OnFailure::Share) => {
                (capacity * (1 + proxies), !self.is_answered)
            }
            _ => (capacity, false),
        };
        // Proxies that cannot ask use their shares, while the others use all.
        let times = if is_split { 2 } else { 1 };
        let rate = format!("{}/{}", quota.rate().count() * times, unit(&quota));
        TokenBucket::new(capacity, rate.parse().unwrap()).unwrap()
    }

    /// The policies have other limits from now on. Messages from before may arrive unless they are `cut`, and
    /// what they do under the old limit is not measured.
    pub(crate) fn edit(&mut self, old: &[Policy], new: &[Policy], cut: bool, now_us: u64) {
        let metered: Vec<TokenBucket> = new.iter().map(|policy| self.metered(policy)).collect();
        for index in (0..new.len()).filter(|index| old[*index].limit != new[*index].limit) {
            let policy = &new[index];
            let is_strict = (cut && must_ask(policy)) || policy.sync == Sync::Local;
            let longest_us = SLOWEST_US + self.slack_us(policy, true);
            let from_us = if is_strict { now_us } else { now_us + longest_us };
            self.ledger.edit(policy, now_us, from_us);
            if !is_strict {
                self.meters.retain(|place, _| place.policy != index);
                self.shared_from_us = self.shared_from_us.max(from_us);
            }
            let slacks_us = [false, true].map(|waits| self.slack_us(policy, waits));
            for (place, meter) in self.meters.iter_mut().filter(|(place, _)| place.policy == index) {
                meter.edit(metered[index], slacks_us[usize::from(place.waits)]);
            }
        }
    }

    /// Whole tokens that the admissions leave of a local bucket.
    pub(crate) fn remaining(&mut self, place: Counted, now_us: u64) -> Option<u64> {
        self.meters.get_mut(&place).map(|meter| meter.remaining(now_us))
    }
}

/// Whether nothing passes that was not taken before.
pub(crate) fn must_ask(policy: &Policy) -> bool {
    policy.sync != Sync::Async && policy.sync.on_failure() != Some(OnFailure::Share)
}

/// For how long some proxies may still use their shares while others ask again.
fn reunion_us(on_failure: OnFailure) -> u64 {
    if on_failure == OnFailure::Share { 1_000_000 } else { 0 }
}

fn unit(quota: &TokenBucket) -> &'static str {
    match quota.rate().period().micros() {
        1_000_000 => "s",
        60_000_000 => "m",
        3_600_000_000 => "h",
        _ => "d",
    }
}

/// Every policy that applies has its mark, and all let the request pass and are charged, or none is.
fn is_consistent(policies: &[Policy], path: &str, decision: &Decision) -> bool {
    let marked: Vec<usize> = decision.marks.iter().map(|mark| mark.policy).collect();
    let applied: Vec<usize> = (0..policies.len()).filter(|index| applies(&policies[*index], path)).collect();
    let allowed: &[Outcome] = match decision.verdict {
        Verdict::Admit => &[Outcome::Admitted, Outcome::ShadowRefused, Outcome::Unprotected],
        Verdict::Refuse => &[Outcome::Refused, Outcome::ShadowRefused, Outcome::Spared],
        Verdict::Unavailable { .. } => &[Outcome::Unavailable, Outcome::ShadowRefused, Outcome::Spared],
    };
    marked == applied && decision.marks.iter().all(|mark| allowed.contains(&mark.outcome))
}
