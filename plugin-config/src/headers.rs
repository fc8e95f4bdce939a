//! `headers`: the families of response fields that tell clients how they stand.

use limiter::fields::{Family, Reset};

use crate::entries;
use crate::error::{Problem, Remedy, Type};
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::spot::Spot;
use crate::words::Words;

/// The families where none are given.
pub(crate) const DEFAULT: [Family; 1] = [Family::Draft11];

/// More families than there are; repeated ones are refused one by one.
const MAX_FAMILIES: usize = 8;

const FORM: &str = "use a list such as [\"draft-11\", \"x-ratelimit\"]; [] sends none";
const FAMILY: &str =
    "use \"draft-11\", \"draft-06\", \"x-ratelimit\" or {\"x-ratelimit\": {\"reset\": \"epoch\"}}";
const NAMES: Words = Words::new(&["draft-11", "draft-06", "x-ratelimit"]);
const OBJECTS: Words = Words::new(&["x-ratelimit"]);
const OPTIONS: Words = Words::new(&["reset"]);
const RESETS: Words = Words::new(&["delta", "epoch"]);
const RESET: &str = "use \"delta\" (seconds from now) or \"epoch\" (seconds since 1970)";

pub(crate) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<Family>, Reported> {
    let spots = spot.list(MAX_FAMILIES, "families", FORM, report)?;
    entries::all(&spots, report, |spot, before, report| {
        let family = family(spot, report)?;
        joined(before, family, spot, report)
    })
}

fn family(spot: &Spot<'_>, report: &mut Report) -> Result<Family, Reported> {
    match spot.node {
        Node::Text(_) => Ok(match spot.word(&NAMES, FAMILY, report)? {
            "draft-11" => Family::Draft11,
            "draft-06" => Family::Draft06,
            _ => Family::XRateLimit { reset: Reset::Delta },
        }),
        Node::Object(_) => {
            let (_, options) = spot.form(&OBJECTS, FAMILY, report)?;
            let fields = options.object(&OPTIONS, RESET, report)?;
            let reset = match fields.required("reset", RESET, report)?.word(&RESETS, RESET, report)? {
                "epoch" => Reset::Epoch,
                _ => Reset::Delta,
            };
            Ok(Family::XRateLimit { reset })
        }
        _ => Err(spot.wrong_type(Type::Form, FAMILY, report)),
    }
}

/// The family, where it can be sent together with those before it.
fn joined(
    before: &[Family],
    family: Family,
    spot: &Spot<'_>,
    report: &mut Report,
) -> Result<Family, Reported> {
    for other in before {
        let (problem, remedy) = match (other, family) {
            (Family::Draft11, Family::Draft11)
            | (Family::Draft06, Family::Draft06)
            | (Family::XRateLimit { .. }, Family::XRateLimit { .. }) => {
                (Problem::Repeated, "keep one of them")
            }
            (Family::Draft11, Family::Draft06) | (Family::Draft06, Family::Draft11) => {
                (Problem::SameField, "keep \"draft-11\" or \"draft-06\"")
            }
            _ => continue,
        };
        return Err(spot.refuse(problem, Remedy::Do(remedy), report));
    }
    Ok(family)
}
