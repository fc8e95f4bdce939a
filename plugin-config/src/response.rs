//! `response`: how a policy refuses.

use limiter::policy::{Body, Response};

use crate::MAX_VALUE_BYTES;
use crate::error::{Problem, Remedy, Type};
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::spot::{KEEP_ONE, Spot};
use crate::token;
use crate::words::Words;

/// The statuses of a refusal.
pub const STATUSES: core::ops::RangeInclusive<u16> = 400..=499;
/// The most bytes of a text.
pub const MAX_TEXT_BYTES: usize = 4096;
/// The most headers of an answer.
pub const MAX_HEADERS: usize = 16;

const FORM: &str = "use an object such as {\"status\": 429, \"body\": \"problem\"}";
const STATUS: &str = "use 400 to 499, such as 429";
const BODY: &str = "use \"json\", \"problem\", \"none\" or {\"text\": \"Too many requests\"}";
const TEXT: &str = "use a text of 4096 bytes or less";
const HEADERS: &str = "use an object such as {\"x-reason\": \"rate limit\"}";
const HEADER: &str = "use the name of a header, such as \"x-reason\"";
const VALUE: &str = "use a text of at most 1024 printable ASCII characters";
const WORDS: Words = Words::new(&["status", "body", "headers"]);
const BODIES: Words = Words::new(&["json", "problem", "none"]);
const BODY_OBJECTS: Words = Words::new(&["text"]).elsewhere(&[
    ("json", "use \"json\" alone, as a string in place of the object"),
    ("problem", "use \"problem\" alone, as a string in place of the object"),
    ("none", "use \"none\" alone, as a string in place of the object"),
]);
/// Headers that a response may not set: those that the filter and Envoy write, those that are between two neighbours alone (RFC 9110, section 7.6.1), and
/// what says how a body is coded.
pub const REFUSED_HEADERS: [&str; 12] = [
    "connection",
    "content-encoding",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "ratelimit",
    "ratelimit-policy",
    "retry-after",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// What others of them begin with.
pub const REFUSED_FAMILIES: [&str; 3] = ["x-ratelimit-", "ratelimit-", "grpc-"];
const LEAVE_OUT: &str = "leave it out: answers have it as they need it";
const CONTENT_TYPE: &str = "leave it out, or use a body with \"text\": others have a type of their own";

pub(crate) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Response, Reported> {
    let default = Response::default();
    let fields = spot.object(&WORDS, FORM, report)?;
    let status = fields.optional("status").map_or(Ok(default.status), |spot| status(&spot, report));
    let body = fields.optional("body").map_or(Ok(default.body), |spot| body(&spot, report));
    let may_have_type = !matches!(body, Ok(Body::Json | Body::Problem | Body::None));
    let headers =
        fields.optional("headers").map_or(Ok(default.headers), |spot| headers(&spot, may_have_type, report));
    Ok(Response { status: status?, body: body?, headers: headers? })
}

fn status(spot: &Spot<'_>, report: &mut Report) -> Result<u16, Reported> {
    let number = spot.positive(STATUS, report)?;
    let status = u16::try_from(number).ok().filter(|status| STATUSES.contains(status));
    status.ok_or_else(|| spot.refuse(Problem::OutOfRange, Remedy::Do(STATUS), report))
}

fn body(spot: &Spot<'_>, report: &mut Report) -> Result<Body, Reported> {
    match spot.node {
        Node::Text(_) => Ok(match spot.word(&BODIES, BODY, report)? {
            "problem" => Body::Problem,
            "none" => Body::None,
            _ => Body::Json,
        }),
        Node::Object(_) => {
            let (_, spot) = spot.form(&BODY_OBJECTS, BODY, report)?;
            let text = spot.text(TEXT, report)?;
            if text.len() > MAX_TEXT_BYTES {
                return Err(spot.refuse(Problem::TooLarge, Remedy::Do(TEXT), report));
            }
            Ok(Body::Text(text.to_owned()))
        }
        _ => Err(spot.wrong_type(Type::Form, BODY, report)),
    }
}

fn headers(
    spot: &Spot<'_>,
    may_have_type: bool,
    report: &mut Report,
) -> Result<Vec<(String, String)>, Reported> {
    if matches!(spot.node, Node::Object(entries) if entries.is_empty()) {
        return Ok(Vec::new());
    }
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut reported = None;
    for (name, spot) in spot.named(MAX_HEADERS, "headers", HEADERS, report)? {
        let read = header_name(name, &spot, may_have_type, report).and_then(|name| {
            if headers.iter().any(|(other, _)| *other == name) {
                return Err(spot.refuse(Problem::RepeatedKey, KEEP_ONE, report));
            }
            Ok((name, value(&spot, report)?))
        });
        match read {
            Ok(header) => headers.push(header),
            Err(error) => reported = Some(error),
        }
    }
    reported.map_or(Ok(headers), Err)
}

fn header_name(
    name: &str,
    spot: &Spot<'_>,
    may_have_type: bool,
    report: &mut Report,
) -> Result<String, Reported> {
    let folded = token::key(name, HEADER, spot, report)?;
    let is_taken =
        REFUSED_HEADERS.contains(&&*folded) || REFUSED_FAMILIES.iter().any(|start| folded.starts_with(start));
    let remedy = match &*folded {
        "content-type" if !may_have_type => CONTENT_TYPE,
        _ if is_taken => LEAVE_OUT,
        _ => return Ok(folded),
    };
    Err(spot.refuse(Problem::NotYours, Remedy::Do(remedy), report))
}

fn value(spot: &Spot<'_>, report: &mut Report) -> Result<String, Reported> {
    let value = spot.text(VALUE, report)?;
    let problem = if value.len() > MAX_VALUE_BYTES {
        Problem::TooLarge
    } else if !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        Problem::BadCharacters
    } else {
        return Ok(value.to_owned());
    };
    Err(spot.refuse(problem, Remedy::Do(VALUE), report))
}
