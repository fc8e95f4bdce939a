//! Charging a request on every policy that can be counted here, or on none.

use super::Limiter;
use crate::applied::{Applied, Asks, Counted, Hold, admitted, failed, refused};
use crate::bucket::Fate;
use crate::decision::{Decision, Finding, Verdict};
use crate::leases::Found;
use crate::policy::Sync;
use crate::proxy::Proxy;
use crate::quota::TokenBucket;
use crate::request::Terms;
use crate::table::Slots;
use crate::time::Instant;

/// What has come of charging a request here.
pub(super) enum Charging {
    /// Everything it needs was taken here.
    Done,
    /// A policy denies; nothing is taken.
    Denied,
    /// The store is to be asked.
    Asks,
    /// Another request's answer about this key is to be waited for; nothing is taken.
    Behind(String),
}

impl Limiter {
    /// Takes what this proxy can count itself, all or nothing.
    pub(super) fn charge(
        &mut self,
        applied: &mut [Applied],
        may_ask: bool,
        has_waited: bool,
        slots: &mut dyn Slots,
        now: Instant,
    ) -> Charging {
        for one in applied.iter_mut() {
            one.start_anew();
            if matches!(one.terms, Terms::Blocked | Terms::NoIdentity) {
                one.finding = Finding::Blocks;
            }
        }
        let is_leased = |one: &&Applied| {
            one.counted(&self.policies).is_some_and(|counted| matches!(counted.sync, Sync::Lease(_)))
        };
        let behind = applied.iter().filter(is_leased).find(|one| self.flights.has(&one.key));
        if may_ask
            && !has_waited
            && let Some(one) = behind
        {
            return Charging::Behind(one.key.clone());
        }
        let mut is_denied = applied.iter().any(|one| one.refuses(&self.policies));
        // What is counted here comes first: it denies without a call.
        for one in applied.iter_mut() {
            is_denied |= self.charge_here(one, is_denied, slots, now);
        }
        for one in applied.iter_mut() {
            // One that has waited and finds nothing asks for its cost alone while another's question is under
            // way: else a worker would decide no more than a lease in each round trip.
            let may_ask_for_lease = may_ask && !self.flights.has(&one.key);
            is_denied |= self.charge_shared(one, is_denied, may_ask_for_lease, slots, now);
        }
        if is_denied {
            self.give_back(applied, slots, now);
            Charging::Denied
        } else if applied.iter().any(Applied::is_asked) {
            Charging::Asks
        } else {
            Charging::Done
        }
    }

    /// Charges a local bucket or a tally, or, for a request that is denied already, looks at it, so that the
    /// denial names every policy that denies. True where it denies.
    fn charge_here(
        &mut self,
        one: &mut Applied,
        is_denied: bool,
        slots: &mut dyn Slots,
        now: Instant,
    ) -> bool {
        let Some(counted) = one.counted(&self.policies) else { return false };
        let (quota, cost) = (counted.quota, counted.cost);
        match (counted.sync, is_denied) {
            (Sync::Exact(_) | Sync::Lease(_), _) => return false,
            (Sync::Local, true) => {
                one.finding = Finding::Stands(self.table.standing(slots, &one.key, &quota, cost, now));
            }
            (Sync::Local, false) => {
                one.finding = Finding::Stands(self.table.charge(slots, &one.key, &quota, cost, now));
                one.taken = (!one.finding.denies()).then_some(Hold::Bucket);
            }
            (Sync::Async, true) => {
                let proxy = &mut Proxy { table: &self.table, slots, now };
                one.finding = Finding::Stands(self.tallies.standing(proxy, &one.key, &quota, cost));
            }
            (Sync::Async, false) => {
                let is_away = self.breaker.is_open();
                if is_away {
                    self.breaker.on_wanted(now);
                }
                self.tally(one, quota, cost, is_away, slots, now);
            }
        }
        is_denied || one.refuses(&self.policies)
    }

    /// Counts a request by what is known here. `is_away`: the store cannot be asked.
    fn tally(
        &mut self,
        one: &mut Applied,
        quota: TokenBucket,
        cost: u64,
        is_away: bool,
        slots: &mut dyn Slots,
        now: Instant,
    ) {
        let proxy = &mut Proxy { table: &self.table, slots, now };
        let tallied = self.tallies.take(proxy, &one.key, &quota, cost, is_away);
        (one.finding, one.taken) = (Finding::Stands(tallied.standing), tallied.debit.map(Hold::Tally));
        one.is_held = false;
    }

