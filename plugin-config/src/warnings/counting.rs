//! Where and how a policy counts, and what counts nothing.

use limiter::matching::PathMatch;
use limiter::policy::{Cost, Limit, OnFailure, Policy, Sync};
use limiter::quota::TokenBucket;

use super::subject::{Subject, key};
use super::{Concern, Warning};
use crate::Config;
use crate::error::Remedy;

/// Below this a lease is hardly ever more than one token.
const FEW_TOKENS: u64 = 10;
/// Buckets that fill in this part of a second are full again before an async report of them is answered.
const PARTS_OF_A_SECOND: u128 = 5;

const EXACT: &str = "use \"exact\"";
const GREATER: &str = "use a capacity of a second's rate, or \"lease\"";
const CLOSED: &str = "use {\"closed\": {\"retry_after\": \"5s\"}} or \"share\"";
const HARMLESS: &str = "leave it where the limit is for a while only, or remove it";
/// Words in the paths of what guards accounts.
const LOGINS: [&str; 12] = [
    "login",
    "logins",
    "signin",
    "auth",
    "oauth",
    "oauth2",
    "token",
    "tokens",
    "password",
    "passwords",
    "otp",
    "reset",
];

/// Whether no policy asks the companion.
pub(super) fn asks_nobody(config: &Config) -> bool {
    config.policies.iter().all(|policy| policy.sync == Sync::Local)
}

pub(super) fn warn(subject: &Subject<'_>, warnings: &mut Vec<Warning>) {
    let policy = subject.policy;
    let Some(capacity) = subject.smallest_capacity() else {
        return warn_of_nothing(subject, warnings);
    };
    let sync = [key("sync")];
    if matches!(policy.sync, Sync::Lease(_)) && capacity < FEW_TOKENS {
        let concern = Concern::TinyLease { capacity };
        warnings.push(subject.warning(&sync, Some("\"lease\""), concern, Remedy::Do(EXACT)));
    }
    if policy.sync == Sync::Async && subject.buckets().any(|bucket| fills_at_once(&bucket)) {
        warnings.push(subject.warning(&sync, None, Concern::SlowReports, Remedy::Do(GREATER)));
    }
    if policy.sync.on_failure() == Some(OnFailure::Open) && !policy.shadow && is_login(policy) {
        let steps = [key("on_failure")];
        warnings.push(subject.warning(&steps, Some("\"open\""), Concern::OpenLogin, Remedy::Do(CLOSED)));
    }
}

/// Warns of keys about counting where nothing is counted.
fn warn_of_nothing(subject: &Subject<'_>, warnings: &mut Vec<Warning>) {
    let policy = subject.policy;
    let counting = [
        ("cost", policy.cost != Cost::Fixed(1)),
        ("shards", policy.shards != 1),
        ("sync", true),
        ("on_failure", true),
    ];
    let refuses = policy.limits().any(|limit| limit != Limit::Unlimited);
    let refusing = [("shadow", policy.shadow && !refuses), ("response", !refuses)];
    let dead = counting.map(|key| (key, Concern::NothingCounted)).into_iter();
    for ((name, is_dead), concern) in dead.chain(refusing.map(|key| (key, Concern::NothingRefused))) {
        let steps = [key(name)];
        if is_dead && subject.written(&steps).is_some() {
            warnings.push(subject.warning(&steps, None, concern, Remedy::Do(HARMLESS)));
        }
    }
}

fn fills_at_once(bucket: &TokenBucket) -> bool {
    let seconds = u128::from(bucket.rate().period().seconds());
    u128::from(bucket.capacity()) * seconds * PARTS_OF_A_SECOND <= u128::from(bucket.rate().count())
}

/// Whether a policy's path looks like one where passwords are tried.
fn is_login(policy: &Policy) -> bool {
    let path = match &policy.matcher.conditions.path {
        Some(PathMatch::Exact(path) | PathMatch::Prefix(path)) => path,
        Some(PathMatch::Template(template)) => template.text(),
        Some(PathMatch::Regex(pattern)) => pattern.text(),
        None => return false,
    };
    let path = path.to_ascii_lowercase();
    let is_known = |word: &str| LOGINS.contains(&word);
    let words = path.split(|char: char| !char.is_ascii_alphanumeric());
    // `/sign-in` and `/sign_in` are one word.
    let segments = path.split('/').map(|segment| segment.replace(['-', '_'], ""));
    words.into_iter().any(is_known) || segments.into_iter().any(|segment| is_known(&segment))
}
