//! Policies that others make useless.

use limiter::matching::{Conditions, HostMatch, Match, PathMatch, Values};
use limiter::policy::{Cost, KeyPart, Limit, OnMissing, Policy};
use limiter::quota::TokenBucket;

use super::subject::Subject;
use super::{Concern, Warning};
use crate::Config;
use crate::error::Remedy;

const BLOCKED: &str = "remove one of them, or make \"match\" of the other narrower, as with \"except\"";
const SAME: &str = "remove one of them, or say in \"match\" or \"key\" what sets them apart";

pub(super) fn warn(subject: &Subject<'_>, config: &Config, warnings: &mut Vec<Warning>) {
    let policy = subject.policy;
    let others = || config.policies.iter().enumerate().filter(|(index, _)| *index != subject.index);
    // Of two that block the same, the first one does.
    let blocker = others().find(|(index, other)| {
        always_blocks(other)
            && covers(&other.matcher, &policy.matcher)
            && (*index < subject.index || !always_blocks(policy) || !covers(&policy.matcher, &other.matcher))
    });
    if let Some((index, _)) = blocker {
        let concern = Concern::BlockedBy { policy: index };
        warnings.push(subject.warning(&[], None, concern, Remedy::Do(BLOCKED)));
    } else if let Some((index, _)) = others().find(|(index, other)| {
        is_no_stricter(policy, other) && (*index < subject.index || !is_no_stricter(other, policy))
    }) {
        let concern = Concern::NoStricterThan { policy: index };
        warnings.push(subject.warning(&[], None, concern, Remedy::Do(SAME)));
    }
}

/// Whether no request that the policy's conditions fit ever passes.
fn always_blocks(policy: &Policy) -> bool {
    let has_identity = policy.key.iter().any(|part| matches!(part, KeyPart::Identity(_)));
    policy.limits().all(|limit| limit == Limit::Blocked)
        && !policy.shadow
        && !(has_identity && policy.on_missing == OnMissing::Skip)
}

/// Whether all that `policy` would refuse is refused by `other`, which counts the same in the same place.
fn is_no_stricter(policy: &Policy, other: &Policy) -> bool {
    let (Limit::TokenBucket(bucket), Limit::TokenBucket(narrow)) = (policy.limit, other.limit) else {
        return false;
    };
    let (Cost::Fixed(cost), Cost::Fixed(greater)) = (&policy.cost, &other.cost) else { return false };
    let are_alike = policy.matcher == other.matcher
        && policy.key == other.key
        && policy.on_missing == other.on_missing
        && policy.sync == other.sync;
    let are_plain = [policy, other].iter().all(|policy| policy.plan.is_none() && policy.shards == 1);
    // Costs would have to be weighed against the limits.
    are_alike && are_plain && !other.shadow && cost == greater && is_within(&narrow, &bucket)
}

/// Whether a bucket lets no more pass than another one, at any time.
fn is_within(narrow: &TokenBucket, wide: &TokenBucket) -> bool {
    let per_day = |bucket: &TokenBucket| {
        u128::from(bucket.rate().count()) * 86_400 / u128::from(bucket.rate().period().seconds())
    };
    narrow.capacity() <= wide.capacity() && per_day(narrow) <= per_day(wide)
}

/// Whether one match holds wherever another one does. May say no where that is not plain to see.
fn covers(wide: &Match, narrow: &Match) -> bool {
    let same_or_none = wide.except.is_empty() || wide.except == narrow.except;
    same_or_none && are_covered(&wide.conditions, &narrow.conditions)
}

fn are_covered(wide: &Conditions, narrow: &Conditions) -> bool {
    is_subset(&wide.methods, &narrow.methods, |wide, narrow| wide == narrow)
        && is_subset(&wide.hosts, &narrow.hosts, covers_host)
        && is_subset(&wide.routes, &narrow.routes, |wide, narrow| wide == narrow)
        && is_subset(&wide.cidrs, &narrow.cidrs, |wide, narrow| wide == narrow)
        && wide.headers.iter().all(|header| narrow.headers.contains(header))
        && match (&wide.path, &narrow.path) {
            (None, _) => true,
            (Some(_), None) => false,
            (Some(wide), Some(narrow)) => covers_path(wide, narrow),
        }
}

/// Whether each of `narrow` is in one of `wide`, where no entries stand for all that there are.
fn is_subset<T>(wide: &[T], narrow: &[T], covers: impl Fn(&T, &T) -> bool) -> bool {
    let is_in_one = |narrow: &T| wide.iter().any(|wide| covers(wide, narrow));
    wide.is_empty() || (!narrow.is_empty() && narrow.iter().all(is_in_one))
}

fn covers_host(wide: &HostMatch, narrow: &HostMatch) -> bool {
    match (wide, narrow) {
        (HostMatch::Below(_), HostMatch::Exact(host)) => wide.holds(host.as_bytes()),
        (HostMatch::Below(_), HostMatch::Below(domain)) => wide == narrow || wide.holds(domain.as_bytes()),
        (HostMatch::Exact(_), _) => wide == narrow,
    }
}

fn covers_path(wide: &PathMatch, narrow: &PathMatch) -> bool {
    match (wide, narrow) {
        (_, PathMatch::Exact(path)) => wide.holds(path.as_bytes(), Values::Any),
        (PathMatch::Prefix(wide), PathMatch::Prefix(narrow)) => narrow.starts_with(wide),
        (PathMatch::Prefix(wide), PathMatch::Template(narrow)) => {
            // As far as the first variable.
            narrow.text().split('{').next().is_some_and(|literal| literal.starts_with(wide))
        }
        _ => wide == narrow,
    }
}
