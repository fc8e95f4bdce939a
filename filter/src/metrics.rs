//! Counters, which Envoy shows as `wasmcustom.tidegate.…`. A policy's name is in them, a client's never.

use std::cell::RefCell;
use std::collections::BTreeMap;

use limiter::decision::{Mark, Outcome};
use limiter::policy::Policy;

use crate::host;

thread_local! {
    /// Ids by name. Each definition makes a new id in the proxy, so a reload must not define again.
    static IDS: RefCell<BTreeMap<String, Option<u32>>> = const { RefCell::new(BTreeMap::new()) };
}

/// A counter; one that the proxy refused to define counts nothing.
#[derive(Clone, Copy)]
pub(crate) struct Counter(Option<u32>);

impl Counter {
    fn named(name: String) -> Self {
        IDS.with_borrow_mut(|ids| {
            let id = ids.get(&name).copied().unwrap_or_else(|| {
                let id = host::define_counter(&name).ok();
                ids.insert(name, id);
                id
            });
            Self(id)
        })
    }

    pub(crate) fn add(self, count: u64) {
        if let (Some(id), 1..) = (self.0, count) {
            // Nothing can be done about a counter that does not count.
            let _ = host::increment(id, count);
        }
    }
}

/// What one policy did.
struct PolicyCounters {
    admitted: Counter,
    refused: Counter,
    shadow_refused: Counter,
    unprotected: Counter,
    unavailable: Counter,
}

/// The counters of one configuration.
pub(crate) struct Metrics {
    policies: Vec<PolicyCounters>,
    /// Requests that had to wait for the companion.
    pub(crate) waits: Counter,
    pub(crate) callouts: Counter,
    pub(crate) callouts_failed: Counter,
    pub(crate) evictions: Counter,
    pub(crate) breaker_opened: Counter,
}

impl Metrics {
    pub(crate) fn new(policies: &[Policy]) -> Self {
        let counters = |policy: &Policy| {
            let named = |outcome| Counter::named(format!("tidegate.policy.{}.{outcome}", policy.name));
            PolicyCounters {
                admitted: named("admitted"),
                refused: named("refused"),
                shadow_refused: named("shadow_refused"),
                unprotected: named("unprotected"),
                unavailable: named("unavailable"),
            }
        };
        Self {
            policies: policies.iter().map(counters).collect(),
            waits: Counter::named("tidegate.waits".to_owned()),
            callouts: Counter::named("tidegate.callouts".to_owned()),
            callouts_failed: Counter::named("tidegate.callouts_failed".to_owned()),
            evictions: Counter::named("tidegate.evictions".to_owned()),
            breaker_opened: Counter::named("tidegate.breaker_opened".to_owned()),
        }
    }

    pub(crate) fn count(&self, marks: &[Mark]) {
        for mark in marks {
            let Some(policy) = self.policies.get(mark.policy) else { continue };
            let counter = match mark.outcome {
                Outcome::Admitted => policy.admitted,
                Outcome::Refused => policy.refused,
                Outcome::ShadowRefused => policy.shadow_refused,
                Outcome::Unprotected => policy.unprotected,
                Outcome::Unavailable => policy.unavailable,
                // Another policy's doing, and counted there.
                Outcome::Spared => continue,
            };
            counter.add(1);
        }
    }
}
