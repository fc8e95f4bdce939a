//! `sync` and `on_failure`: where a limit is counted, and what becomes of requests when that cannot be asked.

use core::time::Duration;

use limiter::policy::{OnFailure, Sync};

use crate::error::{Problem, Remedy, Type};
use crate::fields::Fields;
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::spot::Spot;
use crate::words::Words;

/// The shortest and the longest wait that clients are told in a failure.
const RETRY_AFTER: core::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24);

const MODE: &str = "use \"lease\", \"exact\" or \"local\"";
const MODES: Words = Words { known: &[LEASE, "exact", "local"], later: &[("async", MODE)] };
/// What holds unless said.
const LEASE: &str = "lease";
const FAILURE: &str = "use \"open\" or {\"closed\": {\"retry_after\": \"5s\"}}";
const FAILURE_TEXTS: Words = Words { known: &["open"], later: &[("share", FAILURE)] };
const FAILURE_OBJECTS: Words = Words { known: &["closed"], later: &[] };
const CLOSED: &str = "use an object such as {\"retry_after\": \"5s\"}";
const CLOSED_FIELDS: Words = Words { known: &["retry_after"], later: &[] };
const SPAN: &str = "use whole seconds, \"1s\" to \"1d\"";

/// Whether a policy that counts asks the companion, as it is written. One that is hardly a policy yet is not
/// taken for it: what is missing there says enough.
pub(crate) fn is_shared(policy: &Node) -> bool {
    match policy.get("sync") {
        None => policy.get("limit").is_some(),
        Some(sync) => matches!(sync.as_text(), Some(LEASE | "exact")),
    }
}

/// Reads both keys of a policy; `is_counted`: its limit needs a place to count.
pub(crate) fn read(fields: &Fields<'_>, is_counted: bool, report: &mut Report) -> Result<Sync, Reported> {
    let mode = match fields.optional("sync") {
        Some(spot) => spot.word(&MODES, MODE, report),
        None if is_counted => Ok(LEASE),
        None => Ok("local"),
    };
    let on_failure = match (fields.optional("on_failure"), mode) {
        (Some(spot), Ok("local")) => {
            let remedy =
                Remedy::Do("remove it, or use \"sync\": \"lease\" or \"exact\": only the companion can fail");
            Err(spot.refuse(Problem::Dead, remedy, report))
        }
        (Some(spot), _) => on_failure(&spot, report),
        (None, _) => Ok(OnFailure::Open),
    };
    let on_failure = on_failure?;
    Ok(match mode? {
        "local" => Sync::Local,
        "exact" => Sync::Exact(on_failure),
        _ => Sync::Lease(on_failure),
    })
}

fn on_failure(spot: &Spot<'_>, report: &mut Report) -> Result<OnFailure, Reported> {
    match spot.node {
        Node::Text(_) => spot.word(&FAILURE_TEXTS, FAILURE, report).map(|_| OnFailure::Open),
        Node::Object(_) => {
            let (_, spot) = spot.form(&FAILURE_OBJECTS, FAILURE, report)?;
            let fields = spot.object(&CLOSED_FIELDS, CLOSED, report)?;
            let spot = fields.required("retry_after", SPAN, report)?;
            let retry_after = spot.span(&RETRY_AFTER, SPAN, report)?;
            // The field is told in seconds: a part of one would not be what is written here.
            if retry_after.subsec_nanos() != 0 {
                return Err(spot.refuse(Problem::OutOfRange, Remedy::Do(SPAN), report));
            }
            Ok(OnFailure::Closed { retry_after })
        }
        _ => Err(spot.wrong_type(Type::Form, FAILURE, report)),
    }
}
