//! `match`: the requests that a policy applies to.

use limiter::matching::{Conditions, Match, PathMatch};
use limiter::path::normalize;

use crate::error::{Problem, Remedy};
use crate::report::{Report, Reported};
use crate::spot::{self, Spot};
use crate::token;
use crate::words::Words;

/// The most methods of one policy.
pub const MAX_METHODS: usize = 16;
/// The most bytes of a path.
pub const MAX_PATH_BYTES: usize = 1024;

const FORM: &str = "use an object such as {\"methods\": [\"POST\"], \"path\": {\"prefix\": \"/api/\"}}";
const METHODS: &str = "use a list such as [\"GET\", \"POST\"], or leave it out to match every method";
const METHOD: &str = "use a method in upper case, such as \"POST\"";
const PATH: &str = "use {\"exact\": \"/orders\"} or {\"prefix\": \"/api/\"}";
const EVERY_REQUEST: &str = "use \"methods\" and \"path\"";
const CONDITIONS: Words = Words {
    known: &["methods", "path"],
    later: &[
        ("hosts", EVERY_REQUEST),
        ("headers", EVERY_REQUEST),
        ("routes", EVERY_REQUEST),
        ("cidrs", EVERY_REQUEST),
        ("except", "match the requests that are meant with \"methods\" and \"path\""),
    ],
};
const PATHS: Words = Words {
    known: &["exact", "prefix"],
    later: &[
        ("template", "use \"prefix\" for what stands before the first brace"),
        ("regex", "use \"exact\" or \"prefix\""),
    ],
};

pub(crate) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Match, Reported> {
    let fields = spot.object(&CONDITIONS, FORM, report)?;
    let methods = fields.optional("methods").map_or(Ok(Vec::new()), |spot| methods(&spot, report));
    let path = fields.optional("path").map(|spot| path(&spot, report)).transpose();
    Ok(Match {
        conditions: Conditions { methods: methods?, path: path?, ..Conditions::default() },
        except: None,
    })
}

fn methods(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<String>, Reported> {
    let spots = spot.filled_list(MAX_METHODS, "methods", METHODS, report)?;
    spot::all_different(&spots, report, method)
}

fn method(spot: &Spot<'_>, report: &mut Report) -> Result<String, Reported> {
    let method = token::read(spot, METHOD, report)?;
    // Methods are case-sensitive: one in lower case would match no request that a client means.
    let upper = method.to_ascii_uppercase();
    if method == upper {
        Ok(upper)
    } else {
        Err(spot.refuse(Problem::LowerCase, Remedy::Write(upper), report))
    }
}

fn path(spot: &Spot<'_>, report: &mut Report) -> Result<PathMatch, Reported> {
    let (form, spot) = spot.form(&PATHS, PATH, report)?;
    let path = normal_path(&spot, report)?.to_owned();
    Ok(if form == "exact" { PathMatch::Exact(path) } else { PathMatch::Prefix(path) })
}

/// A path as requests' paths look once normalised: one in another spelling would never match.
fn normal_path<'a>(spot: &Spot<'a>, report: &mut Report) -> Result<&'a str, Reported> {
    let path = spot.text("use a path such as \"/orders\"", report)?;
    let refusal = if path.is_empty() {
        (Problem::Empty, Remedy::Do("use \"/\" for the root, or leave it out to match every path"))
    } else if path.len() > MAX_PATH_BYTES {
        (Problem::TooLarge, Remedy::Do("use 1024 bytes or less"))
    } else if !path.starts_with('/') {
        (Problem::NotNormal, Remedy::Do("start it with a slash, as in \"/orders\""))
    } else if path.contains(['?', '#']) {
        (Problem::NotNormal, Remedy::Do("write the path without query and fragment; they are not compared"))
    } else {
        let encoded = encode_invisible(path);
        let normal = normalize(encoded.as_bytes());
        if *normal == *path.as_bytes() {
            return Ok(path);
        }
        (Problem::NotNormal, Remedy::Write(String::from_utf8_lossy(&normal).into_owned()))
    };
    Err(spot.refuse(refusal.0, refusal.1, report))
}

/// Percent-encodes what clients cannot send in a path as it is: blanks, controls and all beyond ASCII.
fn encode_invisible(path: &str) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or_default();
    let mut encoded = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_graphic() {
            encoded.push(char::from(byte));
        } else {
            encoded.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    encoded
}
