//! The simulation: proxies with their workers, one store, and a network between them, on one clock.
//!
//! What happens next is drawn from the plan's seed alone, so a seed gives the same run each time.

use std::collections::BTreeMap;
use std::rc::Rc;

use limiter::decision::Decision;
use limiter::limiter::{CallId, Effect, Limiter, RequestId, Step};
use limiter::policies::Policies;
use limiter::policy::Policy;
use limiter::table::{Slots, Table};
use limiter::time::Instant;
use limiter::wire::{TakeReply, TakeRequest};

use crate::checks::{Broken, Checks, Open, TICK_US};
use crate::ledger::check_bounds;
use crate::plan::{Arrival, Client, PATIENT, Plan};
use crate::proxy::{Place, Proxy, Worker};
use crate::random::Random;
use crate::store::Store;

/// What is wrong with the parts, to see that the checks find it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    /// The first proxy's clock is 32 times too slow.
    SlowClock,
    /// The first proxy's clock stands still for most of every three seconds, and then catches up.
    StoppingClock,
    /// Slots are emptied now and then.
    Forgetful,
    /// A call that is lost is answered with the last answer to another one.
    StrayReply,
}

/// A question on its way, and where its answer goes.
#[derive(Debug)]
pub(crate) struct Letter {
    pub(crate) place: Place,
    pub(crate) generation: u32,
    pub(crate) call: CallId,
    pub(crate) request: TakeRequest,
}

#[derive(Debug)]
pub(crate) enum Event {
    Tick { place: Place, generation: u32 },
    Execute(Rc<Letter>),
    Answer(Rc<Letter>, TakeReply),
    Timeout(Rc<Letter>),
    Leave(u32),
    Fault(usize),
}

pub(crate) struct World<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) flaw: Flaw,
    pub(crate) now_us: u64,
    pub(crate) random: Random,
    pub(crate) store: Box<dyn Store>,
    /// What the store's clock says when the time is 0.
    pub(crate) store_epoch_us: u64,
    pub(crate) away_until_us: u64,
    pub(crate) policies: Rc<Policies>,
    pub(crate) table: Table,
    pub(crate) proxies: Vec<Proxy>,
    pub(crate) checks: Checks,
    pub(crate) open: BTreeMap<u32, (Place, Open)>,
    pub(crate) last_answers: BTreeMap<Place, TakeReply>,
    pub(crate) network: crate::plan::Network,
    events: BTreeMap<(u64, u64), Event>,
    next_event: u64,
    next_arrival: usize,
    next_request: u32,
}

impl<'a> World<'a> {
    pub(crate) fn new(plan: &'a Plan, store: Box<dyn Store>, flaw: Flaw) -> Self {
        let mut random = Random::new(plan.seed ^ 0x7469_6465);
        let table = Table::new(plan.slots, [7; 16]);
        let mut world = Self {
            plan,
            flaw,
            now_us: 0,
            store,
            store_epoch_us: 1_000_000_000 + random.below(1 << 40),
            away_until_us: 0,
            policies: compiled(&plan.policies),
            table,
            proxies: Vec::new(),
            checks: Checks::new(plan),
            open: BTreeMap::new(),
            last_answers: BTreeMap::new(),
            network: plan.network.clone(),
            events: BTreeMap::new(),
            next_event: 0,
            next_arrival: 0,
            next_request: 0,
            random,
        };
        for (index, (at_us, _)) in plan.faults.iter().enumerate() {
            world.at(*at_us, Event::Fault(index));
        }
        for proxy in 0..plan.proxies {
            let new = world.new_proxy(proxy, 0);
            world.proxies.push(new);
        }
        world
    }

    /// Runs until nothing more happens, or a promise is broken.
    pub(crate) fn run(&mut self) {
        self.run_until(u64::MAX);
    }

    /// Runs until nothing more happens before `end_us`, or a promise is broken.
    pub(crate) fn run_until(&mut self, end_us: u64) {
        let plan = self.plan;
        let last_us = plan.arrivals.last().map_or(0, |arrival| arrival.at_us);
        let last_us = plan.faults.last().map_or(last_us, |(at_us, _)| last_us.max(*at_us));
        while self.checks.violation.is_none() {
            let next_us = self.events.first_key_value().map_or(u64::MAX, |((at_us, _), _)| *at_us);
            let arrival = plan.arrivals.get(self.next_arrival).filter(|arrival| arrival.at_us <= next_us);
            if arrival.map_or(next_us, |arrival| arrival.at_us) >= end_us {
                break;
            }
            if let Some(arrival) = arrival {
                self.next_arrival += 1;
                self.now_us = arrival.at_us;
                self.arrive(*arrival);
            } else if let Some((_, event)) = self.events.pop_first() {
                self.now_us = next_us;
                if next_us > last_us + 5_000_000 {
                    // What is to be told to the store arrives in the end.
                    self.network = crate::plan::Network::good((100, 100));
                }
                if next_us > last_us + 30_000_000 {
                    self.checks.fail(Broken::Bound, format!("{event:?} though nobody asks any more"));
                }
                self.happen(event);
            }
        }
    }

