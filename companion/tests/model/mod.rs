//! What the script must answer, from the definition: the buckets of [`limiter::bucket`] in a store whose
//! keys expire.

use std::collections::{BTreeMap, BTreeSet};

use limiter::bucket::{Bucket, Fit};
use limiter::quota::TokenBucket;
use limiter::time::Instant;
use limiter::wire::{Charge, Limit, TakeRequest};

/// The reference store.
#[derive(Default)]
pub(crate) struct Model {
    stored: BTreeMap<String, Stored>,
}

enum Stored {
    Bucket { bucket: Bucket, expires_ms: u64 },
    Garbage,
}

impl Model {
    /// Somebody else writes to a key.
    pub(crate) fn spoil(&mut self, key: &str) {
        self.stored.insert(key.to_owned(), Stored::Garbage);
    }

    /// A key is removed.
    pub(crate) fn reset(&mut self, key: &str) {
        self.stored.remove(key);
    }

    /// The integers that the script must answer.
    pub(crate) fn decide(&mut self, request: &TakeRequest, now_us: u64) -> Vec<i64> {
        let now = Instant::from_micros(now_us);
        self.stored.retain(|_, stored| match stored {
            Stored::Bucket { expires_ms, .. } => now.as_micros() / 1000 <= *expires_ms,
            Stored::Garbage => true,
        });
        let mut answer = Vec::new();
        for take in &request.takes {
            self.take(&take.charges, now, &mut answer);
        }
        // All keys of a batch are written at its end, by the last quota that they were settled to.
        let keys: BTreeSet<_> = request.takes.iter().flat_map(|take| &take.charges).map(|c| &c.key).collect();
        for key in keys {
            if matches!(self.stored.get(key), Some(Stored::Bucket { bucket, .. }) if bucket.spent == 0) {
                self.stored.remove(key);
            }
        }
        answer
    }

    fn take(&mut self, charges: &[Charge], now: Instant, answer: &mut Vec<i64>) {
        if charges.iter().any(|charge| matches!(self.stored.get(&charge.key), Some(Stored::Garbage))) {
            answer.push(-1);
            answer.extend(vec![0; 3 * charges.len()]);
            return;
        }
        let settled: Vec<_> = charges.iter().map(|charge| self.settled(charge, now)).collect();
        let fits: Vec<_> = charges
            .iter()
            .zip(&settled)
            .map(|(charge, bucket)| bucket.standing(&quota(charge), charge.cost, now).fit)
            .collect();
        let admitted = charges.iter().zip(&fits).all(|(charge, fit)| charge.shadow || *fit == Fit::Now);
        answer.push(i64::from(admitted));
        for ((charge, bucket), fit) in charges.iter().zip(settled).zip(fits) {
            let quota = quota(charge);
            let bucket =
                if admitted && fit == Fit::Now { bucket.charge(&quota, charge.cost) } else { bucket };
            let standing = bucket.standing(&quota, charge.cost, now);
            answer.push(i64::try_from(standing.remaining).unwrap());
            answer.push(match fit {
                Fit::Now => 0,
                Fit::After(wait_us) => i64::try_from(wait_us).unwrap(),
                Fit::Never => -1,
            });
            answer.push(i64::try_from(standing.full_us).unwrap());
            let expires_ms = now.as_micros() / 1000 + standing.full_us / 1000 + 1;
            self.stored.insert(charge.key.clone(), Stored::Bucket { bucket, expires_ms });
        }
    }

    fn settled(&self, charge: &Charge, now: Instant) -> Bucket {
        let quota = quota(charge);
        match self.stored.get(&charge.key) {
            // A full bucket is the absence of state.
            Some(Stored::Bucket { bucket, .. }) if bucket.spent > 0 => bucket.settle(&quota, now),
            _ => Bucket::full(&quota, now),
        }
    }
}

fn quota(charge: &Charge) -> TokenBucket {
    let Limit::TokenBucket(quota) = charge.limit;
    quota
}
