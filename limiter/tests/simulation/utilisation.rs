//! How much of a limit leases leave unused: 100 proxies, one key, twice the demand that is allowed.

use core::time::Duration;

use limiter::authority::Authority;
use limiter::policy::Sync;

use crate::plan::{Arrival, CLOSED, Network, PATIENT, Plan, policy};
use crate::random::{Random, Skew};
use crate::world::{Flaw, World};

const PROXIES: usize = 100;

struct Figures {
    admitted: u64,
    requests: u64,
    calls: u64,
    granted: u64,
    returned: u64,
    unspent: u64,
}

impl Figures {
    fn of(world: &World<'_>) -> Self {
        let (counts, ledger) = (&world.checks.counts, &world.checks.ledger);
        Self {
            admitted: counts.admitted,
            requests: 0,
            calls: ledger.calls,
            granted: ledger.granted,
            returned: ledger.returned,
            unspent: ledger.unspent(),
        }
    }
}

/// Requests at random moments, `gap_us` apart on average, from 0 to `end_us`.
fn arrivals(skew: &Skew, gap_us: u64, end_us: u64) -> Vec<Arrival> {
    let mut random = Random::new(42);
    let mut at_us = 0;
    let mut arrivals = Vec::new();
    while at_us < end_us {
        let proxy = skew.draw(&mut random);
        arrivals.push(Arrival { at_us, proxy, worker: 0, client: 0, path: "/a", patience_us: PATIENT });
        at_us += random.below(2 * gap_us + 1);
    }
    arrivals
}

/// What happens after `from_us`, when the bucket's first filling is used up.
fn measure(sync: Sync, limit: (u64, &str), arrivals: Vec<Arrival>, from_us: u64) -> Figures {
    let mut plan = Plan {
        seed: 1,
        proxies: PROXIES,
        workers: 1,
        policies: vec![policy("p", limit, sync, None)],
        slots: 8,
        timeout: Duration::from_millis(50),
        network: Network::good((500, 2_500)),
        conflicts_per_mille: 0,
        is_acquainted: false,
        arrivals: Vec::new(),
        faults: Vec::new(),
    };
    let requests = arrivals.iter().filter(|arrival| arrival.at_us >= from_us).count();
    plan.arrivals = arrivals;
    let mut world = World::new(&plan, Box::new(Authority::default()), Flaw::None);
    world.run_until(from_us);
    let before = Figures::of(&world);
    world.run();
    assert!(world.checks.violation.is_none(), "{:?}", world.checks.violation);
    let after = Figures::of(&world);
    Figures {
        admitted: after.admitted - before.admitted,
        requests: requests as u64,
        calls: after.calls - before.calls,
        granted: after.granted - before.granted,
        returned: after.returned - before.returned,
        unspent: after.unspent.saturating_sub(before.unspent),
    }
}

#[test]
fn leases_leave_little_of_a_limit_unused() {
    println!(
        "| limit | demand | lease/exact | callouts per 1,000 (exact) | of tokens taken: granted, returned, unspent |"
    );
    println!("|---|---|---|---|---|");
    for (limit, gap_us, from_us, end_us, least) in [
        ((10_000, "10000/s"), 50, 1_500_000, 3_500_000, 990),
        ((1_000, "1000/m"), 30_000, 90_000_000, 390_000_000, 990),
        ((10, "10/m"), 3_000_000, 120_000_000, 7_320_000_000, 970),
    ] {
        for (name, skew) in [("even", Skew::even(PROXIES)), ("Zipf", Skew::zipf(PROXIES))] {
            let arrivals = arrivals(&skew, gap_us, end_us);
            let lease = measure(Sync::Lease(CLOSED), limit, arrivals.clone(), from_us);
            let exact = measure(Sync::Exact(CLOSED), limit, arrivals, from_us);
            let per_mille = lease.admitted * 1_000 / exact.admitted;
            println!(
                "| {} | {name} | {}.{:03} ({}/{}) | {} ({}) | {}, {}, {} |",
                limit.1,
                per_mille / 1_000,
                per_mille % 1_000,
                lease.admitted,
                exact.admitted,
                lease.calls * 1_000 / lease.requests,
                exact.calls * 1_000 / exact.requests,
                lease.granted,
                lease.returned,
                lease.unspent,
            );
            assert!(per_mille >= least, "{} with {name} demand admits {per_mille} of 1,000", limit.1);
        }
    }
}
