//! A policy that is looked at: what was written, and what was read.

use limiter::policy::{Limit, Policy};
use limiter::quota::TokenBucket;

use super::{Concern, Warning};
use crate::error::Remedy;
use crate::node::Node;
use crate::place::{Path, Step};
use crate::{Config, shown};

/// A policy.
pub(super) struct Subject<'a> {
    pub(super) index: usize,
    pub(super) policy: &'a Policy,
    node: &'a Node,
}

impl<'a> Subject<'a> {
    /// All policies of a configuration.
    pub(super) fn all(root: &'a Node, config: &'a Config) -> impl Iterator<Item = Self> {
        // A valid configuration has as many as were written.
        let nodes = match root.get("policies") {
            Some(Node::List(nodes)) => nodes.as_slice(),
            _ => &[],
        };
        let pairs = nodes.iter().zip(config.policies.iter()).enumerate();
        pairs.map(|(index, (node, policy))| Self { index, policy, node })
    }

    /// A value of the policy as it was written; `None` where it was left out.
    pub(super) fn written(&self, steps: &[Step]) -> Option<&'a Node> {
        steps.iter().try_fold(self.node, |node, step| match (step, node) {
            (Step::Key(key), _) => node.get(key),
            (Step::Index(index), Node::List(items)) => items.get(*index),
            (Step::Index(_), _) => None,
        })
    }

    /// A warning about a value of the policy; `default` is what holds where it was left out, as JSON.
    pub(super) fn warning(
        &self,
        steps: &[Step],
        default: Option<&str>,
        concern: Concern,
        remedy: Remedy,
    ) -> Warning {
        let mut path = vec![key("policies"), Step::Index(self.index)];
        path.extend_from_slice(steps);
        let value = match self.written(steps) {
            // A whole policy would be shown by its first keys, which say little more than the path.
            Some(_) if steps.is_empty() => None,
            Some(node) => Some(shown::value(node)),
            None => default.map(str::to_owned),
        };
        Warning { path: Path(path), value, concern, remedy }
    }

    /// The smallest bucket that the policy counts in, a shard where it has several.
    pub(super) fn smallest_capacity(&self) -> Option<u64> {
        let shards = u64::from(self.policy.shards.max(1));
        self.buckets().map(|bucket| bucket.capacity() / shards).min()
    }

    /// The buckets of the policy and its plans.
    pub(super) fn buckets(&self) -> impl Iterator<Item = TokenBucket> {
        buckets(self.policy)
    }
}

/// The buckets of a policy and its plans.
pub(super) fn buckets(policy: &Policy) -> impl Iterator<Item = TokenBucket> {
    policy.limits().filter_map(|limit| match limit {
        Limit::TokenBucket(bucket) => Some(bucket),
        Limit::Unlimited | Limit::Blocked => None,
    })
}

pub(super) fn key(key: &str) -> Step {
    Step::Key(key.to_owned())
}
