//! `policies`: the limits themselves, each alone and all together.

use limiter::matching::Match;
use limiter::policies::Policies;
use limiter::policy::{Cost, Limit, MAX_NAME_BYTES, MAX_POLICIES, Policy, Sync};
use limiter::wire::MAX_CHARGES;

use crate::error::{Problem, Remedy};
use crate::fields::Fields;
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::spot::Spot;
use crate::words::Words;
use crate::{key, limit, matching, sync};

/// How policies are written.
pub(crate) const FORM: &str = "use a list of 1 to 64 policies";
const POLICY: &str = "use an object with \"name\", \"key\" and \"limit\"";
const NAME: &str = "use a name of 1 to 64 printable ASCII characters, such as \"per-ip\"";
const WORDS: Words = Words {
    known: &["name", "match", "key", "limit", "cost", "sync", "on_failure", "shadow"],
    later: &[
        ("plan", "remove it: one \"limit\" holds for all clients"),
        ("on_missing", "remove it: clients without identity share one bucket"),
        ("shards", "remove it: a key is one bucket"),
        ("response", "remove it: the answer is 429 with a JSON body"),
    ],
};

/// Reads the list. Policies with errors are left out of what it gives.
pub(crate) fn read_all(spot: &Spot<'_>, report: &mut Report) -> Policies {
    let mut policies = Vec::new();
    let mut names: Vec<Option<&str>> = Vec::new();
    let Ok(items) = spot.filled_list(MAX_POLICIES, "policies", FORM, report) else {
        return Policies::default();
    };
    for item in &items {
        let name = item.node.get("name").and_then(Node::as_text);
        let first = names.iter().position(|other| name.is_some() && *other == name);
        names.push(name);
        policies.extend(read(item, first, report));
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
    let asks = |policy: &&Node| limit::is_counted(policy.get("limit")) && sync::is_shared(policy);
    policies.iter().filter(asks).count()
}

/// Reads one policy; `namesake` is the index of an earlier one with the same name.
fn read(spot: &Spot<'_>, namesake: Option<usize>, report: &mut Report) -> Result<Policy, Reported> {
    let fields = spot.object(&WORDS, POLICY, report)?;
    let is_counted = limit::is_counted(spot.node.get("limit"));
    let name = fields.required("name", NAME, report).and_then(|spot| name(&spot, namesake, report));
    let matcher = fields.optional("match").map_or(Ok(Match::default()), |spot| matching::read(&spot, report));
    let key = match fields.optional("key") {
        Some(spot) => key::read(&spot, report),
        None if is_counted => Err(fields.missing("key", Problem::Missing, key::MISSING, report)),
        None => Ok(Vec::new()),
    };
    let limit = fields.required("limit", limit::FORM, report).and_then(|spot| limit::read(&spot, report));
    let cost = cost(&fields, limit.as_ref().ok(), report);
    let sync = sync::read(&fields, is_counted, report);
    let shadow = fields.optional("shadow").map_or(Ok(false), |spot| spot.flag(report));
    Ok(Policy {
        matcher: matcher?,
        key: key?,
        cost: Cost::Fixed(cost?),
        // What counts nothing asks nobody. The keys about counting may stay, so that a limit is opened
        // or closed by changing one value.
        sync: if is_counted { sync? } else { sync.map(|_| Sync::Local)? },
        shadow: shadow?,
        ..Policy::new(name?, limit?)
    })
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

fn cost(fields: &Fields<'_>, limit: Option<&Limit>, report: &mut Report) -> Result<u64, Reported> {
    let Some(spot) = fields.optional("cost") else { return Ok(1) };
    if matches!(spot.node, Node::Object(_)) {
        return Err(spot.refuse(Problem::NotSupported, Remedy::Do("use a number"), report));
    }
    let cost = spot.positive("use 1 or more, or the limit \"unlimited\"", report)?;
    match limit {
        Some(Limit::TokenBucket(bucket)) if cost > bucket.capacity() => {
            let capacity = bucket.capacity();
            Err(spot.refuse(
                Problem::NeverFits { capacity },
                Remedy::AtMostOr(capacity, "a greater capacity"),
                report,
            ))
        }
        _ => Ok(cost),
    }
}
