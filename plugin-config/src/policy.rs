//! `policies`: the limits themselves, each alone and all together.

use limiter::matching::Match;
use limiter::policies::Policies;
use limiter::policy::{Cost, Limit, MAX_NAME_BYTES, MAX_POLICIES, OnMissing, Plan, Policy, Response, Sync};
use limiter::quota::TokenBucket;
use limiter::wire::MAX_CHARGES;

use crate::error::{Problem, Remedy};
use crate::fields::Fields;
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::spot::Spot;
use crate::words::Words;
use crate::{cost, key, limit, matching, plan, response, shards, sync};

/// How policies are written.
pub(crate) const FORM: &str = "use a list of 1 to 64 policies";
const POLICY: &str = "use an object with \"name\", \"key\" and \"limit\"";
const NAME: &str = "use a name of 1 to 64 printable ASCII characters, such as \"per-ip\"";
const WORDS: Words = Words::new(&[
    "name",
    "match",
    "key",
    "on_missing",
    "limit",
    "plan",
    "cost",
    "shards",
    "sync",
    "on_failure",
    "shadow",
    "response",
]);

/// Reads the list; `response` is how policies refuse that do not say it. Policies with errors are left out of what it
/// gives.
pub(crate) fn read_all(spot: &Spot<'_>, response: &Response, report: &mut Report) -> Policies {
    let mut policies = Vec::new();
    let mut names: Vec<Option<&str>> = Vec::new();
    let Ok(items) = spot.filled_list(MAX_POLICIES, "policies", FORM, report) else {
        return Policies::default();
    };
    for item in &items {
        let name = item.node.get("name").and_then(Node::as_text);
        let first = names.iter().position(|other| name.is_some() && *other == name);
        names.push(name);
        policies.extend(read(item, first, response, report));
    }
    let shared = shared_policies(spot.node);
    if shared > MAX_CHARGES {
        spot.too_many(shared, "policies that ask the companion", MAX_CHARGES, report);
    }
    let count = policies.len();
    Policies::try_from(policies).unwrap_or_else(|_| {
        spot.too_many(count, "policies", MAX_POLICIES, report);
        Policies::default()
    })
}

/// How many policies, as they are written, ask the companion.
pub(crate) fn shared_policies(policies: &Node) -> usize {
    let Node::List(policies) = policies else { return 0 };
    policies.iter().filter(|policy| is_counted(policy) && sync::is_shared(policy)).count()
}

/// Whether a policy, as it is written, counts anything.
pub(crate) fn is_counted(policy: &Node) -> bool {
    limit::is_counted(policy.get("limit")) || plan::is_counted(policy.get("plan"))
}

/// Reads one policy; `namesake` is the index of an earlier one with the same name.
fn read(
    spot: &Spot<'_>,
    namesake: Option<usize>,
    response: &Response,
    report: &mut Report,
) -> Result<Policy, Reported> {
    let fields = spot.object(&WORDS, POLICY, report)?;
    let is_counted = is_counted(spot.node);
    let name = fields.required("name", NAME, report).and_then(|spot| name(&spot, namesake, report));
    let matcher = fields.optional("match").map_or(Ok(Match::default()), |spot| matching::read(&spot, report));
    let key = match fields.optional("key") {
        Some(spot) => key::read(&spot, report),
        None if is_counted => Err(fields.missing("key", Problem::Missing, key::MISSING, report)),
        None => Ok(Vec::new()),
    };
    let on_missing = fields.optional("on_missing").map_or(Ok(OnMissing::default()), |spot| {
        key::on_missing(&spot, key.as_deref().map_err(|error| *error), report)
    });
    let counting = counting(&fields, spot.node, report);
    let sync = sync::read(&fields, is_counted, report);
    let shadow = fields.optional("shadow").map_or(Ok(false), |spot| spot.flag(report));
    let response = fields
        .optional("response")
        .map_or_else(|| Ok(response.clone()), |spot| response::read(&spot, report));
    Ok(Policy {
        matcher: matcher?,
        key: key?,
        on_missing: on_missing?,
        // What counts nothing asks nobody. The keys about counting may stay, so that a limit is opened
        // or closed by changing one value.
        sync: if is_counted { sync? } else { sync.map(|_| Sync::Local)? },
        shadow: shadow?,
        response: response?,
        name: name?,
        ..counting?
    })
}

/// Reads the limits of a policy and what they count, which have to go together. All else is as in [`Policy::new`].
fn counting(fields: &Fields<'_>, policy: &Node, report: &mut Report) -> Result<Policy, Reported> {
    let limit = fields.required("limit", limit::FORM, report).and_then(|spot| limit::read(&spot, report));
    let plan = fields.optional("plan").map(|spot| plan::read(&spot, report)).transpose();
    let limits = Limits { own: limit.as_ref().ok(), plan: plan.as_ref().ok().and_then(Option::as_ref) };
    let shards = fields
        .optional("shards")
        .map_or(Ok(1), |spot| shards::read(&spot, sync::is_local(policy), &limits, report));
    let cost = fields.optional("cost").map_or(Ok(Cost::Fixed(1)), |spot| {
        cost::read(&spot, &limits, *shards.as_ref().unwrap_or(&1), report)
    });
    Ok(Policy { plan: plan?, cost: cost?, shards: shards?, ..Policy::new("", limit?) })
}

/// The limits of a policy, as far as they could be read.
pub(crate) struct Limits<'a> {
    own: Option<&'a Limit>,
    plan: Option<&'a Plan>,
}

impl<'a> Limits<'a> {
    /// The buckets, each with the name of the plan that it is for.
    pub(crate) fn buckets(&self) -> impl Iterator<Item = (Option<&'a String>, &'a TokenBucket)> {
        let plans = self.plan.iter().flat_map(|plan| &plan.limits).map(|(name, limit)| (Some(name), limit));
        self.own.map(|limit| (None, limit)).into_iter().chain(plans).filter_map(|(plan, limit)| match limit {
            Limit::TokenBucket(bucket) => Some((plan, bucket)),
            Limit::Unlimited | Limit::Blocked => None,
        })
    }
}

fn name(spot: &Spot<'_>, namesake: Option<usize>, report: &mut Report) -> Result<String, Reported> {
    let name = spot.text(NAME, report)?;
    let problem = match name.len() {
        0 => Problem::Empty,
        1..=MAX_NAME_BYTES if !name.bytes().all(|byte| matches!(byte, b' '..=b'~')) => Problem::BadCharacters,
        1..=MAX_NAME_BYTES => match namesake {
            None => return Ok(name.to_owned()),
            Some(first) => {
                let remedy = Remedy::Do("use a name of its own");
                return Err(spot.refuse(Problem::SameName { first }, remedy, report));
            }
        },
        _ => Problem::TooLarge,
    };
    Err(spot.refuse(problem, Remedy::Do(NAME), report))
}
