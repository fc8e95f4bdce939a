//! The per-request state machine of one worker.
//!
//! A request is checked against all policies that apply and charged on all or on none. What this proxy can
//! count itself, in local buckets and from leases, is decided first: a denial there costs no call. Then the
//! companion is asked for the rest, and where that denies, what was taken goes back.

use core::time::Duration;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use crate::applied::{Applied, Asks, admitted, failed, refused};
pub use crate::calls::{CallId, RequestId};
use crate::calls::{Calls, MAX_WAITING, Question, Sent, SentCharge, SentLease};
use crate::decision::{Decision, Finding};
use crate::leases::{Found, Grant, Leases, Proxy, Renewal};
use crate::policy::{Limit, Policy, Sync};
use crate::purse::Piece;
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
    leases: Leases,
    calls: Calls,
    waiting: BTreeMap<RequestId, Waiting>,
    /// Leased keys that a request of this worker is asking about, and the requests that wait for its answer,
    /// first come first served.
    flights: BTreeMap<String, VecDeque<RequestId>>,
    /// Requests whose turn it is to ask, since the one that they waited for asks no more.
    orphans: Vec<RequestId>,
    evictions: u64,
}

#[derive(Debug)]
struct Waiting {
    applied: Vec<Applied>,
    deadline: Instant,
    /// The client has left: the tokens are still accounted for, but there is nobody to answer.
    is_gone: bool,
    /// It has waited for another request's answer once, and does not wait for a second one.
    has_waited: bool,
}

/// What has come of charging a request here.
enum Charging {
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
    /// A limiter of `policies`, whose local buckets and leases are in `table`; no request waits longer than
    /// `timeout`. `holder` names this proxy to the store: letters and digits, its own and the same in all of
    /// its workers.
    pub fn new(policies: Rc<[Policy]>, table: Table, timeout: Duration, holder: String) -> Self {
        Self {
            policies,
            table,
            timeout,
            leases: Leases::new(holder, timeout),
            calls: Calls::default(),
            waiting: BTreeMap::new(),
            flights: BTreeMap::new(),
            orphans: Vec::new(),
            evictions: 0,
        }
    }

    /// The policies, which the marks of a decision name by index.
    pub fn policies(&self) -> &Rc<[Policy]> {
        &self.policies
    }

    /// True while a request, a call or a lease has a deadline that [`Limiter::on_tick`] watches.
    pub fn needs_tick(&self) -> bool {
        // Orphans are among the waiting.
        !self.waiting.is_empty() || !self.calls.is_idle() || self.leases.has_due()
    }

    /// Entries of the table given up that were worth something, since this was last asked.
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
        let applied = demands(&self.policies, attributes).map(Applied::new).collect();
        let deadline = now.after(self.timeout);
        let waiting = Waiting { applied, deadline, is_gone: false, has_waited: false };
        let decision = self.advance(request, waiting, slots, now);
        self.make_calls(now, effects);
        decision.map_or(Step::Waits, Step::Decided)
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
        let Some(under_way) = self.calls.end(call) else { return };
        let answers: Vec<Option<Taken>> = if reply.takes.len() == under_way.takes.len() {
            reply.takes.into_iter().map(Some).collect()
        } else {
            under_way.takes.iter().map(|_| None).collect()
        };
        let mut behind = Vec::new();
        for (sent, answer) in under_way.takes.into_iter().zip(answers) {
            // What cannot be decided is one take's misfortune: those behind it ask for themselves.
            let is_answer = answer.as_ref().is_some_and(|answer| fits(&sent, answer) || is_failed(answer));
            if is_answer {
                behind.extend(self.end_flights(&sent));
            } else {
                self.fail_flights(&sent, slots, now, effects);
            }
            let answer = answer.filter(|answer| fits(&sent, answer));
            if let Some(Taken::Decided { admitted, charges }) = &answer {
                self.note_leases(&sent, *admitted, charges, under_way.sent_at, slots, now);
            }
            if let Some(request) = sent.request {
                self.settle(request, answer, slots, now, effects);
            }
        }
        for request in behind {
            self.go_on(request, slots, now, effects);
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
        let Some(under_way) = self.calls.end(call) else { return };
        self.fail(under_way.takes, slots, now, effects);
        self.make_calls(now, effects);
    }

