//! The plugin configuration as it is written: types for the schema alone, which nothing ever reads into.
//!
//! What stands beside a type in Rust's own comments is what editors show. Bounds are the parser's own constants.

mod key;
mod limit;
mod matching;
mod policy;
mod response;
mod rules;
mod texts;

pub use key::*;
pub use limit::*;
pub use matching::*;
pub use policy::*;
pub use response::*;
pub use texts::*;

use schemars::JsonSchema;

/// The configuration of the Tidegate filter: the same JSON in Envoy's `configuration`, in Istio's `pluginConfig` and
/// for `tidegate check`.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("allOf" = rules::of_configuration()))]
#[allow(missing_docs, reason = "its description is for editors")]
pub struct Configuration {
    /// The address of this schema, by which editors find it. The filter does not read it.
    #[schemars(rename = "$schema")]
    pub schema: Option<String>,
    /// Where the filter finds the companion service. Required where a policy asks it: all do that count, unless they
    /// have `"sync": "local"`.
    pub companion: Option<Companion>,
    /// The families of response fields that tell clients how they stand. An empty list sends none.
    #[schemars(extend(
        "default" = ["draft-11"],
        "examples" = [["draft-11", "x-ratelimit"], []],
        "uniqueItems" = true,
        "maxItems" = 2,
        "allOf" = rules::of_families()
    ))]
    pub headers: Option<Vec<Family>>,
    /// What the proxy keeps for policies that count in it.
    pub state: Option<State>,
    /// How policies refuse that say nothing about it themselves.
    pub response: Option<Response>,
    /// The limits. Each that matches a request applies: it is charged on all of them or on none. At most 16 of them may
    /// ask the companion.
    #[schemars(length(min = 1, max = limiter::policy::MAX_POLICIES))]
    pub policies: Vec<Policy>,
}

/// Where the filter finds the companion service, and how long a request waits for it.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("examples" = [{"cluster": "tidegate", "timeout": "50ms"}]))]
pub struct Companion {
    /// The name of the Envoy cluster: printable ASCII without blanks.
    #[schemars(length(min = 1, max = plugin_config::MAX_CLUSTER_BYTES))]
    #[schemars(extend(
        "pattern" = "^[!-~]*$",
        "examples" = ["tidegate", "outbound|8080||tidegate.tidegate.svc.cluster.local"]
    ))]
    pub cluster: String,
    /// How long a request waits for the companion at most, in milliseconds or seconds: `1ms` to `10s`.
    pub timeout: Option<Timeout>,
}

/// What the proxy keeps for `local`, `lease` and `async` policies and for shares.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields, extend("examples" = [{"slots": 4096}]))]
pub struct State {
    /// The number of slots, each with room for eight clients; a slot takes at most 1.75 KB of Envoy's memory. One for
    /// every two clients that are counted at the same time is ample.
    #[schemars(range(min = 1, max = plugin_config::MAX_SLOTS))]
    #[schemars(extend("default" = plugin_config::DEFAULT_SLOTS, "examples" = [4096, 65536]))]
    pub slots: u32,
}

/// A family of response fields.
#[derive(JsonSchema)]
#[schemars(rename_all = "kebab-case")]
pub enum Family {
    /// `RateLimit-Policy` and `RateLimit` as the IETF's draft writes them since its version 08.
    #[schemars(rename = "draft-11")]
    Draft11,
    /// `RateLimit-Limit`, `-Remaining`, `-Reset` and the `RateLimit-Policy` of that draft's version 06; not together
    /// with `draft-11`.
    #[schemars(rename = "draft-06")]
    Draft06,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, this one in seconds from now.
    #[schemars(rename = "x-ratelimit")]
    XRateLimit,
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`, with a choice of what the reset is.
    #[schemars(rename = "x-ratelimit")]
    XRateLimitWith(XRateLimit),
}

/// How the family `x-ratelimit` is written.
#[derive(JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct XRateLimit {
    /// What `X-RateLimit-Reset` tells.
    pub reset: Reset,
}

/// What `X-RateLimit-Reset` tells.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase")]
pub enum Reset {
    /// Seconds from now.
    Delta,
    /// Seconds since 1970.
    Epoch,
}
