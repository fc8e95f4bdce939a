//! What policies make of a request that they apply to: its limit, its cost and its store key.

use super::told::Told;
use super::values::Request;
use super::{cost, query};
use crate::key::store_key;
use crate::matching::PathMatch;
use crate::policy::{Cost, CostSource, KeyPart, Limit, Plan, Policy, Scope};

impl<'a> Request<'a> {
    /// The limit that holds for this request: the one of its plan, with the plan's name, or the policy's own.
    pub(crate) fn limit(&mut self, policy: &'a Policy) -> (Limit, Option<&'a str>) {
        let planned = policy.plan.as_ref().and_then(|plan| plan.limit(self.plan_name(plan)?));
        planned.map_or((policy.limit, None), |(name, limit)| (limit, Some(name)))
    }

    /// The name of the plan that the request has.
    pub(crate) fn plan_name(&mut self, plan: &'a Plan) -> Option<&[u8]> {
        self.read_first(&plan.from);
        plan.from.iter().find_map(|source| self.known(source))
    }

    /// Whether the request has all identities that a policy's key asks for.
    pub(crate) fn has_identity(&mut self, policy: &'a Policy) -> bool {
        policy.key.iter().all(|part| match part {
            KeyPart::Identity(sources) => self.read_first(sources),
            KeyPart::Scope(_) => true,
        })
    }

    /// What the request takes.
    pub(crate) fn cost(&mut self, cost: &'a Cost) -> u64 {
        let told = match cost {
            Cost::Fixed(tokens) => return *tokens,
            Cost::Told(told) => told,
        };
        let value = match &told.source {
            CostSource::Query(name) => query::value(self.target(), name),
            CostSource::Header(name) => match self.lines(name, true) {
                None => Told::Absent,
                Some(lines) => match lines.sole_value() {
                    Some(value) => Told::Value(value.to_vec()),
                    None if lines.is_empty() => Told::Absent,
                    None => Told::Ambiguous,
                },
            },
        };
        cost::tokens(&value, told)
    }

    /// The store key of a policy, under a plan where the request has one that it knows, of one of its shards where it has
    /// several.
    pub(crate) fn key(&mut self, policy: &'a Policy, plan: Option<&str>, shard: Option<u32>) -> String {
        // What is needed is read first, so that the key is then written from what is kept, without copies.
        for part in &policy.key {
            match part {
                KeyPart::Identity(sources) => {
                    self.read_first(sources);
                }
                KeyPart::Scope(Scope::Method) => drop(self.method()),
                KeyPart::Scope(Scope::Path) => drop(self.path()),
                KeyPart::Scope(Scope::Route) => drop(self.route()),
                KeyPart::Scope(Scope::Host) => drop(self.host()),
            }
        }
        let identities = policy.key.iter().filter_map(|part| match part {
            KeyPart::Identity(sources) => Some(self.identity(sources)),
            KeyPart::Scope(_) => None,
        });
        let scopes = policy.key.iter().filter_map(|part| match part {
            KeyPart::Identity(_) => None,
            KeyPart::Scope(Scope::Method) => self.method.as_deref(),
            KeyPart::Scope(Scope::Path) => match &policy.matcher.conditions.path {
                Some(PathMatch::Template(template)) => Some(template.text().as_bytes()),
                _ => self.known_path(),
            },
            KeyPart::Scope(Scope::Route) => self.route.as_deref(),
            KeyPart::Scope(Scope::Host) => self.host.as_deref(),
        });
        store_key(identities, shard, (&policy.name, plan), scopes)
    }
}
