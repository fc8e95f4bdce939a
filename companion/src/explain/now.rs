//! How the buckets of a request stand in a store.

use std::time::Duration;

use limiter::explain::{Counted, Explanation, Part};
use limiter::wire::{Charge, Charged, Limit, Take, TakeRequest, Taken};
use serde::Serialize;
use tokio::time::{Instant, sleep};

use crate::store::Store;
use crate::take;

/// How a bucket stands, with nothing charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Now {
    /// Whole tokens left.
    pub remaining: u64,
    /// Microseconds until the request's cost is there: 0 where it is; nothing where it never is.
    pub wait_us: Option<u64>,
    /// Microseconds until the bucket is full.
    pub full_us: u64,
}

/// How long between two looks at a store that is being connected to.
const PAUSE: Duration = Duration::from_millis(20);

/// Asks for the buckets of all policies that count in the store; of the others there is nothing to know. The first shard
/// stands for all.
pub(super) async fn ask(
    store: &Store,
    explanation: &Explanation,
    timeout: Duration,
) -> Result<Vec<Option<Now>>, String> {
    let deadline = Instant::now() + timeout;
    // The store connects in the background.
    while let Err(error) = store.ready().await {
        if Instant::now() >= deadline {
            return Err(error.to_string());
        }
        sleep(PAUSE).await;
    }
    let mut all = Vec::new();
    for explained in &explanation.policies {
        all.push(match &explained.part {
            Part::Counts(counted) if counted.sync != "local" => Some(one(store, counted).await?),
            _ => None,
        });
    }
    Ok(all)
}

async fn one(store: &Store, counted: &Counted) -> Result<Now, String> {
    let quota = counted.limit.shard(counted.shards, 0).map_or(counted.limit, |(part, _)| part);
    let charge = Charge {
        key: counted.key.clone(),
        limit: Limit::TokenBucket(quota),
        // Nothing is taken, so the store only says how it stands.
        cost: 0,
        shadow: false,
        lease: None,
        report: None,
    };
    let request = TakeRequest { takes: vec![Take { charges: vec![charge] }] };
    let answer = store.run(take::call(&request)).await.map_err(|error| error.to_string())?;
    let reply = take::reply(&request, &answer).map_err(|error| error.to_string())?;
    let charged = match reply.takes.into_iter().next() {
        Some(Taken::Decided { charges, .. }) => charges.into_iter().next(),
        Some(Taken::Failed { error }) => return Err(error),
        None => None,
    };
    let Charged { remaining, full_us, .. } = charged.ok_or("it answers something else")?;
    let wait_us = quota.parts_of(counted.cost).map(|parts| {
        if remaining >= counted.cost {
            0
        } else {
            full_us.saturating_sub(quota.micros_for(quota.parts() - parts))
        }
    });
    Ok(Now { remaining, wait_us, full_us })
}
