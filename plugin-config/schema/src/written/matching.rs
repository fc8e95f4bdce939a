//! `match`: the requests that a policy applies to.

use std::collections::BTreeMap;

use plugin_config::{
    MAX_CIDRS, MAX_CONDITIONS, MAX_EXCEPTIONS, MAX_HOSTS, MAX_METHODS, MAX_ROUTE_BYTES, MAX_ROUTES,
};
use schemars::JsonSchema;

use super::{Cidr, HeaderStart, HeaderText, Host, Method, Path, Regex, Template};

/// The requests that a policy applies to: all conditions hold together. Left out, it applies to every request.
#[derive(JsonSchema)]
#[schemars(
    deny_unknown_fields,
    extend("minProperties" = 1, "examples" = [{"methods": ["POST"], "path": {"prefix": "/api/"}}])
)]
pub struct Match {
    /// One of these methods.
    pub methods: Option<Methods>,
    /// One of these hosts, compared in lower case, without port.
    pub hosts: Option<Hosts>,
    /// The path, compared without the query and in one spelling: `//orders` and `/%6frders` are `/orders`.
    pub path: Option<PathMatch>,
    /// Headers by name: all of these conditions. Of a header that comes several times, one value must fit.
    pub headers: Option<Headers>,
    /// One of these Envoy routes, by name.
    pub routes: Option<Routes>,
    /// The client's address that Envoy trusts, in one of these blocks.
    pub cidrs: Option<Cidrs>,
    /// The policy does not apply to these requests.
    pub except: Option<Exceptions>,
}

/// Requests to which a policy does not apply.
#[derive(JsonSchema)]
#[schemars(
    untagged,
    extend("examples" = [{"cidrs": ["10.0.0.0/8"]}, [{"cidrs": ["10.0.0.0/8"]}, {"path": {"exact": "/healthz"}}]])
)]
pub enum Exceptions {
    /// Those for which all of this holds.
    One(Except),
    /// Those for which all of one of these holds.
    Several(ExceptList),
}

/// Exceptions, each of which excepts by itself.
#[derive(JsonSchema)]
#[schemars(extend("minItems" = 1, "maxItems" = MAX_EXCEPTIONS, "uniqueItems" = true))]
pub struct ExceptList(pub Vec<Except>);

/// Where all of these conditions hold, the policy does not apply.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("minProperties" = 1, "examples" = [{"cidrs": ["10.0.0.0/8"]}]))]
pub struct Except {
    /// One of these methods.
    pub methods: Option<Methods>,
    /// One of these hosts, compared in lower case, without port.
    pub hosts: Option<Hosts>,
    /// The path, compared without the query and in one spelling.
    pub path: Option<PathMatch>,
    /// Headers by name: all of these conditions. Of a header that comes several times, all values must fit.
    pub headers: Option<Headers>,
    /// One of these Envoy routes, by name.
    pub routes: Option<Routes>,
    /// The client's address that Envoy trusts, in one of these blocks.
    pub cidrs: Option<Cidrs>,
}

/// Methods, each once.
#[derive(JsonSchema)]
#[schemars(extend("minItems" = 1, "maxItems" = MAX_METHODS, "uniqueItems" = true, "examples" = [["GET", "HEAD"]]))]
pub struct Methods(pub Vec<Method>);

/// Hosts, each once.
#[derive(JsonSchema)]
#[schemars(extend("minItems" = 1, "maxItems" = MAX_HOSTS, "uniqueItems" = true, "examples" = [["*.example.com"]]))]
pub struct Hosts(pub Vec<Host>);

/// Names of routes, each once.
#[derive(JsonSchema)]
#[schemars(extend("minItems" = 1, "maxItems" = MAX_ROUTES, "uniqueItems" = true, "examples" = [["checkout"]]))]
pub struct Routes(pub Vec<RouteName>);

/// The name of an Envoy route, at most 256 bytes.
#[derive(JsonSchema)]
#[schemars(extend("minLength" = 1, "maxLength" = MAX_ROUTE_BYTES))]
pub struct RouteName(pub String);

/// Blocks of addresses, each once.
#[derive(JsonSchema)]
#[schemars(extend(
    "minItems" = 1, "maxItems" = MAX_CIDRS, "uniqueItems" = true, "examples" = [["10.0.0.0/8", "2001:db8::/32"]]
))]
pub struct Cidrs(pub Vec<Cidr>);

/// A condition on the path.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum PathMatch {
    /// The whole path, to the letter.
    Exact(Path),
    /// What the path starts with, to the letter: `/api` matches `/apix`, and `/api/` does not match `/api`.
    Prefix(Path),
    /// A path with variables.
    Template(Template),
    /// A regular expression that the whole path must fit.
    Regex(Regex),
}

/// Conditions by names of headers, in any case, each name once.
#[derive(JsonSchema)]
#[schemars(extend(
    "minProperties" = 1, "maxProperties" = MAX_CONDITIONS, "propertyNames" = { "$ref": "#/$defs/HeaderName" },
    "examples" = [{"x-client": {"prefix": "mobile-"}}]
))]
pub struct Headers(pub BTreeMap<String, HeaderCondition>);

/// What the value of a header must be; blanks around it do not count.
#[derive(JsonSchema)]
#[schemars(untagged)]
pub enum HeaderCondition {
    /// This, to the letter.
    Value(HeaderText),
    /// A condition.
    Form(HeaderForm),
}

/// What the value of a header must be.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum HeaderForm {
    /// This, to the letter.
    Exact(HeaderText),
    /// What it starts with, to the letter.
    Prefix(HeaderStart),
    /// A regular expression that the whole value must fit.
    Regex(Regex),
    /// Whether there is such a header.
    Present(bool),
}
