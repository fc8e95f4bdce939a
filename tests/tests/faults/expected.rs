//! The policies that these tests run, and what an answer of theirs must look like.

use std::time::Duration;

use harness::{Answer, Companion, Overhead, Store, StoreKind};
use serde_json::{Value, json};

/// How long a request waits for the companion: long beside what a busy machine takes by itself, so that a
/// second wait shows in a measurement; see [`harness::Overhead`].
pub(crate) const TIMEOUT: Duration = Duration::from_millis(400);

/// How often the filter looks at its deadlines.
const TICK: Duration = Duration::from_millis(10);

/// What timers and one more batch of requests may add that the overhead does not show: a fraction of
/// [`TIMEOUT`].
const MARGIN: Duration = Duration::from_millis(50);

/// The longest that a request may take now: the timeout and one tick, and what this machine adds.
pub(crate) fn longest_wait(timeout: Duration, overhead: &Overhead) -> Duration {
    timeout + TICK + MARGIN + overhead.slowest()
}

/// More than any test takes.
pub(crate) const CAPACITY: u64 = 10_000;

/// What the policy `closed` tells clients in a failure.
const RETRY_AFTER_S: u64 = 5;

/// Each policy under a path of its own: `/open` and `/closed` ask the companion, `/free` has no policy.
pub(crate) fn config(timeout: Duration) -> Value {
    json!({
        "companion": { "cluster": "tidegate", "timeout": format!("{}ms", timeout.as_millis()) },
        "policies": [
            exact("open", "/open", &json!("open")),
            exact("closed", "/closed", &json!({ "closed": { "retry_after": format!("{RETRY_AFTER_S}s") } })),
        ],
    })
}

/// A policy that asks the companion about requests of this path.
pub(crate) fn exact(name: &str, path: &str, on_failure: &Value) -> Value {
    json!({
        "name": name,
        "match": { "path": { "exact": path } },
        "key": [{ "header": "x-api-key" }],
        // A token a day: nothing comes back while a test runs.
        "limit": { "token_bucket": { "capacity": CAPACITY, "rate": "1/d" } },
        "sync": "exact",
        "on_failure": on_failure,
    })
}

/// How long a companion waits for its store: long enough for a busy machine not to be taken for a store that
/// is away, and still shorter than [`TIMEOUT`].
const STORE_TIMEOUT: &str = "200ms";

/// A companion of a store that is about to be away.
pub(crate) async fn companion_of(store: &Store) -> Companion {
    Companion::builder(&store.url()).args(["--store-timeout", STORE_TIMEOUT]).start().await
}

/// A companion that needs no store.
pub(crate) async fn companion_in_memory() -> Companion {
    companion_of(&Store::start(StoreKind::Memory).await).await
}

/// What became of a request to [`config`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seen {
    /// Admitted and charged; so many tokens are left.
    Admitted { left: u64 },
    /// The limit refused it.
    Refused,
    /// Admitted without being checked, by the policy `open`.
    Unprotected,
    /// Not admitted because it could not be checked, by the policy `closed`.
    Unavailable,
}

impl Seen {
    /// Reads an answer, and fails the test where it is none of these in every detail.
    pub(crate) fn of(answer: &Answer) -> Self {
        let limit = answer.header("ratelimit");
        let retry_after = answer.header("retry-after");
        match (answer.status, &limit) {
            (200, Some(limit)) => {
                assert_eq!(retry_after, None, "{answer:?}");
                assert_policy(answer, &["open", "closed"]);
                Self::Admitted { left: left(limit) }
            }
            (200, None) => {
                assert_eq!(retry_after, None, "{answer:?}");
                assert_policy(answer, &["open"]);
                Self::Unprotected
            }
            (503, None) => {
                assert_eq!(retry_after, Some(RETRY_AFTER_S.to_string()), "{answer:?}");
                assert_eq!(answer.header("content-type").as_deref(), Some("application/json"));
                let body = answer.json();
                assert_eq!(body["error"], "rate_limiter_unavailable", "{body}");
                assert_eq!(body["policy"], "closed", "{body}");
                assert_eq!(body["retry_after"], RETRY_AFTER_S, "{body}");
                assert!(body["message"].is_string(), "{body}");
                Self::Unavailable
            }
            (429, _) => {
                assert_eq!(answer.json()["error"], "rate_limit_exceeded", "{answer:?}");
                Self::Refused
            }
            _ => panic!("neither decided nor failed: {answer:?}"),
        }
    }

    /// What `on_failure` makes of a request of this path.
    pub(crate) fn failure(path: &str) -> Self {
        match path {
            "/open" => Self::Unprotected,
            "/closed" => Self::Unavailable,
            _ => panic!("no policy fails at {path}"),
        }
    }
}

/// The tokens left of the only policy in a `RateLimit` field.
pub(crate) fn left(field: &str) -> u64 {
    let number = field.split(';').find_map(|parameter| parameter.strip_prefix("r="));
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no r= in {field:?}"))
}

fn assert_policy(answer: &Answer, names: &[&str]) {
    let field = answer.header("ratelimit-policy").unwrap_or_default();
    let is_known = names.iter().any(|name| field.starts_with(&format!("\"{name}\";q={CAPACITY};")));
    assert!(is_known, "{answer:?}");
}
