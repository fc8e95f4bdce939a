//! The messages of `POST /v1/take`: what the filter, or any program with curl, asks the companion.
//!
//! A request is read strictly, so that a field from a newer caller is not silently dropped; a reply is
//! read leniently, so that an older filter lives with a newer companion.

use serde::{Deserialize, Serialize};

use crate::bucket::{Fit, Standing};
use crate::quota::TokenBucket;

/// The path that takes are posted to.
pub const TAKE_PATH: &str = "/v1/take";

/// The header that marks a reply as the companion's own: Envoy makes 503 and 504 replies too.
pub const MARKER_HEADER: &str = "x-tidegate-companion";

/// The marker's value: the version of the messages.
pub const MARKER_VALUE: &str = "v1";

/// The most takes of one request.
pub const MAX_TAKES: usize = 128;

/// The most charges of one take, and so the most policies of a configuration that ask the companion.
pub const MAX_CHARGES: usize = 16;

/// The most bytes of a store key: what the parts of a policy's key come to at most.
pub const MAX_KEY_BYTES: usize = 2048;

/// The most bytes of a request's body.
pub const MAX_BODY_BYTES: usize = 1 << 20;

/// A batch of takes, decided one after the other, each for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeRequest {
    /// One to [`MAX_TAKES`] takes.
    pub takes: Vec<Take>,
}

/// What one request costs: charged on all keys or on none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Take {
    /// One to [`MAX_CHARGES`] charges with different keys.
    pub charges: Vec<Charge>,
}

/// One limit, and what to charge on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// The store key, `rl:{IDENTITY}:POLICY:SCOPE`; see [`crate::key`].
    pub key: String,
    /// The limit, stated by the caller: the companion holds none of its own.
    pub limit: Limit,
    /// Tokens, at least 1; 1 where absent.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cost: u64,
    /// True: counted when the take is admitted and the cost fits, never a reason to refuse.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shadow: bool,
}

/// A limit that the store enforces, as `{"token_bucket": {"capacity": 100, "rate": "2/s"}}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// See [`crate::bucket`].
    TokenBucket(TokenBucket),
}

/// The answers to a batch, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeReply {
    /// As many as the request had takes.
    pub takes: Vec<Taken>,
}

impl TakeRequest {
    /// The message's JSON.
    pub fn write(&self) -> Vec<u8> {
        // Strings, integers and booleans under string keys always have a JSON form.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl TakeReply {
    /// Reads a reply; `None` where the bytes are none.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// The answer to one take.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Taken {
    /// The store decided.
    Decided {
        /// True: every charge was made. False: none was.
        admitted: bool,
        /// How each limit stands after the decision, in the order of the take's charges.
        charges: Vec<Charged>,
    },
    /// The store could not decide this take: it is broken, not denied. Nothing was charged.
    Failed {
        /// What went wrong, for a person.
        error: String,
    },
}

/// How one limit stands after a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Charged {
    /// Whole tokens left.
    pub remaining: u64,
    /// Microseconds until the cost fits: 0 where it did, absent where it never fits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait_us: Option<u64>,
    /// Microseconds until the bucket is full.
    pub full_us: u64,
}

impl From<Charged> for Standing {
    fn from(charged: Charged) -> Self {
        let fit = match charged.wait_us {
            Some(0) => Fit::Now,
            Some(wait_us) => Fit::After(wait_us),
            None => Fit::Never,
        };
        Self { remaining: charged.remaining, fit, full_us: charged.full_us }
    }
}

const fn one() -> u64 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_one(cost: &u64) -> bool {
    *cost == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_false(shadow: &bool) -> bool {
    !*shadow
}
