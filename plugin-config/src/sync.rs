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

const MODE: &str = "use \"lease\", \"exact\", \"async\" or \"local\"";
const MODES: Words = Words::new(&[LEASE, EXACT, ASYNC, LOCAL]);
/// What holds unless said.
const LEASE: &str = "lease";
const EXACT: &str = "exact";
const ASYNC: &str = "async";
const LOCAL: &str = "local";
const FAILURE: &str = "use \"open\", \"share\" or {\"closed\": {\"retry_after\": \"5s\"}}";
const FAILURE_TEXTS: Words = Words::new(&["open", SHARE]);
const SHARE: &str = "share";
const FAILURE_OBJECTS: Words = Words::new(&["closed"]).elsewhere(&[
    ("open", "use \"open\" alone, as a string in place of the object"),
    (SHARE, "use \"share\" alone, as a string in place of the object"),
]);
const CLOSED: &str = "use an object such as {\"retry_after\": \"5s\"}";
const CLOSED_FIELDS: Words = Words::new(&["retry_after"]);
const SPAN: &str = "use whole seconds, \"1s\" to \"1d\"";
const NEVER_ASKS: &str = "remove it, or use \"sync\": \"lease\" or \"exact\": only the companion can fail";
const NEVER_WAITS: &str = "remove it, or use \"sync\": \"lease\" or \"exact\": \"async\" never waits for the \
                           companion, and while it is away enforces its share";

/// Whether a policy, as it is written, says to be counted in the proxy.
pub(crate) fn is_local(policy: &Node) -> bool {
    policy.get("sync").and_then(Node::as_text) == Some(LOCAL)
}

/// Whether a policy that counts asks the companion, as it is written. One that is hardly a policy yet is not
/// taken for it: what is missing there says enough.
pub(crate) fn is_shared(policy: &Node) -> bool {
    match policy.get("sync") {
        None => policy.get("limit").is_some(),
        Some(sync) => matches!(sync.as_text(), Some(LEASE | EXACT | ASYNC)),
    }
}

/// Reads both keys of a policy; `is_counted`: its limit needs a place to count.
pub(crate) fn read(fields: &Fields<'_>, is_counted: bool, report: &mut Report) -> Result<Sync, Reported> {
    let mode = match fields.optional("sync") {
        Some(spot) => spot.word(&MODES, MODE, report),
        None if is_counted => Ok(LEASE),
        None => Ok(LOCAL),
    };
    let on_failure = match (fields.optional("on_failure"), mode) {
        (Some(spot), Ok(LOCAL)) => Err(spot.refuse(Problem::Dead, Remedy::Do(NEVER_ASKS), report)),
        // What this mode does anyway may be said, as every default may.
        (Some(spot), Ok(ASYNC)) if spot.node.as_text() == Some(SHARE) => Ok(OnFailure::Share),
        (Some(spot), Ok(ASYNC)) => Err(spot.refuse(Problem::Dead, Remedy::Do(NEVER_WAITS), report)),
        (Some(spot), _) => on_failure(&spot, report),
        (None, _) => Ok(OnFailure::Open),
    };
    let on_failure = on_failure?;
    Ok(match mode? {
        LOCAL => Sync::Local,
        ASYNC => Sync::Async,
        EXACT => Sync::Exact(on_failure),
        _ => Sync::Lease(on_failure),
    })
}

fn on_failure(spot: &Spot<'_>, report: &mut Report) -> Result<OnFailure, Reported> {
    match spot.node {
        Node::Text(_) => {
            let word = spot.word(&FAILURE_TEXTS, FAILURE, report)?;
            Ok(if word == SHARE { OnFailure::Share } else { OnFailure::Open })
        }
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
