//! The per-request state machine of one worker.
//!
//! A request is checked against all policies that apply and charged on all or on none. What this proxy
//! counts itself is decided first: a denial there costs no call. Then its tokens are taken, the companion
//! is asked for the rest, and where that denies, the tokens go back.

use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;

pub use crate::calls::{CallId, RequestId};
use crate::calls::{Calls, MAX_WAITING};
use crate::decision::{Decision, Finding, Mark, Outcome, Verdict};
use crate::policy::{Limit, OnFailure, Policy, Sync};
use crate::quota::TokenBucket;
use crate::request::{Attributes, demands};
use crate::table::{Slots, Table};
use crate::time::Instant;
use crate::wire::{self, Charge, Charged, Take, TakeReply, TakeRequest, Taken};

/// How long after its deadline a call's answer counts as lost.
const LOST_AFTER: Duration = Duration::from_secs(1);

/// What comes of a request at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is decided.
    Decided(Decision),
    /// It waits for the companion; an [`Effect::Decide`] will name it.
    Waits,
}

/// What the caller is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Post this body to [`wire::TAKE_PATH`], and say how it ended.
    Call {
        /// Names the call in [`Limiter::on_reply`] or [`Limiter::on_call_failed`].
        call: CallId,
        /// JSON.
        body: Vec<u8>,
    },
    /// Let a waiting request go on, or answer it.
    Decide {
        /// The request.
        request: RequestId,
        /// What becomes of it.
        decision: Decision,
    },
}

/// One worker's limiter.
#[derive(Debug)]
pub struct Limiter {
    policies: Rc<[Policy]>,
    table: Table,
    timeout: Duration,
    calls: Calls,
    waiting: BTreeMap<RequestId, Waiting>,
    evictions: u64,
}

/// A policy that applies to a request.
#[derive(Debug)]
struct Applied {
    policy: usize,
    key: String,
    finding: Finding,
    /// Tokens that were taken from a local bucket.
    taken: bool,
}

#[derive(Debug)]
struct Waiting {
    applied: Vec<Applied>,
    deadline: Instant,
    /// The client has left: the tokens are still accounted for, but there is nobody to answer.
    is_gone: bool,
}

impl Limiter {
    /// A limiter of `policies`, whose local buckets are in `table`; no request waits longer than `timeout`.
    pub fn new(policies: Rc<[Policy]>, table: Table, timeout: Duration) -> Self {
        Self { policies, table, timeout, calls: Calls::default(), waiting: BTreeMap::new(), evictions: 0 }
    }

    /// The policies, which the marks of a decision name by index.
    pub fn policies(&self) -> &Rc<[Policy]> {
        &self.policies
    }

    /// True while a request or a call has a deadline that [`Limiter::on_tick`] watches.
    pub fn needs_tick(&self) -> bool {
        !self.waiting.is_empty() || !self.calls.is_idle()
    }

    /// Local buckets given up before they were full, since this was last asked.
    pub fn take_evictions(&mut self) -> u64 {
        core::mem::take(&mut self.evictions)
    }

    /// A request has arrived. Ids in use must differ.
    pub fn on_request(
        &mut self,
        request: RequestId,
        attributes: &mut dyn Attributes,
        slots: &mut dyn Slots,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) -> Step {
        let mut applied: Vec<Applied> = demands(&self.policies, attributes)
            .into_iter()
            .map(|demand| Applied {
                policy: demand.policy,
                key: demand.key,
                finding: Finding::Unknown,
                taken: false,
            })
            .collect();
        if !self.take_local(&mut applied, slots, now) {
            return Step::Decided(self.refused(&applied));
        }
        if !applied.iter().any(|one| exact_of(&self.policies, one).is_some()) {
            return Step::Decided(admitted(&applied));
        }
        if self.waiting.len() >= MAX_WAITING {
            return Step::Decided(self.failed(&applied, slots, now));
        }
        let deadline = now.after(self.timeout);
        self.waiting.insert(request, Waiting { applied, deadline, is_gone: false });
        self.calls.push(request);
        self.make_calls(now, effects);
        Step::Waits
    }

    /// The companion has answered a call.
    ///
    /// An answer that does not fit the question counts as a failure.
    pub fn on_reply(
        &mut self,
        call: CallId,
        reply: TakeReply,
        slots: &mut dyn Slots,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let Some(requests) = self.calls.end(call) else { return };
        let answers: Vec<Option<Taken>> = if reply.takes.len() == requests.len() {
            reply.takes.into_iter().map(Some).collect()
        } else {
            requests.iter().map(|_| None).collect()
        };
        for (request, answer) in requests.into_iter().zip(answers) {
            self.settle(request, answer, slots, now, effects);
        }
        self.make_calls(now, effects);
    }

