//! What a policy is once its configuration has been found valid.
//!
//! How policies are written is `plugin-config`'s; how they are matched and applied is
//! [`crate::request`]'s and [`crate::limiter`]'s.

use core::time::Duration;

use crate::quota::TokenBucket;

/// One limit for some requests.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// Unique in a configuration, 1 to [`MAX_NAME_BYTES`] printable ASCII characters.
    pub name: String,
    /// The requests that it applies to.
    pub matcher: Match,
    /// Whose requests are counted together. Never empty for a [`Limit::TokenBucket`].
    pub key: Vec<KeyPart>,
    /// How many requests pass.
    pub limit: Limit,
    /// What one request takes, at least 1.
    pub cost: u64,
    /// Where the limit is counted.
    pub sync: Sync,
    /// True: counted and measured, never refused.
    pub shadow: bool,
}

/// The most bytes of a policy's name.
pub const MAX_NAME_BYTES: usize = 64;

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

/// The requests that a policy applies to: all conditions hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Match {
    /// One of these methods, in upper case; empty: any.
    pub methods: Vec<String>,
    /// This path; `None`: any.
    pub path: Option<PathMatch>,
}

/// A condition on the path, which is compared normalised; see [`crate::path`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathMatch {
    /// The whole path.
    Exact(String),
    /// What the path starts with, to the letter: `/api` matches `/apix` too, `/api/` does not.
    Prefix(String),
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
}

/// A part of a request that narrows a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The method.
    Method,
    /// The normalised path without the query.
    Path,
}