    /// Time has passed: requests that have waited too long are decided as failures, and leases near their
    /// end go back.
    pub fn on_tick(&mut self, slots: &mut dyn Slots, now: Instant, effects: &mut Vec<Effect>) {
        let is_late =
            |(request, waiting): (&RequestId, &Waiting)| (waiting.deadline <= now).then_some(*request);
        let late: Vec<RequestId> = self.waiting.iter().filter_map(is_late).collect();
        for request in late {
            self.abandon(request);
            self.settle(request, None, slots, now, effects);
        }
        for request in core::mem::take(&mut self.orphans) {
            self.go_on(request, slots, now, effects);
        }
        let lost = self.calls.forget_lost(now);
        self.fail(lost, slots, now, effects);
        self.leases.on_tick(&mut Proxy { table: &self.table, slots, now });
        self.make_calls(now, effects);
    }

    /// The client of a request has left. Does nothing for a request that does not wait.
    pub fn on_gone(&mut self, request: RequestId, slots: &mut dyn Slots, now: Instant) {
        let Some(waiting) = self.waiting.get_mut(&request) else { return };
        waiting.is_gone = true;
        // What was asked may have been charged, so it stays charged everywhere. What was not asked goes back.
        if self.abandon(request)
            && let Some(mut waiting) = self.waiting.remove(&request)
        {
            self.give_back(&mut waiting.applied, slots, now);
        }
    }

    /// Charges a request as far as it can be here, and has the store asked for the rest. The decision, or
    /// nothing where it waits.
    fn advance(
        &mut self,
        request: RequestId,
        mut waiting: Waiting,
        slots: &mut dyn Slots,
        now: Instant,
    ) -> Option<Decision> {
        let has_room = self.waiting.len() < MAX_WAITING;
        match self.charge(&mut waiting.applied, has_room, waiting.has_waited, slots, now) {
            Charging::Done => return Some(admitted(&waiting.applied)),
            Charging::Denied => return Some(refused(&waiting.applied, &self.policies)),
            Charging::Asks if !has_room => return Some(self.failed(&mut waiting.applied, slots, now)),
            Charging::Asks => {
                for one in &waiting.applied {
                    if matches!(one.asks, Asks::Lease(_)) {
                        self.flights.entry(one.key.clone()).or_default();
                    }
                }
                self.calls.push(request);
            }
            Charging::Behind(key) => self.flights.entry(key).or_default().push_back(request),
        }
        self.waiting.insert(request, waiting);
        None
    }

    /// A request that has waited for another one's answer.
    fn go_on(&mut self, request: RequestId, slots: &mut dyn Slots, now: Instant, effects: &mut Vec<Effect>) {
        let Some(mut waiting) = self.waiting.remove(&request) else { return };
        waiting.has_waited = true;
        let is_gone = waiting.is_gone;
        if let Some(decision) = self.advance(request, waiting, slots, now)
            && !is_gone
        {
            effects.push(Effect::Decide { request, decision });
        }
    }

