//! What a request is to the policies: which apply, on which store key each counts it, and what it takes.

mod cookie;
mod cost;
mod counting;
mod given;
mod identity;
mod lines;
mod metadata;
mod query;
mod told;
mod values;

use core::net::IpAddr;

use crate::policies::Policies;
use crate::policy::{Limit, OnMissing};
use crate::quota::TokenBucket;
pub use given::Given;
pub(crate) use values::Request;

/// A request's attributes, read from the proxy when they are needed. Reading costs a host call, so each
/// is asked for at most once a request.
pub trait Attributes {
    /// The method; empty where there is none.
    fn method(&mut self) -> Vec<u8>;

    /// The request target as it arrived, with query; empty where there is none.
    fn target(&mut self) -> Vec<u8>;

    /// The host as it arrived, with port; empty where there is none.
    fn authority(&mut self) -> Vec<u8>;

    /// The client's address that the proxy trusts; `None` for a client without one (a Unix socket).
    fn address(&mut self) -> Option<IpAddr>;

    /// All values of a header, with commas between them; `None` where there is no such header.
    fn header(&mut self, name: &str) -> Option<Vec<u8>>;

    /// The first value of a header alone. Asked for only where a comma leaves a doubt.
    fn first_value(&mut self, name: &str) -> Option<Vec<u8>>;

    /// The name of the route; empty where there is none.
    fn route(&mut self) -> Vec<u8>;

    /// What a filter before this one has noted under this path: a namespace, and the way into it.
    fn metadata(&mut self, path: &[&str]) -> Option<Vec<u8>>;

    /// The same of what the route says.
    fn route_metadata(&mut self, path: &[&str]) -> Option<Vec<u8>>;
}

/// The namespace of metadata in which Envoy's JWT filter notes what it has verified.
pub const JWT_AUTHN: &str = "envoy.filters.http.jwt_authn";

/// A policy that applies to a request, and what it is to do with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Index of the policy.
    pub policy: usize,
    /// The store key; empty where nothing is counted.
    pub key: String,
    /// The limit that holds for this request.
    pub terms: Terms,
    /// What the request takes, at least 1.
    pub cost: u64,
}

/// The limit that holds for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terms {
    /// A bucket.
    Bucket {
        /// The limit as clients are told it.
        whole: TokenBucket,
        /// What is charged: all of it, or a shard.
        part: TokenBucket,
    },
    /// No request passes.
    Blocked,
    /// The request lacks the identity that the policy insists on.
    NoIdentity,
}

/// The policies that apply to a request, in their order. Unlimited ones leave no trace. `turn` chooses among shards:
/// another number for every request.
pub fn demands<'a>(
    policies: &'a Policies,
    attributes: &'a mut dyn Attributes,
    turn: u64,
) -> impl Iterator<Item = Demand> + 'a {
    let mut request = Request::new(attributes);
    let applying = policies.applying(&mut request);
    applying.filter_map(move |index| {
        let policy = policies.get(index)?;
        let (limit, plan) = request.limit(policy);
        let demand = |key, terms, cost| Some(Demand { policy: index, key, terms, cost });
        if limit == Limit::Unlimited {
            return None;
        }
        if policy.on_missing != OnMissing::Anonymous && !request.has_identity(policy) {
            return match policy.on_missing {
                OnMissing::Deny => demand(String::new(), Terms::NoIdentity, 1),
                OnMissing::Skip | OnMissing::Anonymous => None,
            };
        }
        let Limit::TokenBucket(whole) = limit else { return demand(String::new(), Terms::Blocked, 1) };
        let cost = request.cost(&policy.cost);
        let shard = whole.shard(policy.shards, turn);
        let (part, number) = shard.map_or((whole, None), |(part, number)| (part, Some(number)));
        demand(request.key(policy, plan, number), Terms::Bucket { whole, part }, cost)
    })
}

#[cfg(test)]
mod tests;