    pub(crate) fn at(&mut self, at_us: u64, event: Event) {
        self.next_event += 1;
        self.events.insert((at_us, self.next_event), event);
    }

    /// Takes what is on its way out of the network.
    pub(crate) fn cut(&mut self) {
        self.events.retain(|_, event| !matches!(event, Event::Execute(_) | Event::Answer(..)));
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Tick { place, generation } => {
                if self.worker(place).generation == generation {
                    self.worker(place).ticks = false;
                    self.with(place, Limiter::on_tick);
                }
            }
            Event::Execute(letter) => self.execute(&letter),
            Event::Answer(letter, reply) => {
                if self.end_call(&letter) {
                    self.with(letter.place, |limiter, slots, now, effects| {
                        limiter.on_reply(letter.call, reply, slots, now, effects);
                    });
                }
            }
            Event::Timeout(letter) => {
                if self.end_call(&letter) {
                    self.with(letter.place, |limiter, slots, now, effects| {
                        limiter.on_call_failed(letter.call, slots, now, effects);
                    });
                }
            }
            Event::Leave(request) => self.leave(request),
            Event::Fault(index) => self.go_wrong(index),
        }
    }

    pub(crate) fn arrive(&mut self, arrival: Arrival) {
        self.next_request += 1;
        let request = self.next_request;
        let place = Place { proxy: arrival.proxy, worker: arrival.worker };
        let open = Open { arrival, arrived_us: self.now_us, has_left: false };
        self.open.insert(request, (place, open));
        let mut client = Client { client: arrival.client, path: arrival.path }.request();
        let step = self.with(place, |limiter, slots, now, effects| {
            limiter.on_request(RequestId(request), &mut client, slots, now, effects)
        });
        match step {
            Step::Decided(decision) => self.decide(request, &decision),
            Step::Waits if arrival.patience_us < PATIENT => {
                self.at(self.now_us + arrival.patience_us, Event::Leave(request));
            }
            Step::Waits => {}
        }
    }

    fn decide(&mut self, request: u32, decision: &Decision) {
        let Some((_, open)) = self.open.remove(&request) else {
            return self.checks.fail(Broken::Decision, format!("request {request} is decided twice"));
        };
        self.checks.decide(&self.policies, open, decision, self.now_us);
    }

    fn leave(&mut self, request: u32) {
        let Some((place, open)) = self.open.get_mut(&request) else { return };
        open.has_left = true;
        let place = *place;
        self.with(place, |limiter, slots, now, _| limiter.on_gone(RequestId(request), slots, now));
    }

    fn execute(&mut self, letter: &Rc<Letter>) {
        if self.now_us < self.away_until_us {
            return;
        }
        let now = Instant::from_micros(self.store_epoch_us + self.now_us);
        let mut reply = TakeReply::default();
        self.checks.ledger.calls += 1;
        for take in &letter.request.takes {
            let full_us =
                take.charges.iter().map(|charge| self.store.full_us(charge, now)).collect::<Vec<_>>();
            let taken = self.store.decide(&TakeRequest { takes: vec![take.clone()] }, now).takes.remove(0);
            let noted = self.checks.ledger.note(take, &taken, &full_us, self.now_us);
            self.checks.expect(Broken::Books, noted);
            reply.takes.push(taken);
        }
        self.last_answers.insert(letter.place, reply.clone());
        self.travel(|| Event::Answer(letter.clone(), reply.clone()));
    }

    /// Hands over what the limiter of a worker wants done.
    fn carry_out(&mut self, place: Place, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Call { call, body } => self.send(place, call, &body),
                Effect::Decide { request, decision } => self.decide(request.0, &decision),
            }
        }
    }

    fn send(&mut self, place: Place, call: CallId, body: &[u8]) {
        let request: TakeRequest = serde_json::from_slice(body).expect("a question by the rules");
        self.checks.expect(Broken::Bound, check_bounds(&request, body.len()));
        let letter = Rc::new(Letter { place, generation: self.worker(place).generation, call, request });
        self.begin_call(&letter);
        self.travel(|| Event::Execute(letter.clone()));
    }

    /// Has a worker's limiter do something.
    pub(crate) fn with<R>(
        &mut self,
        place: Place,
        act: impl FnOnce(&mut Limiter, &mut dyn Slots, Instant, &mut Vec<Effect>) -> R,
    ) -> R {
        let now_us = self.now_us;
        let proxy = &mut self.proxies[place.proxy];
        let now = proxy.clock.at(now_us);
        let mut effects = Vec::new();
        let worker = &mut proxy.workers[place.worker];
        let done = act(&mut worker.limiter, &mut proxy.slots, now, &mut effects);
        if worker.limiter.needs_tick() && !worker.ticks {
            worker.ticks = true;
            let generation = worker.generation;
            self.at(now_us + TICK_US, Event::Tick { place, generation });
        }
        self.carry_out(place, effects);
        done
    }

    pub(crate) fn worker(&mut self, place: Place) -> &mut Worker {
        &mut self.proxies[place.proxy].workers[place.worker]
    }
}

/// Policies as limiters take them.
pub(crate) fn compiled(policies: &[Policy]) -> Rc<Policies> {
    Rc::new(policies.to_vec().try_into().expect("a plan has few policies"))
}