    /// Takes what this proxy can count itself, all or nothing.
    fn charge(
        &mut self,
        applied: &mut [Applied],
        may_ask: bool,
        has_waited: bool,
        slots: &mut dyn Slots,
        now: Instant,
    ) -> Charging {
        for one in applied.iter_mut() {
            one.start_anew();
            if self.policies.get(one.policy).is_some_and(|policy| policy.limit == Limit::Blocked) {
                one.finding = Finding::Blocks;
            }
        }
        let is_leased = |one: &&Applied| {
            one.counted(&self.policies).is_some_and(|counted| matches!(counted.sync, Sync::Lease(_)))
        };
        let behind = applied.iter().filter(is_leased).find(|one| self.flights.contains_key(&one.key));
        if may_ask
            && !has_waited
            && let Some(one) = behind
        {
            return Charging::Behind(one.key.clone());
        }
        let mut is_denied = applied.iter().any(|one| one.refuses(&self.policies));
        // Local buckets come first: they deny without a call, and for certain.
        for one in applied.iter_mut() {
            is_denied |= self.charge_local(one, is_denied, slots, now);
        }
        for one in applied.iter_mut() {
            // One that has waited and finds nothing asks for its cost alone while another's question is under
            // way: else a worker would decide no more than a lease in each round trip.
            let may_ask_for_lease = may_ask && !self.flights.contains_key(&one.key);
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

    /// Charges a local bucket, or, for a request that is denied already, looks at it. True where it denies.
    fn charge_local(
        &mut self,
        one: &mut Applied,
        is_denied: bool,
        slots: &mut dyn Slots,
        now: Instant,
    ) -> bool {
        let Some(counted) = one.counted(&self.policies).filter(|counted| counted.sync == Sync::Local) else {
            return false;
        };
        let (quota, cost) = (counted.quota, counted.policy.cost);
        if is_denied {
            // Only looked at, so that the denial names every policy that denies.
            one.finding = Finding::Stands(self.table.standing(slots, &one.key, &quota, cost, now));
            return true;
        }
        let change = self.table.charge(slots, &one.key, &quota, cost, now);
        self.evictions += u64::from(change.evicted);
        one.finding = Finding::Stands(change.standing);
        one.taken = (!one.finding.denies()).then_some(now);
        one.refuses(&self.policies)
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
        let (quota, cost) = (counted.quota, counted.policy.cost);
        match counted.sync {
            Sync::Local => return false,
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
                        (one.finding, one.taken) = (Finding::Stands(standing), Some(ends));
                    }
                    Found::Denied(standing) => one.finding = Finding::Stands(standing),
                    Found::Ask(ask) => one.asks = Asks::Lease(ask),
                    Found::Nothing => one.asks = Asks::Cost,
                }
            }
        }
        one.refuses(&self.policies)
    }

    fn give_back(&mut self, applied: &mut [Applied], slots: &mut dyn Slots, now: Instant) {
        for one in applied.iter() {
            let Some(taken) = one.taken else { continue };
            let Some(counted) = one.counted(&self.policies) else { continue };
            let (quota, cost) = (counted.quota, counted.policy.cost);
            match counted.sync {
                Sync::Local => self.table.refund(slots, &one.key, &quota, cost, now),
                Sync::Exact(_) | Sync::Lease(_) => self.leases.put_back(&one.key, cost, taken, now),
            }
        }
    }

    /// Takes in what an answer says about leases, whoever asked and whether or not that still waits.
    fn note_leases(
        &mut self,
        sent: &Sent,
        is_admitted: bool,
        charges: &[Charged],
        sent_at: Instant,
        slots: &mut dyn Slots,
        now: Instant,
    ) {
        for (asked, charged) in sent.charges.iter().zip(charges) {
            let SentCharge { key, quota, cost, lease: Some(lease), .. } = asked else { continue };
            let mut proxy = Proxy { table: &self.table, slots, now };
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
                self.leases.on_refused(&mut proxy, key, quota, fits_at, charged.remaining);
            }
        }
    }

    /// The requests that waited for an answer to `sent`.
    fn end_flights(&mut self, sent: &Sent) -> Vec<RequestId> {
        if sent.request.is_none() {
            return Vec::new();
        }
        let leased = sent.charges.iter().filter(|charge| charge.lease.is_some());
        leased.filter_map(|charge| self.flights.remove(&charge.key)).flatten().collect()
    }

    /// The requests that waited for an answer that does not come share its fate.
    fn fail_flights(&mut self, sent: &Sent, slots: &mut dyn Slots, now: Instant, effects: &mut Vec<Effect>) {
        for request in self.end_flights(sent) {
            self.settle(request, None, slots, now, effects);
        }
    }

    fn fail(&mut self, takes: Vec<Sent>, slots: &mut dyn Slots, now: Instant, effects: &mut Vec<Effect>) {
        for sent in takes {
            self.fail_flights(&sent, slots, now, effects);
            if let Some(request) = sent.request {
                self.settle(request, None, slots, now, effects);
            }
        }
    }

    /// Nobody is to answer this request any more; true where the store was not asked.
    fn abandon(&mut self, request: RequestId) -> bool {
        let orphans = self.orphans.len();
        self.orphans.retain(|other| *other != request);
        let mut was_behind = self.orphans.len() < orphans;
        for behind in self.flights.values_mut() {
            let before = behind.len();
            behind.retain(|other| *other != request);
            was_behind |= behind.len() < before;
        }
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
                if let Some(behind) = self.flights.remove(&key) {
                    self.orphans.extend(behind);
                }
            }
        }
        was_queued || was_behind
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

    /// Decides a request that the store was not asked about, or that got no answer.
    fn failed(&mut self, applied: &mut [Applied], slots: &mut dyn Slots, now: Instant) -> Decision {
        // One that waited for another's answer has taken nothing yet.
        if !applied.iter().any(Applied::is_asked) {
            match self.charge(applied, false, false, slots, now) {
                Charging::Done => return admitted(applied),
                Charging::Denied => return refused(applied, &self.policies),
                Charging::Asks | Charging::Behind(_) => {}
            }
        }
        let decision = failed(applied, &self.policies);
        if decision.verdict != crate::decision::Verdict::Admit {
            self.give_back(applied, slots, now);
        }
        decision
    }

    fn make_calls(&mut self, now: Instant, effects: &mut Vec<Effect>) {
        self.calls.renew(self.leases.take_renewals());
        let lost_at = now.after(self.timeout).after(LOST_AFTER);
        let waiting = &self.waiting;
        while let Some(questions) = self.calls.next(|question| size_of(question, waiting)) {
            let (takes, sent) = questions.iter().map(|question| self.take_of(question)).unzip();
            let call = self.calls.begin(sent, now, lost_at);
            effects.push(Effect::Call { call, body: TakeRequest { takes }.write() });
        }
    }

    fn take_of(&self, question: &Question) -> (Take, Sent) {
        match question {
            Question::Request(request) => {
                let applied = self.waiting.get(request).map_or(&[][..], |waiting| &waiting.applied);
                let charges: Vec<Charge> =
                    applied.iter().filter_map(|one| charge_of(one, &self.policies)).collect();
                let sent =
                    Sent { request: Some(*request), charges: charges.iter().map(sent_charge).collect() };
                (Take { charges }, sent)
            }
            Question::Renewal(Renewal { key, quota, ask }) => {
                let charge = Charge {
                    key: key.clone(),
                    limit: wire::Limit::TokenBucket(*quota),
                    cost: 0,
                    shadow: false,
                    lease: Some(ask.clone()),
                    report: None,
                };
                let sent = Sent { request: None, charges: vec![sent_charge(&charge)] };
                (Take { charges: vec![charge] }, sent)
            }
        }
    }
}