    /// Charges a lease, or notes what the store is to be asked. True where it denies.
    fn charge_shared(
        &mut self,
        one: &mut Applied,
        is_denied: bool,
        may_ask: bool,
        slots: &mut dyn Slots,
        now: Instant,
    ) -> bool {
        let Some(counted) = one.counted(&self.policies).filter(|_| !is_denied) else { return false };
        let (quota, cost) = (counted.quota, counted.cost);
        match counted.sync {
            Sync::Local | Sync::Async => return false,
            Sync::Exact(_) => one.asks = Asks::Cost,
            Sync::Lease(_) => {
                match self.leases.take(
                    &mut Proxy { table: &self.table, slots, now },
                    &one.key,
                    &quota,
                    cost,
                    may_ask,
                ) {
                    Found::Taken(standing, ends) => {
                        one.finding = Finding::Stands(standing);
                        one.taken = Some(Hold::Lease { ends });
                    }
                    Found::Denied(standing) => one.finding = Finding::Stands(standing),
                    Found::Ask(ask) => one.asks = Asks::Lease(ask),
                    Found::Nothing => one.asks = Asks::Cost,
                }
            }
        }
        if counted.shares() {
            let proxy = &mut Proxy { table: &self.table, slots, now };
            if one.is_asked() && may_ask {
                one.report = self.tallies.report_along(proxy, &one.key, &quota);
            } else if let Some(errand) = self.leases.last_errand_about(&one.key) {
                // A steady client's requests ask nothing: what is left for the others is heard of by renewals alone.
                errand.report = self.tallies.report_along(proxy, &one.key, &quota);
            }
        }
        one.refuses(&self.policies)
    }

    /// Gives back what was taken here.
    pub(super) fn give_back(&mut self, applied: &mut [Applied], slots: &mut dyn Slots, now: Instant) {
        for one in applied.iter() {
            let Some(taken) = one.taken else { continue };
            let Some(counted) = one.counted(&self.policies) else { continue };
            let cost = counted.cost;
            match taken {
                Hold::Lease { ends } => self.leases.put_back(&one.key, cost, ends, now),
                Hold::Bucket | Hold::Tally(_) => {
                    let fate = if one.is_held { Fate::Release } else { Fate::Refund };
                    self.adjust(one, fate, slots, now);
                }
            }
        }
    }

    /// Keeps what was taken here for a request that is to wait, so that it can go back.
    pub(super) fn hold(&mut self, applied: &mut [Applied], slots: &mut dyn Slots, now: Instant) {
        for one in applied.iter_mut() {
            one.is_held = matches!(one.taken, Some(Hold::Bucket | Hold::Tally(_)));
            self.adjust(one, Fate::Hold, slots, now);
        }
    }

    /// What was taken here for a request that has waited stays taken.
    pub(super) fn confirm(&mut self, applied: &[Applied], slots: &mut dyn Slots, now: Instant) {
        for one in applied.iter().filter(|one| one.is_held) {
            self.adjust(one, Fate::Confirm, slots, now);
        }
    }

    fn adjust(&mut self, one: &Applied, fate: Fate, slots: &mut dyn Slots, now: Instant) {
        let Some(counted) = one.counted(&self.policies) else { return };
        let (quota, cost) = (counted.quota, counted.cost);
        match one.taken {
            Some(Hold::Bucket) => self.table.adjust(slots, &one.key, &quota, cost, fate, now),
            Some(Hold::Tally(debit)) => {
                let proxy = &mut Proxy { table: &self.table, slots, now };
                self.tallies.adjust(proxy, &one.key, &quota, cost, debit, fate);
            }
            Some(Hold::Lease { .. }) | None => {}
        }
    }

    /// Decides a request that the store was not asked about, or that got no answer.
    pub(super) fn failed(
        &mut self,
        applied: &mut [Applied],
        slots: &mut dyn Slots,
        now: Instant,
    ) -> Decision {
        // One that waited for another's answer has taken nothing yet.
        if !applied.iter().any(Applied::is_asked) {
            match self.charge(applied, false, false, slots, now) {
                Charging::Done => return admitted(applied),
                Charging::Denied => return refused(applied, &self.policies),
                Charging::Asks | Charging::Behind(_) => {}
            }
        }
        self.share(applied, slots, now);
        let decision = if applied.iter().any(|one| one.refuses(&self.policies)) {
            refused(applied, &self.policies)
        } else {
            failed(applied, &self.policies)
        };
        if decision.verdict == Verdict::Admit {
            self.confirm(applied, slots, now);
        } else {
            self.give_back(applied, slots, now);
        }
        decision
    }

    /// Decides for the store by this proxy's share where a policy wants that.
    fn share(&mut self, applied: &mut [Applied], slots: &mut dyn Slots, now: Instant) {
        for one in applied.iter_mut().filter(|one| one.is_asked()) {
            let Some(counted) = one.counted(&self.policies).filter(Counted::shares) else {
                continue;
            };
            let (quota, cost) = (counted.quota, counted.cost);
            one.asks = Asks::No;
            self.tally(one, quota, cost, true, slots, now);
        }
    }
}