    /// A call could not be made, timed out, or its answer was none.
    pub fn on_call_failed(
        &mut self,
        call: CallId,
        slots: &mut dyn Slots,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        let Some(requests) = self.calls.end(call) else { return };
        for request in requests {
            self.settle(request, None, slots, now, effects);
        }
        self.make_calls(now, effects);
    }

    /// Time has passed: requests that have waited too long are decided as failures.
    pub fn on_tick(&mut self, slots: &mut dyn Slots, now: Instant, effects: &mut Vec<Effect>) {
        let late: Vec<RequestId> = self
            .waiting
            .iter()
            .filter(|(_, waiting)| waiting.deadline <= now)
            .map(|(request, _)| *request)
            .collect();
        for request in late {
            self.calls.withdraw(request);
            self.settle(request, None, slots, now, effects);
        }
        self.calls.forget_lost(now);
        self.make_calls(now, effects);
    }

    /// The client of a request has left. Does nothing for a request that does not wait.
    pub fn on_gone(&mut self, request: RequestId, slots: &mut dyn Slots, now: Instant) {
        let Some(waiting) = self.waiting.get_mut(&request) else { return };
        waiting.is_gone = true;
        // What was asked may have been charged, so it stays charged everywhere. What was not asked goes back.
        if self.calls.withdraw(request)
            && let Some(waiting) = self.waiting.remove(&request)
        {
            self.give_back(&waiting.applied, slots, now);
        }
    }

    /// Takes what this proxy counts itself, all or nothing; false where a policy denies.
    fn take_local(&mut self, applied: &mut [Applied], slots: &mut dyn Slots, now: Instant) -> bool {
        for one in applied.iter_mut() {
            if self.policies.get(one.policy).is_some_and(|policy| policy.limit == Limit::Blocked) {
                one.finding = Finding::Blocks;
            }
        }
        let mut is_denied = self.is_denied(applied);
        for one in applied.iter_mut() {
            let Some((quota, cost)) = local_of(&self.policies, one) else { continue };
            if is_denied {
                // Only looked at, so that the denial names every policy that denies.
                let standing = self.table.standing(slots, &one.key, &quota, cost, now);
                one.finding = Finding::Stands(standing);
                continue;
            }
            let change = self.table.charge(slots, &one.key, &quota, cost, now);
            self.evictions += u64::from(change.evicted);
            one.finding = Finding::Stands(change.standing);
            one.taken = !one.finding.denies();
            is_denied = !one.taken && !is_shadow(&self.policies, one);
        }
        if is_denied {
            self.give_back(applied, slots, now);
        }
        !is_denied
    }

    fn give_back(&self, applied: &[Applied], slots: &mut dyn Slots, now: Instant) {
        for one in applied.iter().filter(|one| one.taken) {
            if let Some((quota, cost)) = local_of(&self.policies, one) {
                self.table.refund(slots, &one.key, &quota, cost, now);
            }
        }
    }

    /// Decides a waiting request by the companion's answer; `None` is no answer.
    fn settle(
        &mut self,
        request: RequestId,
        answer: Option<Taken>,
        slots: &mut dyn Slots,
        now: Instant,
        effects: &mut Vec<Effect>,
    ) {
        // Decided already, at its deadline: what the answer charged stays charged.
        let Some(mut waiting) = self.waiting.remove(&request) else { return };
        let decision = match answer {
            Some(Taken::Decided { admitted: is_admitted, charges })
                if self.note(&mut waiting.applied, is_admitted, &charges) =>
            {
                if is_admitted {
                    admitted(&waiting.applied)
                } else {
                    self.give_back(&waiting.applied, slots, now);
                    self.refused(&waiting.applied)
                }
            }
            _ => self.failed(&waiting.applied, slots, now),
        };
        if !waiting.is_gone {
            effects.push(Effect::Decide { request, decision });
        }
    }

