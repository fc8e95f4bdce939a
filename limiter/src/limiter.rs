//! The per-request state machine of one worker.
//!
//! A request is checked against all policies that apply and charged on all or on none. What this proxy can
//! count itself, in local buckets, in tallies and from leases, is decided first: a denial there costs no call. Then the
//! companion is asked for the rest, and where that denies, what was taken goes back.

mod charging;
mod flights;
mod settling;
mod turn;

use core::time::Duration;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::applied::{Applied, Asks, admitted, refused};
use crate::breaker::Breaker;
pub use crate::calls::{CallId, RequestId};
use crate::calls::{Calls, MAX_WAITING, Question};
use crate::decision::Decision;
use crate::leases::Leases;
use crate::policies::Policies;
use crate::proxy::Proxy;
use crate::questions::{errand_take, fits, is_failed, request_take, size_of};
use crate::quota::TokenBucket;
use crate::request::{Attributes, demands};
use crate::table::{Slots, Table};
use crate::tallies::Tallies;
use crate::time::Instant;
use crate::wire::{TakeReply, TakeRequest, Taken};
use charging::Charging;
use flights::Flights;
pub(crate) use turn::turn_of;

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
    /// Post this body to [`crate::wire::TAKE_PATH`], and say how it ended.
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
    policies: Rc<Policies>,
    table: Table,
    timeout: Duration,
    leases: Leases,
    tallies: Tallies,
    breaker: Breaker,
    /// What the store was last to be asked about in vain: what a probe asks about. Not always the same, for it may be
    /// one key alone that it does not answer about.
    unanswered: Option<(String, TokenBucket)>,
    calls: Calls,
    waiting: BTreeMap<RequestId, Waiting>,
    flights: Flights,
    /// Requests whose turn it is to ask, since the one that they waited for asks no more.
    orphans: Vec<RequestId>,
    /// How many requests there have been.
    turn: u64,
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

impl Limiter {
    /// A limiter of `policies`, whose local buckets, leases and tallies are in `table`; no request waits longer than
    /// `timeout`. `holder` names this proxy to the store: letters and digits, its own and the same in all of
    /// its workers.
    pub fn new(policies: Rc<Policies>, table: Table, timeout: Duration, holder: String) -> Self {
        Self {
            policies,
            table,
            timeout,
            leases: Leases::new(holder.clone(), timeout),
            tallies: Tallies::new(holder, timeout),
            breaker: Breaker::default(),
            unanswered: None,
            calls: Calls::default(),
            waiting: BTreeMap::new(),
            flights: Flights::default(),
            orphans: Vec::new(),
            turn: 0,
        }
    }

    /// The policies, which the marks of a decision name by index.
    pub fn policies(&self) -> &Rc<Policies> {
        &self.policies
    }

    /// True while there is something that [`Limiter::on_tick`] watches: the deadline of a request, a call or a lease, a
    /// report that is due, or an open breaker.
    pub fn needs_tick(&self) -> bool {
        // Orphans are among the waiting.
        let is_busy = !self.waiting.is_empty() || !self.calls.is_idle();
        is_busy || self.leases.has_due() || self.tallies.has_due() || self.breaker.is_open()
    }

    /// Entries of the table given up that were worth something, since this was last asked.
    pub fn take_evictions(&mut self) -> u64 {
        self.table.take_evictions()
    }

