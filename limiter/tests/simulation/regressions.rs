//! The smallest schedules of violations that were found once.

use core::time::Duration;

use limiter::authority::Authority;
use limiter::policy::Sync;

use crate::plan::{Arrival, CLOSED, Network, PATIENT, Plan, policy};
use crate::promises::run;
use crate::world::Flaw;

/// Requests of one client at the only worker.
fn asks(count: usize, at_us: u64, path: &'static str) -> impl Iterator<Item = Arrival> {
    (0..count).map(move |_| Arrival { at_us, proxy: 0, worker: 0, client: 0, path, patience_us: PATIENT })
}

/// Ten requests take local tokens and wait for a store that does not answer. Half of those tokens are back by
/// time before they are given back, and what they leave is spent by others just before that.
#[test]
fn what_time_has_refilled_is_not_given_back_to_a_local_bucket_again() {
    let plan = Plan {
        seed: 0,
        proxies: 1,
        workers: 1,
        policies: vec![
            policy("local", (10, "100/s"), Sync::Local, None),
            policy("exact", (10, "10/s"), Sync::Exact(CLOSED), Some("/b")),
        ],
        slots: 1,
        timeout: Duration::from_millis(50),
        network: Network { lost_per_mille: 1_000, ..Network::good((0, 0)) },
        conflicts_per_mille: 0,
        is_acquainted: false,
        arrivals: asks(10, 0, "/b").chain(asks(4, 49_000, "/a")).chain(asks(10, 51_000, "/a")).collect(),
        faults: Vec::new(),
    };
    let found = run(&plan, Box::new(Authority::default()), Flaw::None);
    assert!(found.is_none(), "{found:?}");
}
