//! `shards`: into how many buckets a key is divided.

use limiter::quota::TokenBucket;

use crate::error::{Problem, Remedy};
use crate::policy::Limits;
use crate::report::{Report, Reported};
use crate::spot::Spot;

/// The most shards of a policy.
pub const MAX_SHARDS: u32 = 64;

const ZERO: &str = "use 1 to 64, or leave it out for one bucket a key";
const LOCAL: &str =
    "remove it, or use another \"sync\" than \"local\": a bucket in the proxy has no hot slot";
const GREATER: &str = "a limit with a greater capacity and rate";

/// The number of shards: 1 to [`MAX_SHARDS`], of which each works under all `limits`.
pub(crate) fn read(
    spot: &Spot<'_>,
    is_local: bool,
    limits: &Limits<'_>,
    report: &mut Report,
) -> Result<u32, Reported> {
    let number = spot.positive_up_to(MAX_SHARDS.into(), ZERO, report)?;
    // It fits, being in range.
    let shards = u32::try_from(number).unwrap_or(MAX_SHARDS);
    if is_local {
        return Err(spot.refuse(Problem::Dead, Remedy::Do(LOCAL), report));
    }
    let most = limits.buckets().map(|(plan, bucket)| (plan, most_shards(bucket, shards)));
    match most.min_by_key(|(_, most)| *most) {
        Some((plan, most)) if most < shards => {
            let problem = Problem::TooManyShards { plan: plan.cloned() };
            Err(spot.refuse(problem, Remedy::AtMostOr(most.into(), GREATER), report))
        }
        _ => Ok(shards),
    }
}

/// Into how many shards a bucket can be divided, and into any smaller number: at least 1, at most `wanted`.
fn most_shards(bucket: &TokenBucket, wanted: u32) -> u32 {
    let works = |shards: &u32| (0..*shards).all(|number| bucket.shard(*shards, number.into()).is_some());
    (2..=wanted).take_while(works).last().unwrap_or(1)
}
