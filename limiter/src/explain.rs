//! What policies make of one request, in words: which apply and why the others do not, and what a first request would
//! be answered. Nothing of this runs on the way of a request.

mod answer;
mod conditions;

use serde::Serialize;

use crate::fields::Family;
use crate::matching::Values;
use crate::policies::Policies;
use crate::policy::{Limit, OnMissing, Policy};
use crate::quota::TokenBucket;
use crate::request::{Given, Request};

pub use answer::Answer;
pub use conditions::Unmet;

/// What all policies make of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// In the policies' order.
    pub policies: Vec<Explained>,
    /// What the request is answered: as the first one that all buckets see, unless their state was given.
    pub answer: Answer,
}

/// What a policy makes of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explained {
    /// The policy's name.
    pub policy: String,
    /// Whether it applies.
    #[serde(flatten)]
    pub part: Part,
}

/// Whether a policy applies to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Part {
    /// It does, and counts the request.
    Counts(Counted),
    /// It does, and lets nothing pass.
    Blocks {
        /// The plan whose limit that is; nothing for the policy's own.
        plan: Option<String>,
    },
    /// It does, and lacks the identity that it insists on.
    NoIdentity,
    /// It does not: a condition does not hold.
    Unmet(Unmet),
    /// It does not: it excepts such requests.
    Excepted,
    /// It does not: the request lacks the identity.
    Skipped,
    /// It sets no limit.
    Unlimited {
        /// The plan whose limit that is; nothing for the policy's own.
        plan: Option<String>,
    },
}

/// How a policy counts a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Counted {
    /// The key in the store; of the first shard where there are several.
    pub key: String,
    /// In how many buckets the key is counted.
    pub shards: u32,
    /// The limit; of all shards together.
    pub limit: TokenBucket,
    /// The plan whose limit that is; nothing for the policy's own.
    pub plan: Option<String>,
    /// The plan that the request names and the policy does not know.
    pub unknown_plan: Option<String>,
    /// Whether the request lacks the identity of the key, and shares the bucket of all that do.
    pub is_anonymous: bool,
    /// What the request takes.
    pub cost: u64,
    /// Where it is counted: a word of the configuration.
    pub sync: &'static str,
    /// Whether it is only watched.
    pub shadow: bool,
}

/// Explains what `policies` make of a request. `families` are the fields that responses carry. A reset that is told as
/// a point in time counts from 1970.
pub fn explain(policies: &Policies, families: &[Family], request: &Given) -> Explanation {
    let mut given = request.clone();
    let mut known = Request::new(&mut given);
    let explained = policies
        .iter()
        .map(|policy| Explained { policy: policy.name.clone(), part: part(policy, &mut known) })
        .collect();
    Explanation { policies: explained, answer: answer::of(policies, families, request, &[]) }
}

/// What a request is answered where buckets are full only after so many microseconds, by the policies' indices; those of
/// which nothing is said are full.
pub fn answer_now(
    policies: &Policies,
    families: &[Family],
    request: &Given,
    full_us: &[Option<u64>],
) -> Answer {
    answer::of(policies, families, request, full_us)
}

fn part<'a>(policy: &'a Policy, request: &mut Request<'a>) -> Part {
    if policy.limits().all(|limit| limit == Limit::Unlimited) {
        return Part::Unlimited { plan: None };
    }
    if let Some(unmet) = conditions::first_unmet(&policy.matcher.conditions, request, Values::Any) {
        return Part::Unmet(unmet);
    }
    let is_excepted = |except| conditions::first_unmet(except, request, Values::All).is_none();
    if policy.matcher.except.iter().any(is_excepted) {
        return Part::Excepted;
    }
    let named = policy.plan.as_ref().and_then(|plan| {
        let name = request.plan_name(plan)?;
        let limit = plan.limit(name).map(|(_, limit)| limit);
        Some((String::from_utf8_lossy(name).into_owned(), limit))
    });
    let (plan, unknown_plan, limit) = match named {
        Some((name, Some(limit))) => (Some(name), None, limit),
        Some((name, None)) => (None, Some(name), policy.limit),
        None => (None, None, policy.limit),
    };
    if limit == Limit::Unlimited {
        return Part::Unlimited { plan };
    }
    match policy.on_missing {
        OnMissing::Skip if !request.has_identity(policy) => return Part::Skipped,
        OnMissing::Deny if !request.has_identity(policy) => return Part::NoIdentity,
        _ => {}
    }
    let Limit::TokenBucket(limit) = limit else { return Part::Blocks { plan } };
    Part::Counts(Counted {
        key: request.key(policy, plan.as_deref(), limit.shard(policy.shards, 0).map(|(_, number)| number)),
        shards: policy.shards,
        limit,
        plan,
        unknown_plan,
        is_anonymous: !request.has_identity(policy),
        cost: request.cost(&policy.cost),
        sync: policy.sync.word(),
        shadow: policy.shadow,
    })
}

#[cfg(test)]
mod tests;
