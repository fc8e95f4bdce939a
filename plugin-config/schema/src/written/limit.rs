//! `limit`, `plan` and `cost`.

use std::collections::BTreeMap;

use limiter::policy::MAX_TOLD_COST;
use limiter::quota::MAX_PARTS;
use plugin_config::{MAX_PLAN_BYTES, MAX_PLANS, MAX_SOURCES, MAX_WHOLE};
use schemars::JsonSchema;

use super::{CookieName, HeaderName, QueryName, Rate, Source, Way};

/// How many requests pass.
#[derive(JsonSchema)]
#[schemars(
    rename_all = "snake_case",
    extend("examples" = [{"token_bucket": {"capacity": 100, "rate": "100/m"}}, "unlimited", "blocked"])
)]
pub enum Limit {
    /// A bucket of tokens for each key, full at first: every request takes its cost, and tokens come back evenly.
    TokenBucket(TokenBucket),
    /// All pass, as far as this policy goes; others that match still apply.
    Unlimited,
    /// None passes: 429 without `Retry-After`, for no waiting helps.
    Blocked,
}

/// A bucket of tokens.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("examples" = [{"capacity": 100, "rate": "100/m"}]))]
pub struct TokenBucket {
    /// Tokens in a full bucket: the burst, so many at once after a pause. How many there can be at most depends on the
    /// rate.
    #[schemars(range(min = 1, max = MAX_PARTS), extend("examples" = [100]))]
    pub capacity: u64,
    /// What is sustained: tokens that come back.
    pub rate: Rate,
}

/// Limits by the plan of a client.
#[derive(JsonSchema)]
#[schemars(
    deny_unknown_fields,
    extend("examples" = [{
        "from": {"header": "x-plan"},
        "limits": {"gold": {"token_bucket": {"capacity": 5000, "rate": "5000/h"}}, "internal": "unlimited"}
    }])
)]
pub struct Plan {
    /// What tells the name of the plan.
    pub from: PlanSource,
    /// The limits by names of plans, of 1 to 128 bytes. A client of no plan or another one has the policy's own limit.
    #[schemars(extend(
        "minProperties" = 1, "maxProperties" = MAX_PLANS, "propertyNames" = { "minLength": 1, "maxLength": MAX_PLAN_BYTES }
    ))]
    pub limits: BTreeMap<String, Limit>,
}

/// What tells the name of a plan.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub enum PlanSource {
    /// The value of a request header.
    Header(HeaderName),
    /// The value of a cookie.
    Cookie(CookieName),
    /// The value of a parameter of the query.
    Query(QueryName),
    /// A claim of a token that Envoy's `jwt_authn` has verified.
    Claim(Way),
    /// A value of Envoy's dynamic metadata, or else of the route's.
    Metadata(Way),
    /// The first of these that the request has.
    First(#[schemars(extend("minItems" = 1, "maxItems" = MAX_SOURCES, "uniqueItems" = true))] Vec<Source>),
}

/// Tokens that a request takes.
#[derive(JsonSchema)]
#[schemars(untagged, extend("default" = 1, "examples" = [1, {"header": "x-cost", "default": 1, "max": 100}]))]
pub enum Cost {
    /// So many. No more than any limit has capacity.
    Fixed(#[schemars(range(min = 1, max = MAX_WHOLE))] u64),
    /// As many as a request header says.
    Header(HeaderCost),
    /// As many as a parameter of the query says.
    Query(QueryCost),
}

/// A cost that a request header tells.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct HeaderCost {
    /// The header.
    pub header: HeaderName,
    /// For a request that does not tell.
    pub default: Option<ToldDefault>,
    /// The most.
    pub max: Option<ToldMax>,
}

/// A cost that a parameter of the query tells.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct QueryCost {
    /// The parameter.
    pub query: QueryName,
    /// For a request that does not tell.
    pub default: Option<ToldDefault>,
    /// The most.
    pub max: Option<ToldMax>,
}

/// Tokens that a request takes that does not tell: at most `max`.
#[derive(JsonSchema)]
#[schemars(extend("minimum" = 1, "maximum" = MAX_TOLD_COST, "default" = 1))]
pub struct ToldDefault(pub u32);

/// The most tokens that a request takes. One that tells more, or what cannot be read, takes so many.
#[derive(JsonSchema)]
#[schemars(extend("minimum" = 1, "maximum" = MAX_TOLD_COST, "default" = MAX_TOLD_COST, "examples" = [100]))]
pub struct ToldMax(pub u32);
