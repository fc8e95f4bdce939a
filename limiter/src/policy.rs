//! What a policy is once its configuration has been found valid.
//!
//! How policies are written is `plugin-config`'s; which requests they apply to is [`crate::matching`]'s, what they count
//! [`crate::request`]'s, and what becomes of a request [`crate::limiter`]'s.

use core::time::Duration;

use crate::matching::Match;
use crate::quota::TokenBucket;

/// One limit for some requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Unique in a configuration, 1 to [`MAX_NAME_BYTES`] printable ASCII characters.
    pub name: String,
    /// The requests that it applies to.
    pub matcher: Match,
    /// Whose requests are counted together. Never empty where a limit counts.
    pub key: Vec<KeyPart>,
    /// What becomes of a request without the identity that the key asks for.
    pub on_missing: OnMissing,
    /// How many requests pass, of clients whose plan says nothing else.
    pub limit: Limit,
    /// Other limits for some clients.
    pub plan: Option<Plan>,
    /// What a request takes.
    pub cost: Cost,
    /// In how many buckets a key is counted, at least 1; no limit has less capacity.
    pub shards: u32,
    /// Where the limit is counted; [`Sync::Local`] where none counts.
    pub sync: Sync,
    /// True: counted and measured, never refused.
    pub shadow: bool,
    /// How it refuses.
    pub response: Response,
}

impl Policy {
    /// A policy for all requests, which counts all together in this proxy and refuses as policies do.
    pub fn new(name: impl Into<String>, limit: Limit) -> Self {
        Self {
            name: name.into(),
            matcher: Match::default(),
            key: Vec::new(),
            on_missing: OnMissing::default(),
            limit,
            plan: None,
            cost: Cost::Fixed(1),
            shards: 1,
            sync: Sync::Local,
            shadow: false,
            response: Response::default(),
        }
    }

    /// The limit for all clients and those of the plans.
    pub fn limits(&self) -> impl Iterator<Item = Limit> {
        let plans = self.plan.iter().flat_map(|plan| plan.limits.iter().map(|(_, limit)| *limit));
        core::iter::once(self.limit).chain(plans)
    }
}

/// The most bytes of a policy's name.
pub const MAX_NAME_BYTES: usize = 64;

/// The most policies of a configuration.
pub const MAX_POLICIES: usize = 64;

/// How many requests pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A bucket for each key.
    TokenBucket(TokenBucket),
    /// All pass; the policy leaves no trace.
    Unlimited,
    /// None passes.
    Blocked,
}

/// Where a limit is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// In the store, with a question for every request.
    Exact(OnFailure),
    /// In the store, with questions for many requests at once; see [`crate::lease`].
    Lease(OnFailure),
    /// In this proxy, which tells the store in the background; see [`crate::tally`]. While the store cannot be
    /// told, this proxy counts its share.
    Async,
    /// In this proxy.
    Local,
}

impl Sync {
    /// Its word in the configuration.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Exact(_) => "exact",
            Self::Lease(_) => "lease",
            Self::Async => "async",
            Self::Local => "local",
        }
    }

    /// What becomes of a request when the store cannot be asked; `None` where it never has to be.
    pub const fn on_failure(self) -> Option<OnFailure> {
        match self {
            Self::Exact(on_failure) | Self::Lease(on_failure) => Some(on_failure),
            Self::Async | Self::Local => None,
        }
    }
}

/// What becomes of a request when the store cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// It passes, and is counted as unprotected.
    Open,
    /// It is answered 503 with this Retry-After, at least a second.
    Closed {
        /// Whole seconds.
        retry_after: Duration,
    },
    /// It is decided by what is known of the store's bucket, of which this proxy uses its share; see
    /// [`crate::tally`].
    Share,
}

/// A part of a policy's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// Who asks: the first of these that the request has. Never empty.
    Identity(Vec<Source>),
    /// What is asked for.
    Scope(Scope),
}

/// Where an identity comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// The address that Envoy trusts; IPv6 by its /64.
    Ip,
    /// A request header, by its name in lower case.
    Header(String),
    /// A cookie, by its name.
    Cookie(String),
    /// A parameter of the query, by its name, decoded.
    Query(String),
    /// A claim of a token that Envoy's JWT filter has verified: where that puts its payload, and the way into it.
    Claim(Vec<String>),
    /// What a filter before this one has noted, or else the route: the namespace, and the way into it.
    Metadata(Vec<String>),
}

/// A part of a request that narrows a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The method.
    Method,
    /// The normalised path without the query, or the template that it fits.
    Path,
    /// Envoy's name of the route.
    Route,
    /// The host in normal form; see [`crate::matching::normalize_host`].
    Host,
}

/// What becomes of a request without the identity that a key asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnMissing {
    /// All such requests share a bucket.
    #[default]
    Anonymous,
    /// The policy does not apply.
    Skip,
    /// It is refused.
    Deny,
}

/// Limits by the plan of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What tells the plan's name: the first of these that the request has. Never empty.
    pub from: Vec<Source>,
    /// The limits by the plans' names, sorted by them, each name once.
    pub limits: Vec<(String, Limit)>,
}

impl Plan {
    /// The limit of the plan with this name, which is compared to the letter.
    pub fn limit(&self, name: &[u8]) -> Option<Limit> {
        let position = self.limits.binary_search_by(|(known, _)| known.as_bytes().cmp(name)).ok()?;
        self.limits.get(position).map(|(_, limit)| *limit)
    }
}

/// What a request takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// As many tokens, at least 1.
    Fixed(u64),
    /// As many as the request says.
    Told(ToldCost),
}

/// A cost that requests tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldCost {
    /// Where.
    pub source: CostSource,
    /// For a request that does not tell: 1 to `max`.
    pub default: u64,
    /// The most: what tells more, or cannot be read, counts as this.
    pub max: u64,
}

/// The greatest [`ToldCost::max`], and what holds unless another is said.
pub const MAX_TOLD_COST: u64 = 1_000_000;

/// Where a cost is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CostSource {
    /// In a request header, by its name in lower case.
    Header(String),
    /// In a parameter of the query, by its name, decoded.
    Query(String),
}

/// How a policy refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// Of a refusal: 400 to 499.
    pub status: u16,
    /// What the answer says.
    pub body: Body,
    /// More header fields: names in lower case, and values of printable ASCII.
    pub headers: Vec<(String, String)>,
}

/// The body of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Body {
    /// A JSON object of this filter's own.
    #[default]
    Json,
    /// A problem of RFC 9457, `application/problem+json`.
    Problem,
    /// This text.
    Text(String),
    /// None.
    None,
}

impl Default for Response {
    fn default() -> Self {
        Self { status: 429, body: Body::Json, headers: Vec::new() }
    }
}