    /// Notes how the exact policies stand; false where the answer has another number of them, or contradicts
    /// itself: a request is admitted if and only if no policy refuses it.
    fn note(&self, applied: &mut [Applied], is_admitted: bool, charges: &[Charged]) -> bool {
        let exact = applied.iter().filter(|one| exact_of(&self.policies, one).is_some()).count();
        if exact != charges.len() {
            return false;
        }
        let mut charges = charges.iter();
        for one in applied.iter_mut().filter(|one| exact_of(&self.policies, one).is_some()) {
            if let Some(charged) = charges.next() {
                one.finding = Finding::Stands((*charged).into());
            }
        }
        is_admitted != self.is_denied(applied)
    }

    fn make_calls(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        let lost_at = now.after(self.timeout).after(LOST_AFTER);
        while let Some((call, requests)) = self.calls.next(lost_at) {
            let takes = requests.iter().map(|request| self.take_of(*request)).collect();
            effects.push(Effect::Call { call, body: TakeRequest { takes }.write() });
        }
    }

    fn take_of(&self, request: RequestId) -> Take {
        let applied = self.waiting.get(&request).map_or(&[][..], |waiting| &waiting.applied);
        let charges = applied
            .iter()
            .filter_map(|one| {
                let (policy, quota, _) = exact_of(&self.policies, one)?;
                Some(Charge {
                    key: one.key.clone(),
                    limit: wire::Limit::TokenBucket(quota),
                    cost: policy.cost,
                    shadow: policy.shadow,
                })
            })
            .collect();
        Take { charges }
    }

    fn is_denied(&self, applied: &[Applied]) -> bool {
        applied.iter().any(|one| one.finding.denies() && !is_shadow(&self.policies, one))
    }

    fn refused(&self, applied: &[Applied]) -> Decision {
        decision(Verdict::Refuse, applied, |one| {
            match (one.finding.denies(), is_shadow(&self.policies, one)) {
                (true, false) => Outcome::Refused,
                (true, true) => Outcome::ShadowRefused,
                (false, _) => Outcome::Spared,
            }
        })
    }

    /// The companion cannot be asked: each policy's `on_failure` says what becomes of the request.
    fn failed(&self, applied: &[Applied], slots: &mut dyn Slots, now: Instant) -> Decision {
        let closed = |one: &Applied| match exact_of(&self.policies, one) {
            Some((policy, _, OnFailure::Closed { retry_after })) if !policy.shadow => Some(retry_after),
            _ => None,
        };
        let unprotected = |one: &Applied, outcome| {
            if exact_of(&self.policies, one).is_some() { Outcome::Unprotected } else { outcome }
        };
        match applied.iter().filter_map(closed).max() {
            None => decision(Verdict::Admit, applied, |one| {
                let here = if one.finding.denies() { Outcome::ShadowRefused } else { Outcome::Admitted };
                unprotected(one, here)
            }),
            Some(retry_after) => {
                self.give_back(applied, slots, now);
                decision(Verdict::Unavailable { retry_after }, applied, |one| {
                    if closed(one).is_some() { Outcome::Unavailable } else { Outcome::Spared }
                })
            }
        }
    }
}

fn admitted(applied: &[Applied]) -> Decision {
    decision(Verdict::Admit, applied, |one| {
        if one.finding.denies() { Outcome::ShadowRefused } else { Outcome::Admitted }
    })
}

fn decision(verdict: Verdict, applied: &[Applied], outcome: impl Fn(&Applied) -> Outcome) -> Decision {
    let marks = applied
        .iter()
        .map(|one| {
            let outcome = outcome(one);
            // What was given back no longer stands as it was noted.
            let standing =
                if one.taken && outcome == Outcome::Spared { None } else { one.finding.standing() };
            Mark { policy: one.policy, outcome, standing }
        })
        .collect();
    Decision { verdict, marks }
}

/// The bucket of a policy that this proxy counts, and the cost.
fn local_of(policies: &[Policy], one: &Applied) -> Option<(TokenBucket, u64)> {
    match policies.get(one.policy)? {
        Policy { limit: Limit::TokenBucket(quota), sync: Sync::Local, cost, .. } => Some((*quota, *cost)),
        _ => None,
    }
}

/// The bucket of a policy that the store counts.
fn exact_of<'a>(policies: &'a [Policy], one: &Applied) -> Option<(&'a Policy, TokenBucket, OnFailure)> {
    match policies.get(one.policy)? {
        policy @ Policy { limit: Limit::TokenBucket(quota), sync: Sync::Exact(on_failure), .. } => {
            Some((policy, *quota, *on_failure))
        }
        _ => None,
    }
}

fn is_shadow(policies: &[Policy], one: &Applied) -> bool {
    policies.get(one.policy).is_some_and(|policy| policy.shadow)
}
