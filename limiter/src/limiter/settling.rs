//! What becomes of requests that wait: an answer comes, none comes, or nobody is there to be answered.

use super::{Effect, Limiter};
use crate::applied::{Asks, admitted, refused};
use crate::calls::{RequestId, Sent, SentCharge, UnderWay};
use crate::decision::Finding;
use crate::leases::Grant;
use crate::proxy::Proxy;
use crate::purse::Piece;
use crate::questions::refill_us;
use crate::table::Slots;
use crate::tally::Heard;
use crate::time::Instant;
use crate::wire::{Charged, Taken};

impl Limiter {
    /// Takes in what an answer says about leases and reports, whoever asked and whether or not that still waits.
    pub(super) fn note(
        &mut self,
        sent: &Sent,
        is_admitted: bool,
        charges: &[Charged],
        sent_at: Instant,
        slots: &mut dyn Slots,
        now: Instant,
    ) {
        for (asked, charged) in sent.charges.iter().zip(charges) {
            let SentCharge { key, quota, cost, .. } = asked;
            let mut proxy = Proxy { table: &self.table, slots, now };
            if let Some(reported) = asked.reported {
                let Charged { full_us, proxies, .. } = *charged;
                self.tallies.on_heard(&mut proxy, key, quota, Heard { sent_at, reported, full_us, proxies });
            }
            let Some(lease) = asked.lease else { continue };
            // Spans count from when the question left: a delay on the way makes us ask early.
            let refused_us = match charged.wait_us {
                Some(wait_us @ 1..) => Some(wait_us),
                _ if is_admitted => {
                    let piece =
                        Piece { id: lease.id, tokens: charged.granted, ends: sent_at.after(lease.ttl) };
                    let grant = Grant { piece, is_wanted: lease.is_wanted, rest: charged.remaining };
                    self.leases.on_granted(&mut proxy, key, quota, grant);
                    // Where that was the last token, the next request need not ask to be refused.
                    let is_last = charged.granted == 0 && charged.remaining < *cost;
                    is_last.then(|| refill_us(quota, *cost, charged.full_us))
                }
                _ => None,
            };
            if let Some(refused_us) = refused_us {
                let fits_at = sent_at.after_micros(refused_us);
                self.leases.on_refused(&mut proxy, key, quota, *cost, fits_at, charged.remaining);
            }
        }
    }

    /// The requests that waited for an answer to `sent`.
    pub(super) fn end_flights(&mut self, sent: &Sent) -> Vec<RequestId> {
        if sent.request.is_none() {
            return Vec::new();
        }
        let leased = sent.charges.iter().filter(|charge| charge.lease.is_some());
        leased.flat_map(|charge| self.flights.end(&charge.key)).collect()
    }

    /// The requests that waited for an answer that does not come share its fate.
    pub(super) fn fail_flights(
        &mut self,
        sent: &Sent,
        slots: &mut dyn Slots,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        for request in self.end_flights(sent) {
            self.settle(request, None, slots, now, effects);
        }
    }

    /// A call has brought no decisions.
    pub(super) fn fail(
        &mut self,
        call: UnderWay,
        slots: &mut dyn Slots,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let UnderWay { takes, sent_at, .. } = call;
        let last = takes.first().and_then(|sent| sent.charges.first());
        self.unanswered = last.map(|charge| (charge.key.clone(), charge.quota));
        for sent in takes {
            self.fail_flights(&sent, slots, now, effects);
            if let Some(request) = sent.request {
                self.settle(request, None, slots, now, effects);
            }
        }
        if self.breaker.on_failure(sent_at, now) {
            self.stop_waiting(slots, now, effects);
        }
    }

    /// The breaker has opened: whatever has not been asked yet is not asked.
    fn stop_waiting(&mut self, slots: &mut dyn Slots, now: Instant, effects: &mut Vec<Effect>) {
        let asked = self.calls.requests_under_way();
        self.calls.clear();
        self.orphans.clear();
        let waiting = &self.waiting;
        self.flights.dismiss(|key| {
            let mut applied = asked.iter().filter_map(|request| waiting.get(request));
            applied.any(|waiting| waiting.applied.iter().any(|one| one.key == key && one.is_asked()))
        });
        let idle: Vec<RequestId> =
            self.waiting.keys().filter(|request| !asked.contains(request)).copied().collect();
        for request in idle {
            self.settle(request, None, slots, now, effects);
        }
    }

    /// Nobody is to answer this request any more; true where the store was not asked.
    pub(super) fn abandon(&mut self, request: RequestId) -> bool {
        let orphans = self.orphans.len();
        self.orphans.retain(|other| *other != request);
        let was_behind = self.flights.leave(request) || self.orphans.len() < orphans;
        let was_queued = self.calls.withdraw(request);
        if was_queued && let Some(waiting) = self.waiting.get(&request) {
            // Its questions are not asked, so nobody waits for their answers: the next one behind must ask.
            let keys: Vec<String> = waiting
                .applied
                .iter()
                .filter(|one| matches!(one.asks, Asks::Lease(_)))
                .map(|one| one.key.clone())
                .collect();
            for key in keys {
                self.orphans.extend(self.flights.end(&key));
            }
        }
        was_queued || was_behind
    }

    /// Decides a waiting request by the companion's answer; `None` is no answer.
    pub(super) fn settle(
        &mut self,
        request: RequestId,
        answer: Option<Taken>,
        slots: &mut dyn Slots,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        // Decided already, at its deadline: what the answer charged stays charged.
        let Some(mut waiting) = self.waiting.remove(&request) else { return };
        let applied = &mut waiting.applied;
        let decision = match answer {
            Some(Taken::Decided { admitted: is_admitted, charges }) => {
                let asked = applied.iter_mut().filter(|one| one.is_asked());
                for (one, charged) in asked.zip(charges) {
                    // What was granted is this client's to spend, as far as it is concerned.
                    let remaining = charged.remaining.saturating_add(charged.granted);
                    one.finding = Finding::Stands(Charged { remaining, ..charged }.into());
                }
                if is_admitted {
                    self.confirm(applied, slots, now);
                    admitted(applied)
                } else {
                    self.give_back(applied, slots, now);
                    refused(applied, &self.policies)
                }
            }
            _ => self.failed(applied, slots, now),
        };
        if !waiting.is_gone {
            effects.push(Effect::Decide { request, decision });
        }
    }
}
