//! `key` and `on_missing`: whose requests, and requests for what, are counted together, and what becomes of requests
//! that do not say whose they are.

use limiter::policy::{KeyPart, OnMissing, Scope, Source};

use crate::entries;
use crate::error::{Problem, Remedy, Type};
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::source;
use crate::spot::Spot;
use crate::words::Words;

/// The most parts of a key.
pub const MAX_PARTS: usize = 8;

const FORM: &str = "use a list such as [\"ip\"] or [{\"header\": \"x-api-key\"}, \"method\"]";
const PART: &str = "use \"ip\", \"method\", \"path\", \"route\", \"host\" or an object such as \
                    {\"header\": \"x-api-key\"}, \
                    with \"header\", \"cookie\", \"query\", \"claim\", \"metadata\" or \"first\"";

/// The key where one is missing.
pub(crate) const MISSING: &str = FORM;

const PARTS: Words = Words::new(&["ip", "method", "path", "route", "host"]);
const PART_OBJECTS: Words = Words::new(&source::WITH_FIRST).elsewhere(&[
    ("ip", source::IP_WORD),
    ("method", "use \"method\" alone, as a string in place of the object"),
    ("path", "use \"path\" alone, as a string in place of the object"),
    ("route", "use \"route\" alone, as a string in place of the object"),
    ("host", "use \"host\" alone, as a string in place of the object"),
]);
const ON_MISSING: Words = Words::new(&["anonymous", "skip", "deny"]);
const ON_MISSING_FORM: &str = "use \"anonymous\", \"skip\" or \"deny\"";
const NO_IDENTITY: &str = "remove it, or ask for an identity in \"key\": without one none can be missing";

pub(crate) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<KeyPart>, Reported> {
    let spots = spot.filled_list(MAX_PARTS, "parts", FORM, report)?;
    entries::all_different(&spots, report, part)
}

fn part(spot: &Spot<'_>, report: &mut Report) -> Result<KeyPart, Reported> {
    match spot.node {
        Node::Text(_) => Ok(match spot.word(&PARTS, PART, report)? {
            "method" => KeyPart::Scope(Scope::Method),
            "path" => KeyPart::Scope(Scope::Path),
            "route" => KeyPart::Scope(Scope::Route),
            "host" => KeyPart::Scope(Scope::Host),
            _ => KeyPart::Identity(vec![Source::Ip]),
        }),
        Node::Object(_) => source::read(spot, &PART_OBJECTS, PART, report).map(KeyPart::Identity),
        _ => Err(spot.wrong_type(Type::Form, PART, report)),
    }
}

/// Reads what becomes of requests without the identity that `key` asks for.
pub(crate) fn on_missing(
    spot: &Spot<'_>,
    key: Result<&[KeyPart], Reported>,
    report: &mut Report,
) -> Result<OnMissing, Reported> {
    let word = spot.word(&ON_MISSING, ON_MISSING_FORM, report)?;
    if key.is_ok_and(|key| !key.iter().any(|part| matches!(part, KeyPart::Identity(_)))) {
        return Err(spot.refuse(Problem::Dead, Remedy::Do(NO_IDENTITY), report));
    }
    Ok(match word {
        "skip" => OnMissing::Skip,
        "deny" => OnMissing::Deny,
        _ => OnMissing::Anonymous,
    })
}