    /// How often the circuit breaker has opened since this was last asked.
    pub fn take_opened(&mut self) -> u64 {
        self.breaker.take_opened()
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
        self.turn = self.turn.wrapping_add(1);
        let turn = turn_of(self.turn, request);
        let applied = demands(&self.policies, attributes, turn).map(Applied::new).collect();
        let deadline = now.after(self.timeout);
        let waiting = Waiting { applied, deadline, is_gone: false, has_waited: false };
        let decision = self.advance(request, waiting, slots, now);
        self.make_calls(slots, now, effects);
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
        if reply.takes.len() != under_way.takes.len() {
            self.fail(under_way, slots, now, effects);
            self.make_calls(slots, now, effects);
            return;
        }
        self.breaker.on_answer();
        let mut behind = Vec::new();
        for (sent, answer) in under_way.takes.into_iter().zip(reply.takes) {
            // What cannot be decided is one take's misfortune: those behind it ask for themselves.
            if fits(&sent, &answer) || is_failed(&answer) {
                behind.extend(self.end_flights(&sent));
            } else {
                self.fail_flights(&sent, slots, now, effects);
            }
            let answer = Some(answer).filter(|answer| fits(&sent, answer));
            if let Some(Taken::Decided { admitted, charges }) = &answer {
                self.note(&sent, *admitted, charges, under_way.sent_at, slots, now);
            }
            if let Some(request) = sent.request {
                self.settle(request, answer, slots, now, effects);
            }
        }
        for request in behind {
            self.go_on(request, slots, now, effects);
        }
        self.make_calls(slots, now, effects);
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
        self.fail(under_way, slots, now, effects);
        self.make_calls(slots, now, effects);
    }

    /// Time has passed: requests that have waited too long are decided as failures, leases near their end go
    /// back, and what was let through without asking is reported.
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
        for lost in self.calls.forget_lost(now) {
            self.fail(lost, slots, now, effects);
        }
        let proxy = &mut Proxy { table: &self.table, slots, now };
        self.leases.on_tick(proxy);
        self.tallies.on_tick(proxy);
        self.make_calls(slots, now, effects);
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
        let may_wait = self.waiting.len() < MAX_WAITING && !self.breaker.is_open();
        match self.charge(&mut waiting.applied, may_wait, waiting.has_waited, slots, now) {
            Charging::Done => return Some(admitted(&waiting.applied)),
            Charging::Denied => return Some(refused(&waiting.applied, &self.policies)),
            Charging::Asks if !may_wait => {
                let asked = waiting.applied.iter().find(|one| one.is_asked());
                let quota = asked.and_then(|one| one.counted(&self.policies)).map(|counted| counted.quota);
                self.unanswered = asked.map(|one| one.key.clone()).zip(quota);
                self.breaker.on_wanted(now);
                return Some(self.failed(&mut waiting.applied, slots, now));
            }
            Charging::Asks => {
                for one in &waiting.applied {
                    if matches!(one.asks, Asks::Lease(_)) {
                        self.flights.begin(&one.key);
                    }
                }
                self.hold(&mut waiting.applied, slots, now);
                self.calls.push(request);
            }
            Charging::Behind(key) => self.flights.join(key, request),
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

    fn make_calls(&mut self, slots: &mut dyn Slots, now: Instant, effects: &mut Vec<Effect>) {
        let mut errands = self.leases.take_errands();
        let proxy = &mut Proxy { table: &self.table, slots, now };
        let room = self.calls.errand_room().saturating_sub(errands.len());
        errands.extend(self.tallies.errands(proxy, self.breaker.is_open(), room));
        if self.breaker.is_open() {
            // Leases end by themselves. One question at a time shows whether the store decides again.
            errands.clear();
            if let Some((key, quota)) = self.unanswered.as_ref().filter(|_| self.breaker.wants_probe(now)) {
                errands.push(self.leases.probe(key, quota, now));
            }
        }
        self.calls.run(errands);
        let lost_at = now.after(self.timeout).after(LOST_AFTER);
        let (waiting, policies) = (&self.waiting, &self.policies);
        let applied_of =
            |request: &RequestId| waiting.get(request).map_or(&[][..], |waiting| &waiting.applied);
        while let Some(questions) = self.calls.next(|question| size_of(question, applied_of)) {
            let take_of = |question| match question {
                Question::Request(request) => request_take(request, applied_of(&request), policies),
                Question::Errand(errand) => errand_take(errand),
            };
            let (takes, sent) = questions.into_iter().map(take_of).unzip();
            let call = self.calls.begin(sent, now, lost_at);
            effects.push(Effect::Call { call, body: TakeRequest { takes }.write() });
        }
    }
}
