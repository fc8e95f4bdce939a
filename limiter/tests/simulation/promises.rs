//! The promises hold in every schedule.

use std::env;

use limiter::authority::Authority;
use limiter::policy::Sync;

use crate::checks::{Broken, Counted, Violation, must_ask};
use crate::plan::{Arrival, Network, PATHS, PATIENT, Plan, quota, store_key};
use crate::schedule::Theme;
use crate::store::Store;
use crate::world::{Flaw, World};

/// Schedules of one theme, unless `TIDEGATE_SCHEDULES` says otherwise.
const SCHEDULES: u64 = 2_500;

fn number(name: &str) -> Option<u64> {
    #[expect(clippy::disallowed_methods, reason = "a test is told what to run, the core is not")]
    let text = env::var(name).ok();
    text.map(|text| text.parse().expect("a whole number"))
}

/// Runs a plan to its end; says what was broken.
pub(crate) fn run(plan: &Plan, store: Box<dyn Store>, flaw: Flaw) -> Option<Violation> {
    let mut world = World::new(plan, store, flaw);
    world.run();
    world.check_end();
    world.checks.violation
}

fn hold(theme: Theme) {
    let seeds = match number("TIDEGATE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("TIDEGATE_SCHEDULES").unwrap_or(SCHEDULES),
    };
    for seed in seeds {
        let plan = theme.plan(seed);
        if let Some(Violation { broken, what }) = run(&plan, Box::new(Authority::default()), Flaw::None) {
            let summary = Plan { arrivals: Vec::new(), ..plan };
            panic!("TIDEGATE_SEED={seed} in {theme:?} breaks {broken:?}: {what}\n{summary:?}");
        }
    }
}

#[test]
fn exact_holds_its_formula() {
    hold(Theme::Exact);
}

#[test]
fn lease_holds_its_formula() {
    hold(Theme::Lease);
}

#[test]
fn local_holds_its_formula() {
    hold(Theme::Local);
}

#[test]
fn async_holds_its_formula() {
    hold(Theme::Async);
}

#[test]
fn share_holds_its_formula() {
    hold(Theme::Share);
}

#[test]
fn layers_hold_theirs_together() {
    hold(Theme::Layers);
}

impl World<'_> {
    /// Nothing happens any more: nobody waits, nothing was charged in vain, and whoever asks now is served.
    pub(crate) fn check_end(&mut self) {
        if self.checks.violation.is_some() {
            return;
        }
        if let Some((_, open)) = self.open.values().find(|(_, open)| !open.has_left) {
            let what = format!("a request is never decided: {open:?}");
            self.checks.fail(Broken::Decision, what);
        }
        let is_still = self.places().iter().all(|place| !self.worker(*place).limiter.needs_tick());
        if !is_still {
            self.checks.fail(Broken::Bound, "a worker needs ticks, and gets none");
        }
        self.check_charges();
        self.check_service();
    }

    /// A refused request was charged nothing. Seen where nothing else charges in vain.
    fn check_charges(&mut self) {
        let plan = self.plan;
        let all_patient = plan.arrivals.iter().all(|arrival| arrival.patience_us == PATIENT);
        let is_quiet = plan.network.is_good() && plan.faults.is_empty() && all_patient;
        let clients = plan.arrivals.iter().map(|arrival| arrival.client).max().map_or(0, |most| most + 1);
        if !is_quiet || self.checks.counts.unavailable + self.checks.counts.unprotected > 0 {
            return;
        }
        let is_local = plan.policies.iter().all(|policy| policy.sync == Sync::Local);
        for (index, policy) in plan.policies.iter().enumerate() {
            for client in 0..clients {
                let key = store_key(client, policy);
                if must_ask(policy)
                    && matches!(policy.sync, Sync::Exact(_))
                    && self.checks.ledger.charged_in_vain(&key) > 0
                {
                    self.checks.fail(Broken::Books, format!("a refused request was charged on {key}"));
                }
                for proxy in (0..plan.proxies).filter(|_| is_local) {
                    let now_us = self.now_us;
                    let place = Counted { policy: index, client, proxy, waits: true };
                    let Some(expected) = self.checks.remaining(place, now_us) else {
                        continue;
                    };
                    let proxy = &mut self.proxies[proxy];
                    let now = proxy.clock.at(now_us);
                    let left = self.table.standing(&mut proxy.slots, &key, &quota(policy), 1, now).remaining;
                    if left != expected {
                        self.checks
                            .fail(Broken::Books, format!("{key} has {left} left instead of {expected}"));
                    }
                }
            }
        }
    }

    /// Nothing is stuck: once the network is good again every worker decides every client's requests.
    fn check_service(&mut self) {
        let start_us = self.now_us + 2_000_000;
        self.network = Network::good((100, 100));
        let clients =
            self.plan.arrivals.iter().map(|arrival| arrival.client).max().map_or(0, |most| most + 1);
        let failures = self.checks.counts.unavailable + self.checks.counts.unprotected;
        for (count, place) in self.places().into_iter().enumerate() {
            for client in 0..clients {
                for path in PATHS {
                    self.run_until(start_us + count as u64 * 1_000);
                    self.now_us = self.now_us.max(start_us + count as u64 * 1_000);
                    let (proxy, worker, at_us) = (place.proxy, place.worker, self.now_us);
                    self.arrive(Arrival { at_us, proxy, worker, client, path, patience_us: PATIENT });
                }
            }
        }
        self.run();
        if self.checks.counts.unavailable + self.checks.counts.unprotected > failures {
            self.checks.fail(Broken::Bound, "a request fails though nothing is wrong any more");
        }
        if self.checks.violation.is_none() && !self.open.values().all(|(_, open)| open.has_left) {
            self.checks
                .fail(Broken::Decision, "a request is never decided, though nothing is wrong any more");
        }
    }
}
