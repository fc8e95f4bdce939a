//! `match`: the requests that a policy applies to.

mod addresses;
mod headers;
mod hosts;
mod path;

use limiter::matching::{Conditions, Match};

use crate::entries;
use crate::error::{Problem, Remedy};
use crate::fields::Fields;
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::spot::Spot;
use crate::token;
use crate::words::Words;

pub use addresses::MAX_CIDRS;
pub use headers::{MAX_CONDITIONS, MAX_VALUE_BYTES};
pub use hosts::{MAX_HOST_BYTES, MAX_HOSTS};
pub use path::MAX_PATH_BYTES;

/// The most methods of one policy.
pub const MAX_METHODS: usize = 16;
/// The most exceptions of one policy.
pub const MAX_EXCEPTIONS: usize = 8;
/// The most routes of one policy.
pub const MAX_ROUTES: usize = 32;
/// The most bytes of a route's name.
pub const MAX_ROUTE_BYTES: usize = 256;

const FORM: &str = "use an object such as {\"methods\": [\"POST\"], \"path\": {\"prefix\": \"/api/\"}}";
const EVERY_REQUEST: &str = "leave it out to match every request";
const NOTHING: &str = "leave it out to except nothing";
const METHODS: &str = "use a list such as [\"GET\", \"POST\"], or leave it out to match every method";
const METHOD: &str = "use a method in upper case, such as \"POST\"";
const ROUTES: &str = "use a list of the names of Envoy's routes, or leave it out to match every route";
const ROUTE: &str = "use the name of an Envoy route, of 1 to 256 bytes";
const MATCH: Words =
    Words::new(&["methods", "hosts", "path", "headers", "routes", "cidrs", "except"]).elsewhere(ELSEWHERE);
const EXCEPT: Words =
    Words::new(&["methods", "hosts", "path", "headers", "routes", "cidrs"]).elsewhere(ELSEWHERE);
const ELSEWHERE: &[(&str, &str)] = &[
    ("ip", "use \"cidrs\""),
    ("ips", "use \"cidrs\""),
    ("prefix", "write it under \"path\""),
    ("exact", "write it under \"path\""),
    ("template", "write it under \"path\""),
    ("regex", "write it under \"path\""),
];

pub(crate) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Match, Reported> {
    let fields = filled(spot, &MATCH, EVERY_REQUEST, report)?;
    let conditions = conditions_of(&fields, report);
    let except = fields.optional("except").map_or(Ok(Vec::new()), |spot| except(&spot, report));
    Ok(Match { conditions: conditions?, except: except? })
}

/// One exception, or several, each of which excepts by itself.
fn except(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<Conditions>, Reported> {
    if !matches!(spot.node, Node::List(_)) {
        return exception(spot, report).map(|one| vec![one]);
    }
    let spots = spot.filled_list(MAX_EXCEPTIONS, "exceptions", NOTHING, report)?;
    entries::all_different(&spots, report, exception)
}

fn exception(spot: &Spot<'_>, report: &mut Report) -> Result<Conditions, Reported> {
    let fields = filled(spot, &EXCEPT, NOTHING, report)?;
    conditions_of(&fields, report)
}

/// The keys of an object that must have some.
fn filled<'a>(
    spot: &'a Spot<'_>,
    words: &'static Words,
    empty: &'static str,
    report: &mut Report,
) -> Result<Fields<'a>, Reported> {
    let fields = spot.object(words, FORM, report)?;
    if fields.is_empty() {
        return Err(spot.refuse(Problem::Empty, Remedy::Do(empty), report));
    }
    Ok(fields)
}

fn conditions_of(fields: &Fields<'_>, report: &mut Report) -> Result<Conditions, Reported> {
    let methods = fields.optional("methods").map_or(Ok(Vec::new()), |spot| methods(&spot, report));
    let hosts = fields.optional("hosts").map_or(Ok(Vec::new()), |spot| hosts::read(&spot, report));
    let path = fields.optional("path").map(|spot| path::read(&spot, report)).transpose();
    let headers = fields.optional("headers").map_or(Ok(Vec::new()), |spot| headers::read(&spot, report));
    let routes = fields.optional("routes").map_or(Ok(Vec::new()), |spot| routes(&spot, report));
    let cidrs = fields.optional("cidrs").map_or(Ok(Vec::new()), |spot| addresses::read(&spot, report));
    Ok(Conditions {
        methods: methods?,
        hosts: hosts?,
        path: path?,
        headers: headers?,
        routes: routes?,
        cidrs: cidrs?,
    })
}

fn methods(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<String>, Reported> {
    let spots = spot.filled_list(MAX_METHODS, "methods", METHODS, report)?;
    entries::all_different(&spots, report, method)
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

fn routes(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<String>, Reported> {
    let spots = spot.filled_list(MAX_ROUTES, "routes", ROUTES, report)?;
    entries::all_different(&spots, report, |spot, report| {
        spot.filled_text(MAX_ROUTE_BYTES, ROUTE, report).map(str::to_owned)
    })
}
