//! `key`, `on_missing`, and where identities come from.

use plugin_config::{MAX_SOURCES, MAX_STEPS, MIN_STEPS};
use schemars::JsonSchema;

use super::{CookieName, HeaderName, QueryName, Step};

/// A part of a key: who asks, or what is asked for.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum KeyPart {
    /// The client's address that Envoy trusts (`use_remote_address`, `xff_num_trusted_hops`); IPv6 by its /64.
    Ip,
    /// The value of a request header. Nobody has verified it unless something before the filter did.
    Header(HeaderName),
    /// The value of a cookie.
    Cookie(CookieName),
    /// The value of a parameter of the query, after percent-decoding.
    Query(QueryName),
    /// A claim of a token that Envoy's `jwt_authn` has verified: the name under which that puts its payload
    /// (`payload_in_metadata`), and the way to the claim.
    Claim(Way),
    /// A value of Envoy's dynamic metadata, or where there is none, of the route's metadata: the namespace, and the way
    /// to the value.
    Metadata(Way),
    /// The first of these that the request has.
    First(Sources),
    /// Requests of each method are counted apart.
    Method,
    /// Requests for each path are counted apart; for a path by `template`, all that fit it together.
    Path,
    /// Requests of each Envoy route are counted apart, by its name.
    Route,
    /// Requests for each host are counted apart.
    Host,
}

/// Where an identity comes from.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum Source {
    /// The client's address that Envoy trusts; IPv6 by its /64.
    Ip,
    /// The value of a request header.
    Header(HeaderName),
    /// The value of a cookie.
    Cookie(CookieName),
    /// The value of a parameter of the query, after percent-decoding.
    Query(QueryName),
    /// A claim of a token that Envoy's `jwt_authn` has verified.
    Claim(Way),
    /// A value of Envoy's dynamic metadata, or else of the route's.
    Metadata(Way),
}

/// Sources of an identity, of which the first one holds that the request has.
#[derive(JsonSchema)]
#[schemars(extend(
    "minItems" = 1, "maxItems" = MAX_SOURCES, "uniqueItems" = true, "examples" = [[{"header": "x-api-key"}, "ip"]]
))]
pub struct Sources(pub Vec<Source>);

/// The way to a value in metadata: the payload or namespace, and then one name for each level.
#[derive(JsonSchema)]
#[schemars(extend("minItems" = MIN_STEPS, "maxItems" = MAX_STEPS, "examples" = [["payload", "sub"]]))]
pub struct Way(pub Vec<Step>);

/// What becomes of a request without the identity that the key asks for: absent, empty, or repeated with different
/// values.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", extend("default" = "anonymous"))]
pub enum OnMissing {
    /// All such requests share a bucket.
    Anonymous,
    /// The policy does not apply to it.
    Skip,
    /// It is refused: 429 without `Retry-After`.
    Deny,
}
