//! Conditions one by one, in the order in which they are tried, to name the first that does not hold.

use serde::Serialize;

use crate::matching::{Conditions, HeaderCondition, HeaderMatch, HostMatch, PathMatch, Values};
use crate::request::Request;

/// A condition that does not hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unmet {
    /// Its key in the configuration, as `path` or `headers.x-api-key`.
    pub condition: String,
    /// What it wants.
    pub wanted: String,
    /// What the request has.
    pub found: String,
}

/// The first of the conditions that does not hold.
pub(super) fn first_unmet<'a>(
    conditions: &'a Conditions,
    request: &mut Request<'a>,
    values: Values,
) -> Option<Unmet> {
    let Conditions { methods, hosts, path, headers, routes, cidrs } = conditions;
    if !methods.is_empty() && !methods.iter().any(|method| method.as_bytes() == request.method()) {
        return Some(unmet("methods", methods.join(", "), request.method()));
    }
    if let Some(path) = path
        && !path.holds(request.path(), values)
    {
        return Some(unmet("path", shown_path(path), request.path()));
    }
    if !hosts.is_empty() && !hosts.iter().any(|host| host.holds(request.host())) {
        return Some(unmet(
            "hosts",
            hosts.iter().map(shown_host).collect::<Vec<_>>().join(", "),
            request.host(),
        ));
    }
    if !routes.is_empty() && !routes.iter().any(|route| route.as_bytes() == request.route()) {
        return Some(unmet("routes", routes.join(", "), request.route()));
    }
    for HeaderMatch { name, condition } in headers {
        let found = request.header(name);
        if !condition.holds(found, values) {
            let found = found.map_or("no such header".into(), String::from_utf8_lossy);
            let wanted = shown_condition(condition);
            return Some(Unmet { condition: format!("headers.{name}"), wanted, found: found.into_owned() });
        }
    }
    let address = request.address();
    if !cidrs.is_empty() && !address.is_some_and(|address| cidrs.iter().any(|cidr| cidr.contains(address))) {
        let wanted: Vec<String> = cidrs.iter().map(ToString::to_string).collect();
        let found = address.map_or_else(|| "no address".to_owned(), |address| address.to_string());
        return Some(Unmet { condition: "cidrs".to_owned(), wanted: wanted.join(", "), found });
    }
    None
}

fn unmet(condition: &str, wanted: String, found: &[u8]) -> Unmet {
    let found = String::from_utf8_lossy(found).into_owned();
    Unmet { condition: condition.to_owned(), wanted, found }
}

fn shown_path(path: &PathMatch) -> String {
    match path {
        PathMatch::Exact(path) => format!("exactly {path}"),
        PathMatch::Prefix(prefix) => format!("a path that begins with {prefix}"),
        PathMatch::Template(template) => template.text().to_owned(),
        PathMatch::Regex(pattern) => format!("the expression {}", pattern.text()),
    }
}

fn shown_host(host: &HostMatch) -> String {
    match host {
        HostMatch::Exact(host) => host.clone(),
        HostMatch::Below(domain) => format!("*.{domain}"),
    }
}

fn shown_condition(condition: &HeaderCondition) -> String {
    match condition {
        HeaderCondition::Exact(value) => format!("exactly {value}"),
        HeaderCondition::Prefix(prefix) => format!("a value that begins with {prefix}"),
        HeaderCondition::Regex(pattern) => format!("the expression {}", pattern.text()),
        HeaderCondition::Present(true) => "a value".to_owned(),
        HeaderCondition::Present(false) => "no such header".to_owned(),
    }
}