/// The charges of a question, and the bytes of their keys.
fn size_of(question: &Question, waiting: &BTreeMap<RequestId, Waiting>) -> (usize, usize) {
    match question {
        Question::Request(request) => {
            let applied = waiting.get(request).map_or(&[][..], |waiting| &waiting.applied);
            let asked = applied.iter().filter(|one| one.is_asked());
            asked.fold((0, 0), |(charges, bytes), one| (charges + 1, bytes + one.key.len()))
        }
        Question::Renewal(renewal) => (1, renewal.key.len()),
    }
}

/// What the store is asked about a policy.
fn charge_of(one: &Applied, policies: &[Policy]) -> Option<Charge> {
    let counted = one.counted(policies)?;
    let lease = match &one.asks {
        Asks::No => return None,
        Asks::Cost => None,
        Asks::Lease(ask) => Some(ask.clone()),
    };
    Some(Charge {
        key: one.key.clone(),
        limit: wire::Limit::TokenBucket(counted.quota),
        cost: counted.policy.cost,
        shadow: counted.policy.shadow,
        lease,
        report: None,
    })
}

fn sent_charge(charge: &Charge) -> SentCharge {
    let wire::Limit::TokenBucket(quota) = charge.limit;
    let lease = charge.lease.as_ref().map(|ask| SentLease {
        id: ask.id,
        is_wanted: ask.want > 0,
        ttl: Duration::from_micros(ask.ttl_us),
    });
    SentCharge { key: charge.key.clone(), quota, cost: charge.cost, shadow: charge.shadow, lease }
}

/// Microseconds until `cost` tokens are there, of a bucket that is full in `full_us`; not a moment too long.
fn refill_us(quota: &TokenBucket, cost: u64, full_us: u64) -> u64 {
    let beyond = quota.parts_of(cost).map_or(0, |parts| quota.parts() - parts);
    full_us.saturating_sub(quota.micros_for(beyond))
}

fn is_failed(answer: &Taken) -> bool {
    matches!(answer, Taken::Failed { .. })
}

/// Whether an answer is one to this question, and does not contradict itself: a take is admitted if and only
/// if every enforced charge fits.
fn fits(sent: &Sent, answer: &Taken) -> bool {
    let Taken::Decided { admitted, charges } = answer else { return false };
    let passes = |(asked, charged): (&SentCharge, &Charged)| asked.shadow || charged.wait_us == Some(0);
    charges.len() == sent.charges.len() && *admitted == sent.charges.iter().zip(charges).all(passes)
}
