//! Random schedules: small, and mean.

use core::time::Duration;

use limiter::policy::{Cost, Limit, OnFailure, Policy, Sync};
use limiter::quota::TokenBucket;

use crate::plan::{Arrival, CLOSED, Fault, Network, PATHS, PATIENT, Plan, policy, quota};
use crate::random::{Random, Skew};

/// What a schedule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Exact,
    Lease,
    Local,
    Async,
    /// Policies that use their share while the store cannot be asked.
    Share,
    /// Several policies in different modes.
    Layers,
}

/// Limits that run out and refill within a schedule, and some that are odd.
const LIMITS: [(u64, &str); 20] = [
    (1, "1/s"),
    (3, "1/s"),
    (5, "10/s"),
    (5, "100/s"),
    (10, "10/m"),
    (10, "50/s"),
    (20, "20/s"),
    (40, "40/s"),
    (60, "7/s"),
    (100, "100/s"),
    (100, "3000/m"),
    (300, "300/s"),
    // With so little back in a lease's time the formula leaves next to nothing over the capacity.
    (6, "1/s"),
    (10, "1/s"),
    (20, "2/s"),
    (30, "3/s"),
    (20, "10/m"),
    (40, "20/m"),
    (60, "60/m"),
    (100, "100/m"),
];

impl Theme {
    /// The schedule of a seed.
    pub(crate) fn plan(self, seed: u64) -> Plan {
        let mut random = Random::new(seed ^ (self as u64) << 56);
        let policies = self.policies(&mut random);
        let (proxies, workers) = (1 + random.index(4), 1 + random.index(3));
        let network = network(&mut random);
        let clients = random.pick(&[1, 1, 2, 3, 8]);
        let limit = quota(&policies[0]);
        let mut arrivals = arrivals(&mut random, (proxies, workers, clients), limit);
        let is_acquainted = self == Self::Share
            && network.is_good()
            && 2 * network.delay_us.1 < 20_000
            && matches!(policies[0].sync, Sync::Exact(_));
        if is_acquainted {
            arrivals = acquaintance((proxies, workers, clients), arrivals);
        }
        let end_us = arrivals.last().map_or(0, |arrival| arrival.at_us);
        let faults = if random.chance(400) {
            Vec::new()
        } else {
            let mut faults = Self::faults(&mut random, &policies, proxies, workers, end_us);
            if is_acquainted {
                let is_known = |(at_us, fault): &(u64, Fault)| {
                    *at_us > ACQUAINTED_US && !matches!(fault, Fault::Replace { .. } | Fault::Forget { .. })
                };
                faults.retain(is_known);
            }
            faults
        };
        Plan {
            seed,
            proxies,
            workers,
            // With a single slot, more keys than it has room for, save for local buckets: they forgive nothing
            // only while there is room.
            slots: if self == Self::Lease { random.pick(&[1, 2, 64]) } else { 64 },
            policies,
            timeout: Duration::from_millis(random.pick(&[20, 50, 50, 100])),
            network,
            conflicts_per_mille: random.pick(&[0, 0, 50, 400]),
            is_acquainted,
            arrivals,
            faults,
        }
    }

    fn policies(self, random: &mut Random) -> Vec<Policy> {
        let closes = if random.chance(850) { CLOSED } else { OnFailure::Open };
        let limit = random.pick(&LIMITS);
        match self {
            Self::Exact => vec![policy("p", limit, Sync::Exact(closes), None)],
            Self::Lease => vec![policy("p", limit, Sync::Lease(closes), None)],
            Self::Local => vec![policy("p", limit, Sync::Local, None)],
            Self::Async => vec![policy("p", limit, Sync::Async, None)],
            Self::Share => {
                let syncs = [Sync::Exact(OnFailure::Share), Sync::Lease(OnFailure::Share)];
                vec![policy("p", limit, random.pick(&syncs), None)]
            }
            Self::Layers => (0..random.between(2, 4))
                .map(|index| {
                    let closes = if random.chance(200) { OnFailure::Share } else { closes };
                    let sync = random.pick(&[
                        Sync::Exact(closes),
                        Sync::Lease(closes),
                        Sync::Lease(closes),
                        Sync::Async,
                        Sync::Local,
                    ]);
                    let path = random.pick(&[None, None, Some(PATHS[0]), Some(PATHS[1])]);
                    let shadow = random.chance(100);
                    let cost = random.pick(&[1, 1, 1, 1, 2, 3]);
                    let one = policy(&format!("p{index}"), random.pick(&LIMITS), sync, path);
                    Policy { shadow, cost: Cost::Fixed(cost), ..one }
                })
                .collect(),
        }
    }

    fn faults(
        random: &mut Random,
        policies: &[Policy],
        proxies: usize,
        workers: usize,
        end_us: u64,
    ) -> Vec<(u64, Fault)> {
        let has_local = policies.iter().any(|policy| policy.sync == Sync::Local);
        let mut policies = policies.to_vec();
        let mut moments: Vec<u64> = (0..random.between(1, 5)).map(|_| random.below(end_us + 1)).collect();
        moments.sort_unstable();
        let mut faults = Vec::new();
        for at_us in moments {
            let proxy = random.index(proxies);
            let fault = match random.below(10) {
                0..3 => Fault::Crash { proxy, worker: random.index(workers) },
                3 => Fault::Reload { policies: policies.clone(), cut: false },
                4 => {
                    let edited = random.index(policies.len());
                    policies[edited].limit = edit(random, quota(&policies[edited]));
                    Fault::Reload { policies: policies.clone(), cut: random.chance(500) }
                }
                // What is counted in one proxy alone is lost with it.
                5 if !has_local => Fault::Replace { proxy },
                6 if !has_local => Fault::Forget { proxy, slot: random.index(64) },
                7 => Fault::StepBack { span_us: random.pick(&[1, 5_000, 300_000, 100_000_000]) },
                _ => Fault::Away { span_us: random.between(20_000, 500_000) },
            };
            faults.push((at_us, fault));
        }
        faults
    }
}

