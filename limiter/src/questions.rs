//! What the store is asked, and whether an answer is one to that.

use core::time::Duration;

use crate::applied::{Applied, Asks};
use crate::calls::{Question, RequestId, Sent, SentCharge, SentLease};
use crate::errand::Errand;
use crate::policy::Policy;
use crate::quota::TokenBucket;
use crate::wire::{Charge, Charged, Limit, Report, Take, Taken};

/// What a report weighs beside its charge. The store goes through the holders that report on its key, which takes it
/// up to a third of a millisecond where there are a hundred: of what else a call may hold, a call of reports would
/// be late, and with it the calls of all others.
const REPORT_CHARGES: usize = 7;

/// What a question weighs in charges, and the bytes of their keys.
pub(crate) fn size_of<'a>(
    question: &Question,
    applied_of: impl Fn(&RequestId) -> &'a [Applied],
) -> (usize, usize) {
    match question {
        Question::Request(request) => {
            let asked = applied_of(request).iter().filter(|one| one.is_asked());
            asked.fold((0, 0), |(charges, bytes), one| {
                (charges + weight_of(one.report.as_ref()), bytes + one.key.len())
            })
        }
        Question::Errand(errand) => (weight_of(errand.report.as_ref()), errand.key.len()),
    }
}

fn weight_of(report: Option<&Report>) -> usize {
    1 + report.map_or(0, |_| REPORT_CHARGES)
}

/// The question of a request that waits.
pub(crate) fn request_take(request: RequestId, applied: &[Applied], policies: &[Policy]) -> (Take, Sent) {
    let charges: Vec<Charge> = applied.iter().filter_map(|one| charge_of(one, policies)).collect();
    let sent = Sent { request: Some(request), charges: charges.iter().map(sent_charge).collect() };
    (Take { charges }, sent)
}

/// The question that nobody waits for.
pub(crate) fn errand_take(errand: Errand) -> (Take, Sent) {
    let Errand { key, quota, lease, report } = errand;
    let charge = Charge { key, limit: Limit::TokenBucket(quota), cost: 0, shadow: false, lease, report };
    let sent = Sent { request: None, charges: vec![sent_charge(&charge)] };
    (Take { charges: vec![charge] }, sent)
}

/// What the store is asked about a policy.
fn charge_of(one: &Applied, policies: &[Policy]) -> Option<Charge> {
    let counted = one.counted(policies)?;
    let lease = match &one.asks {
        Asks::No => return None,
        Asks::Cost => None,
        Asks::Lease(ask) => Some(ask.clone()),
    };
    Some(Charge {
        key: one.key.clone(),
        limit: Limit::TokenBucket(counted.quota),
        cost: counted.cost,
        shadow: counted.policy.shadow,
        lease,
        report: one.report.clone(),
    })
}

fn sent_charge(charge: &Charge) -> SentCharge {
    let Limit::TokenBucket(quota) = charge.limit;
    let lease = charge.lease.as_ref().map(|ask| SentLease {
        id: ask.id,
        is_wanted: ask.want > 0,
        ttl: Duration::from_micros(ask.ttl_us),
    });
    let reported = charge.report.as_ref().map(|report| report.to);
    SentCharge { key: charge.key.clone(), quota, cost: charge.cost, shadow: charge.shadow, lease, reported }
}

/// Microseconds until `cost` tokens are there, of a bucket that is full in `full_us`; not a moment too long.
pub(crate) fn refill_us(quota: &TokenBucket, cost: u64, full_us: u64) -> u64 {
    let beyond = quota.parts_of(cost).map_or(0, |parts| quota.parts() - parts);
    full_us.saturating_sub(quota.micros_for(beyond))
}

pub(crate) fn is_failed(answer: &Taken) -> bool {
    matches!(answer, Taken::Failed { .. })
}

/// Whether an answer is one to this question, and does not contradict itself: a take is admitted if and only
/// if every enforced charge fits.
pub(crate) fn fits(sent: &Sent, answer: &Taken) -> bool {
    let Taken::Decided { admitted, charges } = answer else { return false };
    let passes = |(asked, charged): (&SentCharge, &Charged)| asked.shadow || charged.wait_us == Some(0);
    charges.len() == sent.charges.len() && *admitted == sent.charges.iter().zip(charges).all(passes)
}
