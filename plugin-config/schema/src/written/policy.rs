//! A policy, where it is counted, and what becomes of requests when that cannot be asked.

use limiter::policy::MAX_NAME_BYTES;
use plugin_config::{MAX_PARTS, MAX_SHARDS};
use schemars::JsonSchema;

use super::{Cost, KeyPart, Limit, Match, OnMissing, Plan, Response, RetryAfter, rules};

/// One limit for some requests.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("allOf" = rules::of_policy()))]
pub struct Policy {
    /// A name of its own, of 1 to 64 printable ASCII characters. It is part of the store key: a policy that is renamed
    /// starts with full buckets.
    #[schemars(length(min = 1, max = MAX_NAME_BYTES), extend("pattern" = "^[ -~]*$", "examples" = ["per-ip"]))]
    pub name: String,
    /// The requests that it applies to. Left out: every request.
    #[schemars(rename = "match")]
    pub matcher: Option<Match>,
    /// Whose requests, and requests for what, are counted together. Required where a limit counts.
    #[schemars(length(min = 1, max = MAX_PARTS))]
    #[schemars(extend("uniqueItems" = true, "examples" = [["ip"], [{"header": "x-api-key"}, "method", "path"]]))]
    pub key: Option<Vec<KeyPart>>,
    /// What becomes of a request without the identity that the key asks for.
    pub on_missing: Option<OnMissing>,
    /// How many requests pass.
    pub limit: Limit,
    /// Other limits for clients of some plans. Every plan has a bucket for each key.
    pub plan: Option<Plan>,
    /// Tokens that a request takes.
    pub cost: Option<Cost>,
    /// For a key that is hot: in how many buckets it is counted, each with its part of capacity and rate. No limit may
    /// have less capacity.
    #[schemars(range(min = 1, max = MAX_SHARDS), extend("default" = 1))]
    pub shards: Option<u32>,
    /// Where the limit is counted.
    pub sync: Option<Sync>,
    /// What becomes of a request when the companion cannot be asked and no leased token is left.
    pub on_failure: Option<OnFailure>,
    /// True: counted and measured, never refused. With it a limit is tried before it binds.
    #[schemars(extend("default" = false))]
    pub shadow: Option<bool>,
    /// How it refuses. It replaces the whole response of the configuration.
    pub response: Option<Response>,
}

/// Where a limit is counted.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", extend("default" = "lease"))]
pub enum Sync {
    /// In the store, from which each proxy leases tokens for a while: a request waits only while none is left.
    Lease,
    /// In the store, which is asked for every request: for what must hold to the letter.
    Exact,
    /// In each proxy, which tells the store in the background: no request waits, and a bounded excess passes.
    Async,
    /// In each proxy alone. No companion is needed.
    Local,
}

/// What becomes of a request when the companion cannot be asked.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", extend("default" = "open"))]
pub enum OnFailure {
    /// It passes, and is counted as unprotected.
    Open,
    /// It passes within this proxy's share of the limit.
    Share,
    /// It is answered 503.
    Closed(Closed),
}

/// An answer of 503.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Closed {
    /// The `Retry-After` of the answer.
    pub retry_after: RetryAfter,
}
