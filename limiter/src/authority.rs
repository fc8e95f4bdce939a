//! The reference model of the store: what the scripts in `lua/` must answer, written from the rules of
//! [`crate::wire`] and [`crate::bucket`]. It stands in for companion and store in tests and simulations.

use std::collections::BTreeMap;

use crate::bucket::{Bucket, Fit, Standing};
use crate::time::Instant;
use crate::wire::{Charge, Charged, Limit, Take, TakeReply, TakeRequest, Taken};

/// All buckets of a store.
#[derive(Clone, Debug, Default)]
pub struct Authority {
    buckets: BTreeMap<String, Bucket>,
}

impl Authority {
    /// Decides a batch, one take after the other.
    pub fn decide(&mut self, request: &TakeRequest, now: Instant) -> TakeReply {
        TakeReply { takes: request.takes.iter().map(|take| self.take(take, now)).collect() }
    }

    /// Decides one take: charges all that fits, or nothing where an enforced charge does not fit.
    pub fn take(&mut self, take: &Take, now: Instant) -> Taken {
        let before: Vec<Standing> = take.charges.iter().map(|charge| self.standing(charge, now)).collect();
        let admitted = take
            .charges
            .iter()
            .zip(&before)
            .all(|(charge, standing)| charge.shadow || standing.fit == Fit::Now);
        let charges = take
            .charges
            .iter()
            .zip(before)
            .map(|(charge, standing)| {
                if admitted && standing.fit == Fit::Now {
                    let Limit::TokenBucket(quota) = charge.limit;
                    let charged = self.bucket(charge, now).charge(&quota, charge.cost);
                    self.buckets.insert(charge.key.clone(), charged);
                    told(Standing { fit: Fit::Now, ..charged.standing(&quota, charge.cost, now) })
                } else {
                    told(standing)
                }
            })
            .collect();
        Taken::Decided { admitted, charges }
    }

    /// How a charge's bucket stands. Changes nothing.
    pub fn standing(&self, charge: &Charge, now: Instant) -> Standing {
        let Limit::TokenBucket(quota) = charge.limit;
        self.bucket(charge, now).standing(&quota, charge.cost, now)
    }

    fn bucket(&self, charge: &Charge, now: Instant) -> Bucket {
        let Limit::TokenBucket(quota) = charge.limit;
        self.buckets
            .get(&charge.key)
            .map_or_else(|| Bucket::full(&quota, now), |bucket| bucket.settle(&quota, now))
    }
}

fn told(standing: Standing) -> Charged {
    let wait_us = match standing.fit {
        Fit::Now => Some(0),
        Fit::After(wait_us) => Some(wait_us),
        Fit::Never => None,
    };
    Charged { remaining: standing.remaining, wait_us, full_us: standing.full_us }
}
