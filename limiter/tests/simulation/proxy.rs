//! The parts of the simulation: proxies, their workers and clocks, and the network with its calls.

use std::collections::BTreeMap;
use std::rc::Rc;

use limiter::calls::MAX_CALLS;
use limiter::limiter::{CallId, Limiter};
use limiter::time::Instant;

use crate::checks::Broken;
use crate::memory::Memory;
use crate::plan::{Fault, SLOWEST_US};
use crate::random::Random;
use crate::world::{Event, Flaw, Letter, World, compiled};

/// A worker of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) proxy: usize,
    pub(crate) worker: usize,
}

pub(crate) struct Worker {
    pub(crate) limiter: Limiter,
    /// What was meant for an earlier limiter in its place does not reach this one.
    pub(crate) generation: u32,
    /// Whether a tick is to come.
    pub(crate) ticks: bool,
    /// Calls whose end it was not told, and when it may forget them.
    calls: BTreeMap<CallId, u64>,
}

pub(crate) struct Proxy {
    pub(crate) slots: Memory,
    pub(crate) workers: Vec<Worker>,
    pub(crate) clock: Clock,
    holder: String,
}

/// A proxy's monotonic clock.
pub(crate) struct Clock {
    epoch_us: u64,
    flaw: Flaw,
}

impl Clock {
    pub(crate) fn at(&self, now_us: u64) -> Instant {
        let seen_us = match self.flaw {
            Flaw::SlowClock => now_us / 32,
            Flaw::StoppingClock => now_us / 3_000_000 * 3_000_000 + (now_us % 3_000_000).min(200_000),
            _ => now_us,
        };
        Instant::from_micros(self.epoch_us + seen_us)
    }
}

impl World<'_> {
    /// A proxy that has just started; the `life`th in its place.
    pub(crate) fn new_proxy(&mut self, proxy: usize, life: u32) -> Proxy {
        let holder = format!("proxy{proxy}life{life}");
        let seed = self.random.next();
        let mut slots = Memory::new(self.plan.slots, self.plan.conflicts_per_mille, Random::new(seed));
        slots.forgets_per_mille = if self.flaw == Flaw::Forgetful { 20 } else { 0 };
        let flaw = if proxy == 0 { self.flaw } else { Flaw::None };
        let clock = Clock { epoch_us: 1_000_000 + self.random.below(1 << 40), flaw };
        let generation = life << 16;
        let workers = (0..self.plan.workers).map(|_| self.new_worker(&holder, generation)).collect();
        Proxy { slots, workers, clock, holder }
    }

    fn new_worker(&self, holder: &str, generation: u32) -> Worker {
        let limiter =
            Limiter::new(self.policies.clone(), self.table.clone(), self.plan.timeout, holder.to_owned());
        Worker { limiter, generation, ticks: false, calls: BTreeMap::new() }
    }

    /// A worker's memory is lost; what its proxy holds is not.
    fn restart(&mut self, place: Place) {
        let holder = self.proxies[place.proxy].holder.clone();
        let generation = self.worker(place).generation + 1;
        *self.worker(place) = self.new_worker(&holder, generation);
        self.open.retain(|_, (at, _)| *at != place);
    }

    pub(crate) fn places(&self) -> Vec<Place> {
        let workers = |proxy| (0..self.plan.workers).map(move |worker| Place { proxy, worker });
        (0..self.plan.proxies).flat_map(workers).collect()
    }

    pub(crate) fn go_wrong(&mut self, index: usize) {
        match &self.plan.faults[index].1 {
            Fault::Crash { proxy, worker } => self.restart(Place { proxy: *proxy, worker: *worker }),
            Fault::Reload { policies, cut } => {
                self.checks.edit(&self.policies, policies, *cut, self.now_us);
                if *cut {
                    self.cut();
                }
                self.policies = compiled(policies);
                self.places().into_iter().for_each(|place| self.restart(place));
            }
            Fault::Replace { proxy } => {
                let life = (self.proxies[*proxy].workers[0].generation >> 16) + 1;
                let new = self.new_proxy(*proxy, life);
                self.open.retain(|_, (at, _)| at.proxy != *proxy);
                self.proxies[*proxy] = new;
            }
            Fault::Forget { proxy, slot } => self.proxies[*proxy].slots.forget(*slot),
            Fault::Away { span_us } => self.away_until_us = self.now_us + span_us,
            Fault::StepBack { span_us } => {
                self.store_epoch_us -= span_us;
                self.checks.ledger.step_back();
            }
        }
    }

    /// A worker has made a call.
    pub(crate) fn begin_call(&mut self, letter: &Rc<Letter>) {
        let (now_us, timeout_us) = (self.now_us, u64::try_from(self.plan.timeout.as_micros()).unwrap());
        let calls = &mut self.worker(letter.place).calls;
        calls.retain(|_, lost_us| *lost_us > now_us);
        calls.insert(letter.call, now_us + timeout_us + 1_000_000);
        if calls.len() > MAX_CALLS {
            self.checks.fail(Broken::Bound, "too many calls are under way");
        }
        if self.network.tells_timeouts {
            self.at(now_us + timeout_us, Event::Timeout(letter.clone()));
        }
    }

    /// A call has ended; false where its worker has ended before it. A worker may hear of the end twice.
    pub(crate) fn end_call(&mut self, letter: &Rc<Letter>) -> bool {
        let worker = self.worker(letter.place);
        worker.calls.remove(&letter.call);
        worker.generation == letter.generation
    }

    /// Sends something one way: it arrives after a while, once, twice or never.
    pub(crate) fn travel(&mut self, event: impl Fn() -> Event) {
        let network = self.network.clone();
        let copies = if self.random.chance(network.doubled_per_mille) { 2 } else { 1 };
        for _ in 0..copies {
            if self.random.chance(network.lost_per_mille) {
                self.stray(event());
                continue;
            }
            let (least_us, most_us) = network.delay_us;
            let is_slow = self.random.chance(network.slow_per_mille);
            let delay_us = self.random.between(least_us, if is_slow { SLOWEST_US } else { most_us });
            self.at(self.now_us + delay_us, event());
        }
    }

    /// In a flawed network a question that is lost is answered with what was said before.
    fn stray(&mut self, event: Event) {
        let (Flaw::StrayReply, Event::Execute(letter)) = (self.flaw, event) else { return };
        if let Some(reply) = self.last_answers.get(&letter.place).cloned() {
            self.at(self.now_us + 1_000, Event::Answer(letter, reply));
        }
    }
}
