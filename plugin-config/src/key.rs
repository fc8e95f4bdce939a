//! `key`: whose requests, and requests for what, are counted together.

use limiter::policy::{KeyPart, Scope, Source};

use crate::error::{Problem, Remedy, Type};
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::spot::{self, Spot};
use crate::token;
use crate::words::Words;

/// The most parts of a key.
pub const MAX_PARTS: usize = 8;
/// The most sources of one `first`.
pub const MAX_SOURCES: usize = 8;

const FORM: &str = "use a list such as [\"ip\"] or [{\"header\": \"x-api-key\"}, \"method\"]";
const PART: &str = "use \"ip\", \"method\", \"path\", {\"header\": \"x-api-key\"} or {\"first\": [{\"header\": \"x-api-key\"}, \"ip\"]}";
const SOURCE: &str = "use \"ip\" or {\"header\": \"x-api-key\"}";
const SOURCES: &str = "use a list such as [{\"header\": \"x-api-key\"}, \"ip\"]";
const HEADER: &str = "use the name of a header, such as \"x-api-key\"";

/// The key where one is missing.
pub(crate) const MISSING: &str = FORM;

const LATER_SCOPE: &str = "use \"path\" or \"method\"";
const LATER_SOURCE: &str = "use \"ip\" or a {\"header\": …}";
const PARTS: Words =
    Words { known: &["ip", "method", "path"], later: &[("route", LATER_SCOPE), ("host", LATER_SCOPE)] };
const PART_OBJECTS: Words = Words {
    known: &["header", "first"],
    later: &[
        ("cookie", LATER_SOURCE),
        ("query", LATER_SOURCE),
        ("claim", LATER_SOURCE),
        ("metadata", LATER_SOURCE),
    ],
};
const SOURCE_TEXTS: Words = Words { known: &["ip"], later: &[] };
const SOURCE_OBJECTS: Words = Words { known: &["header"], later: PART_OBJECTS.later };

pub(crate) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<KeyPart>, Reported> {
    let spots = spot.filled_list(MAX_PARTS, "parts", FORM, report)?;
    spot::all_different(&spots, report, part)
}

fn part(spot: &Spot<'_>, report: &mut Report) -> Result<KeyPart, Reported> {
    match spot.node {
        Node::Text(_) => Ok(match spot.word(&PARTS, PART, report)? {
            "method" => KeyPart::Scope(Scope::Method),
            "path" => KeyPart::Scope(Scope::Path),
            _ => KeyPart::Identity(vec![Source::Ip]),
        }),
        Node::Object(_) => {
            let (form, spot) = spot.form(&PART_OBJECTS, PART, report)?;
            Ok(KeyPart::Identity(if form == "first" {
                sources(&spot, report)?
            } else {
                vec![Source::Header(header(&spot, report)?)]
            }))
        }
        _ => Err(spot.wrong_type(Type::Form, PART, report)),
    }
}

fn sources(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<Source>, Reported> {
    let spots = spot.filled_list(MAX_SOURCES, "sources", SOURCES, report)?;
    spot::all_different(&spots, report, source)
}

fn source(spot: &Spot<'_>, report: &mut Report) -> Result<Source, Reported> {
    match spot.node {
        Node::Text(_) => spot.word(&SOURCE_TEXTS, SOURCE, report).map(|_| Source::Ip),
        Node::Object(_) => {
            let (_, spot) = spot.form(&SOURCE_OBJECTS, SOURCE, report)?;
            header(&spot, report).map(Source::Header)
        }
        _ => Err(spot.wrong_type(Type::Form, SOURCE, report)),
    }
}

/// A header's name in lower case, as HTTP/2 and Envoy know it.
fn header(spot: &Spot<'_>, report: &mut Report) -> Result<String, Reported> {
    if let Some(name) = spot.node.as_text().filter(|name| name.starts_with(':')) {
        let remedy = match name {
            ":path" => "use \"path\" as a part of the key",
            ":method" => "use \"method\" as a part of the key",
            _ => HEADER,
        };
        return Err(spot.refuse(Problem::PseudoHeader, Remedy::Do(remedy), report));
    }
    token::read(spot, HEADER, report).map(str::to_ascii_lowercase)
}
