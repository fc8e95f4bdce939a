//! `cost`: what a request takes.

use limiter::policy::{Cost, CostSource, MAX_TOLD_COST, ToldCost};

use crate::error::{Problem, Remedy};
use crate::fields::Fields;
use crate::node::Node;
use crate::policy::Limits;
use crate::report::{Report, Reported};
use crate::source;
use crate::spot::Spot;
use crate::words::Words;

const FORM: &str = "use a number, or an object such as {\"header\": \"x-cost\", \"max\": 100}";
const SOURCE: &str = "add it, or \"query\": where requests tell what they cost";
const ZERO: &str = "use 1 or more, or the limit \"unlimited\"";
const MOST: &str = "use 1 to 1000000";
const WORDS: Words = Words::new(&["header", "query", "default", "max"]);

/// Reads a cost, which has to fit in one of `shards` of each of the `limits`.
pub(crate) fn read(
    spot: &Spot<'_>,
    limits: &Limits<'_>,
    shards: u32,
    report: &mut Report,
) -> Result<Cost, Reported> {
    if !matches!(spot.node, Node::Object(_)) {
        let cost = spot.positive(ZERO, report)?;
        return fitting(cost, spot, limits, shards, report).map(Cost::Fixed);
    }
    let fields = spot.object(&WORDS, FORM, report)?;
    let source = source(spot, &fields, report);
    let max = match fields.optional("max") {
        Some(spot) => spot.positive_up_to(MAX_TOLD_COST, MOST, report),
        None => Ok(MAX_TOLD_COST),
    };
    let default = match fields.optional("default") {
        // One that is not above a broken maximum is not told to be above it.
        Some(spot) => spot
            .positive_up_to(*max.as_ref().unwrap_or(&MAX_TOLD_COST), "use 1 or more", report)
            .and_then(|cost| fitting(cost, &spot, limits, shards, report)),
        None => Ok(1),
    };
    Ok(Cost::Told(ToldCost { source: source?, default: default?, max: max? }))
}

fn source(spot: &Spot<'_>, fields: &Fields<'_>, report: &mut Report) -> Result<CostSource, Reported> {
    match (fields.optional("header"), fields.optional("query"), fields.reported()) {
        (Some(spot), None, _) => source::header(&spot, &[], report).map(CostSource::Header),
        (None, Some(spot), _) => source::query(&spot, report).map(CostSource::Query),
        (Some(_), Some(_), _) => {
            Err(spot.refuse(Problem::SeveralForms, Remedy::Do("keep \"header\" or \"query\""), report))
        }
        // It may be what is misspelled.
        (None, None, Some(reported)) => Err(reported),
        (None, None, None) => Err(fields.missing("header", Problem::Missing, SOURCE, report)),
    }
}

/// The cost, where every bucket has room for it.
fn fitting(
    cost: u64,
    spot: &Spot<'_>,
    limits: &Limits<'_>,
    shards: u32,
    report: &mut Report,
) -> Result<u64, Reported> {
    let smallest_shards =
        limits.buckets().map(|(plan, bucket)| (plan, bucket.capacity() / u64::from(shards)));
    match smallest_shards.min_by_key(|(_, capacity)| *capacity) {
        Some((plan, capacity)) if cost > capacity => {
            let problem = Problem::NeverFits { capacity, shards, plan: plan.cloned() };
            Err(spot.refuse(problem, Remedy::AtMostOr(capacity, "a greater capacity"), report))
        }
        _ => Ok(cost),
    }
}
