//! `plan`: other limits for the clients of some plans.

use limiter::policy::{Limit, Plan, Source};

use crate::error::{Problem, Remedy, Type};
use crate::limit;
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::source;
use crate::spot::Spot;
use crate::words::Words;

/// The most plans of one policy.
pub const MAX_PLANS: usize = 64;
/// The most bytes of a plan's name.
pub const MAX_PLAN_BYTES: usize = 128;

const FORM: &str = "use an object such as {\"from\": {\"claim\": [\"payload\", \"plan\"]}, \"limits\": {\"internal\": \"unlimited\"}}";
const FROM: &str = "use an object such as {\"claim\": [\"payload\", \"plan\"]}, with \"claim\", \"metadata\", \"header\", \
                    \"cookie\", \"query\" or \"first\"";
const LIMITS: &str = "use an object of limits by the names of plans, such as {\"internal\": \"unlimited\"}";
const NAME: &str = "use 1 to 128 bytes for the name of a plan";
const SOURCES: Words = Words::new(&source::WITH_FIRST);
const WORDS: Words = Words::new(&["from", "limits"]);

pub(crate) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Plan, Reported> {
    let fields = spot.object(&WORDS, FORM, report)?;
    let from = fields.required("from", FROM, report).and_then(|spot| from(&spot, report));
    let limits = fields.required("limits", LIMITS, report).and_then(|spot| limits(&spot, report));
    Ok(Plan { from: from?, limits: limits? })
}

/// Whether a plan, as it is written, has a limit that counts.
pub(crate) fn is_counted(node: Option<&Node>) -> bool {
    match node.and_then(|plan| plan.get("limits")) {
        Some(Node::Object(limits)) => limits.iter().any(|(_, limit)| limit::is_counted(Some(limit))),
        _ => false,
    }
}

fn from(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<Source>, Reported> {
    match spot.node {
        Node::Object(_) => source::read(spot, &SOURCES, FROM, report),
        // An address is nobody's plan.
        _ => Err(spot.wrong_type(Type::Object, FROM, report)),
    }
}

/// The limits, sorted by the plans' names.
fn limits(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<(String, Limit)>, Reported> {
    let mut limits = Vec::new();
    let mut reported = None;
    for (name, spot) in spot.named(MAX_PLANS, "plans", LIMITS, report)? {
        let name = if (1..=MAX_PLAN_BYTES).contains(&name.len()) {
            Ok(name)
        } else {
            Err(spot.refuse(Problem::BadKey, Remedy::Do(NAME), report))
        };
        match (name, limit::read(&spot, report)) {
            (Ok(name), Ok(limit)) => {
                let index = limits.partition_point(|(other, _): &(String, Limit)| other.as_str() < name);
                limits.insert(index, (name.to_owned(), limit));
            }
            (Err(error), _) | (_, Err(error)) => reported = Some(error),
        }
    }
    reported.map_or(Ok(limits), Err)
}