fn edit(random: &mut Random, before: TokenBucket) -> Limit {
    let (capacity, rate) = random.pick(&LIMITS);
    let (capacity, rate) = match random.below(3) {
        0 => (before.capacity(), rate.parse().unwrap()),
        1 => (capacity, before.rate()),
        _ => (capacity, rate.parse().unwrap()),
    };
    Limit::TokenBucket(TokenBucket::new(capacity, rate).unwrap())
}

fn network(random: &mut Random) -> Network {
    let mut network = Network::good(random.pick(&[(0, 0), (100, 100), (200, 5_000), (1_000, 30_000)]));
    if random.chance(700) {
        network.slow_per_mille = random.pick(&[0, 20, 200]);
        network.lost_per_mille = random.pick(&[0, 20, 200]);
        network.doubled_per_mille = random.pick(&[0, 20, 300]);
        network.tells_timeouts = random.chance(700);
    }
    network
}

/// Whose requests, from where.
struct Crowd {
    to_proxy: Skew,
    workers: u64,
    to_client: Skew,
    leavers_per_mille: u64,
    arrivals: Vec<Arrival>,
    at_us: u64,
}

impl Crowd {
    fn draw(&self, random: &mut Random) -> (usize, usize, usize) {
        let worker = usize::try_from(random.below(self.workers)).unwrap();
        (self.to_proxy.draw(random), worker, self.to_client.draw(random))
    }

    /// So many requests, so far apart on average; of one client at one worker only, or of all.
    fn ask(&mut self, random: &mut Random, count: u64, mean_us: u64, is_alone: bool) {
        let mut drawn = self.draw(random);
        for _ in 0..count {
            self.at_us += random.below(2 * mean_us + 1);
            if !is_alone {
                drawn = self.draw(random);
            }
            let (proxy, worker, client) = drawn;
            let leaves = random.chance(self.leavers_per_mille);
            let patience_us = if leaves { random.below(60_000) } else { PATIENT };
            let path = random.pick(&PATHS);
            self.arrivals.push(Arrival { at_us: self.at_us, proxy, worker, client, path, patience_us });
        }
    }
}

/// When all proxies have heard of each other, where they do that first.
const ACQUAINTED_US: u64 = 2_000_000;

/// Every worker asks about every client twice before anything else happens: the second time it hears of all.
fn acquaintance((proxies, workers, clients): (usize, usize, usize), mut later: Vec<Arrival>) -> Vec<Arrival> {
    let mut arrivals = Vec::new();
    for round_us in [0, 1_000_000] {
        for (proxy, worker, client) in (0..proxies * workers * clients)
            .map(|index| (index % proxies, index / proxies % workers, index / proxies / workers))
        {
            arrivals.push(Arrival {
                at_us: round_us,
                proxy,
                worker,
                client,
                path: PATHS[0],
                patience_us: PATIENT,
            });
        }
    }
    for arrival in &mut later {
        arrival.at_us += ACQUAINTED_US;
    }
    arrivals.extend(later);
    arrivals
}

/// Requests in phases, each at its own multiple of the limit.
fn arrivals(
    random: &mut Random,
    (proxies, workers, clients): (usize, usize, usize),
    limit: TokenBucket,
) -> Vec<Arrival> {
    let skew =
        |random: &mut Random, count| if random.chance(500) { Skew::even(count) } else { Skew::zipf(count) };
    let mut crowd = Crowd {
        to_proxy: skew(random, proxies),
        workers: workers as u64,
        to_client: skew(random, clients),
        leavers_per_mille: random.pick(&[0, 0, 100]),
        arrivals: Vec::new(),
        at_us: random.below(10_000),
    };
    // In microseconds, at the limit's own rate.
    let gap_us = (limit.parts_per_token() / limit.parts_per_micro()).clamp(100, 200_000);
    let most = random.between(20, 250);
    let is_trap = random.chance(500);
    while (crowd.arrivals.len() as u64) < most {
        if is_trap {
            // Leases are taken, then nothing happens for a while, then all ask for all there is.
            for _ in 0..random.between(1, 4) {
                let (count, mean_us) = (random.between(2, 15), random.pick(&[500, 2_000, 10_000]));
                crowd.ask(random, count, mean_us, true);
                crowd.at_us += random.pick(&[0, 10_000, 100_000, 300_000, 2_000_000]);
            }
            let count = limit.capacity().min(80) + 10;
            let (mean_us, is_alone) = (random.pick(&[0, 100, 1_000]), random.chance(300));
            crowd.ask(random, count, mean_us, is_alone);
        } else {
            // At a multiple of the limit, or fast in any case, so that a bucket is emptied before it refills.
            let mean_us = match random.below(10) {
                0..4 => gap_us * random.pick(&[20, 50, 100, 200, 400]) / 100,
                4..8 => random.pick(&[2_000, 5_000, 20_000]),
                _ => 0,
            };
            let (count, is_alone) = (random.between(1, 60), random.chance(400));
            crowd.ask(random, count, mean_us, is_alone);
            crowd.at_us += random.pick(&[0, 0, 50_000, 250_000, 1_000_000]);
        }
    }
    crowd.arrivals
}
