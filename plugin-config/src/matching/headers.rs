//! `headers`: conditions on header fields.

use limiter::matching::{HeaderCondition, HeaderMatch};

use crate::error::{Problem, Remedy, Type};
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::spot::{KEEP_ONE, Spot};
use crate::words::Words;
use crate::{pattern, token};

/// The most headers of one policy.
pub const MAX_CONDITIONS: usize = 16;
/// The most bytes of a header's value.
pub const MAX_VALUE_BYTES: usize = 1024;

const FORM: &str =
    "use an object such as {\"x-internal\": \"yes\"}, or leave it out to match whatever headers say";
const NAME: &str = "use the name of a header, such as \"x-internal\"";
const CONDITION: &str = "use a string, or one of {\"exact\": \"yes\"}, {\"prefix\": \"Bearer \"}, \
                         {\"regex\": \"v[0-9]+\"} and {\"present\": true}";
const VALUE: &str = "use a text of 1024 bytes or less";
const PREFIX: &str = "use a text of 1 to 1024 bytes, or {\"present\": true} for any value";
const CONDITIONS: Words = Words::new(&["exact", "prefix", "regex", "present"]);
/// Where pseudo headers stand otherwise.
const PSEUDO: [(&str, &str); 4] = [
    (":path", "use \"path\""),
    (":method", "use \"methods\""),
    (":authority", "use \"hosts\""),
    (token::HOST, "use \"hosts\""),
];

pub(super) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<HeaderMatch>, Reported> {
    let mut headers: Vec<HeaderMatch> = Vec::new();
    let mut reported = None;
    for (name, spot) in spot.named(MAX_CONDITIONS, "headers", FORM, report)? {
        let read = header_name(name, &spot, report).and_then(|name| {
            if headers.iter().any(|other| other.name == name) {
                return Err(spot.refuse(Problem::RepeatedKey, KEEP_ONE, report));
            }
            Ok(HeaderMatch { name, condition: condition(&spot, report)? })
        });
        match read {
            Ok(header) => headers.push(header),
            Err(error) => reported = Some(error),
        }
    }
    reported.map_or(Ok(headers), Err)
}

fn header_name(name: &str, spot: &Spot<'_>, report: &mut Report) -> Result<String, Reported> {
    if token::is_pseudo_header(name) {
        let is_it = |(pseudo, _): &&(&str, &str)| pseudo.eq_ignore_ascii_case(name);
        let instead = PSEUDO.iter().find(is_it).map_or(NAME, |(_, instead)| instead);
        return Err(spot.refuse(Problem::BadKey, Remedy::Do(instead), report));
    }
    token::key(name, NAME, spot, report)
}

fn condition(spot: &Spot<'_>, report: &mut Report) -> Result<HeaderCondition, Reported> {
    match spot.node {
        Node::Text(_) => exact(spot, report),
        Node::Object(_) => {
            let (form, spot) = spot.form(&CONDITIONS, CONDITION, report)?;
            match form {
                "exact" => exact(&spot, report),
                "prefix" => {
                    let prefix = spot.filled_text(MAX_VALUE_BYTES, PREFIX, report)?;
                    // A blank at the end is one within the value.
                    let spelled = prefix.trim_ascii_start();
                    compared(prefix, spelled, &spot, report).map(HeaderCondition::Prefix)
                }
                "regex" => pattern::read(&spot, report).map(HeaderCondition::Regex),
                _ => spot.flag(report).map(HeaderCondition::Present),
            }
        }
        _ => Err(spot.wrong_type(Type::Form, CONDITION, report)),
    }
}

fn exact(spot: &Spot<'_>, report: &mut Report) -> Result<HeaderCondition, Reported> {
    let value = spot.text(VALUE, report)?;
    if value.len() > MAX_VALUE_BYTES {
        return Err(spot.refuse(Problem::TooLarge, Remedy::Do(VALUE), report));
    }
    compared(value, value.trim_ascii(), spot, report).map(HeaderCondition::Exact)
}

/// A value as values of requests are compared: no control characters, and no blanks around it.
fn compared(value: &str, spelled: &str, spot: &Spot<'_>, report: &mut Report) -> Result<String, Reported> {
    if value.bytes().any(|byte| byte.is_ascii_control() && byte != b'\t') {
        let remedy = Remedy::Do("use characters that a header can have");
        return Err(spot.refuse(Problem::BadCharacters, remedy, report));
    }
    if spelled != value {
        let remedy = Remedy::Write(spelled.to_owned());
        return Err(spot.refuse(Problem::NotNormal { things: "values of headers" }, remedy, report));
    }
    Ok(value.to_owned())
}
