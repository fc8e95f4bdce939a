//! Where a request says who it is, or which plan it has: `{"header": "x-api-key"}` and its like.

use limiter::policy::Source;

use crate::entries;
use crate::error::{Problem, Remedy, Type};
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::spot::Spot;
use crate::token;
use crate::words::Words;

/// The most sources of one `first`.
pub const MAX_SOURCES: usize = 8;
/// The most steps of a way to a claim or into metadata.
pub const MAX_STEPS: usize = 8;
/// The fewest: where to begin, and what is there.
pub const MIN_STEPS: usize = 2;
/// The most bytes of a step, and of a query parameter's name.
pub const MAX_NAME_BYTES: usize = 128;

/// The same without `first`.
const OBJECTS: [&str; 5] = [HEADER, "cookie", "query", "claim", "metadata"];
const HEADER: &str = "header";
const SOURCE: &str = "use \"ip\" or an object such as {\"header\": \"x-api-key\"}, with \"header\", \"cookie\", \
                      \"query\", \"claim\" or \"metadata\"";
const SOURCES: &str = "use a list such as [{\"header\": \"x-api-key\"}, \"ip\"]";
const TEXTS: Words = Words::new(&["ip"]);
const SOURCE_OBJECTS: Words =
    Words::new(&OBJECTS).elsewhere(&[("ip", IP_WORD), ("first", "write its sources here")]);
/// Sources that are objects.
pub(crate) const WITH_FIRST: [&str; 6] = [HEADER, "cookie", "query", "claim", "metadata", "first"];
pub(crate) const IP_WORD: &str = "use \"ip\" alone, as a string in place of the object";

const HEADER_NAME: &str = "use the name of a header, such as \"x-api-key\"";
const PSEUDO: [(&str, &str); 4] = [
    (":path", "use \"path\" as a part of the key"),
    (":method", "use \"method\" as a part of the key"),
    (":authority", "use \"host\" as a part of the key"),
    (token::HOST, "use \"host\" as a part of the key"),
];
const COOKIE_NAME: &str = "use the name of a cookie, such as \"session\"";
const QUERY_NAME: &str = "use the name of a parameter, such as \"api_key\", of 1 to 128 bytes";
const CLAIM: &str =
    "use a list of 2 to 8: the payload of jwt_authn and the claim, as in [\"payload\", \"sub\"]";
const METADATA: &str = "use a list of 2 to 8: the namespace and the key, as in [\"com.example\", \"tenant\"]";
const STEP: &str = "use a text of 1 to 128 bytes without NUL";

/// The sources of an object with one of the `words`, which are [`WITH_FIRST`]; `form` says what may stand there.
pub(crate) fn read(
    spot: &Spot<'_>,
    words: &'static Words,
    form: &'static str,
    report: &mut Report,
) -> Result<Vec<Source>, Reported> {
    let (kind, spot) = spot.form(words, form, report)?;
    if kind != "first" {
        return Ok(vec![object(kind, &spot, report)?]);
    }
    let spots = spot.filled_list(MAX_SOURCES, "sources", SOURCES, report)?;
    entries::all_different(&spots, report, source)
}

fn source(spot: &Spot<'_>, report: &mut Report) -> Result<Source, Reported> {
    match spot.node {
        Node::Text(_) => spot.word(&TEXTS, SOURCE, report).map(|_| Source::Ip),
        Node::Object(_) => {
            let (kind, spot) = spot.form(&SOURCE_OBJECTS, SOURCE, report)?;
            object(kind, &spot, report)
        }
        _ => Err(spot.wrong_type(Type::Form, SOURCE, report)),
    }
}

fn object(kind: &str, spot: &Spot<'_>, report: &mut Report) -> Result<Source, Reported> {
    Ok(match kind {
        HEADER => Source::Header(header(spot, &PSEUDO, report)?),
        "cookie" => Source::Cookie(token::read(spot, COOKIE_NAME, report)?.to_owned()),
        "query" => Source::Query(query(spot, report)?),
        "claim" => Source::Claim(way(spot, CLAIM, report)?),
        _ => Source::Metadata(way(spot, METADATA, report)?),
    })
}

/// A header's name in lower case, as HTTP/2 and Envoy know it; `pseudo` are remedies for pseudo headers.
pub(crate) fn header(
    spot: &Spot<'_>,
    pseudo: &[(&str, &'static str)],
    report: &mut Report,
) -> Result<String, Reported> {
    if let Some(name) = spot.node.as_text().filter(|name| token::is_pseudo_header(name)) {
        let is_it = |(pseudo, _): &&(&str, &str)| pseudo.eq_ignore_ascii_case(name);
        let remedy = pseudo.iter().find(is_it).map_or(HEADER_NAME, |(_, remedy)| remedy);
        return Err(spot.refuse(Problem::PseudoHeader, Remedy::Do(remedy), report));
    }
    token::read(spot, HEADER_NAME, report).map(str::to_ascii_lowercase)
}

/// A query parameter's name, decoded.
pub(crate) fn query(spot: &Spot<'_>, report: &mut Report) -> Result<String, Reported> {
    spot.filled_text(MAX_NAME_BYTES, QUERY_NAME, report).map(str::to_owned)
}

fn way(spot: &Spot<'_>, form: &'static str, report: &mut Report) -> Result<Vec<String>, Reported> {
    let spots = spot.filled_list(MAX_STEPS, "steps", form, report)?;
    if spots.len() < MIN_STEPS {
        return Err(spot.refuse(Problem::TooFew, Remedy::Do(form), report));
    }
    entries::all(&spots, report, |spot, _, report| {
        let step = spot.filled_text(MAX_NAME_BYTES, STEP, report)?;
        // Envoy takes it for the end of the step.
        if step.contains('\0') {
            return Err(spot.refuse(Problem::BadCharacters, Remedy::Do(STEP), report));
        }
        Ok(step.to_owned())
    })
}
