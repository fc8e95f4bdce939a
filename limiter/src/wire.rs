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

/// The most charges of one request, over all its takes. They are one script call, during which the store decides
/// for nobody else, and whose answer must come within the companion's store timeout.
pub const MAX_BATCH_CHARGES: usize = 256;

/// The most bytes of a store key: what the parts of a policy's key come to at most.
pub const MAX_KEY_BYTES: usize = 2048;

/// The most bytes of a request's body.
pub const MAX_BODY_BYTES: usize = 1 << 20;

/// A batch of takes, decided one after the other, each for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TakeRequest {
    /// One to [`MAX_TAKES`] takes, with [`MAX_BATCH_CHARGES`] charges at most.
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
    /// Tokens; 1 where absent. 0, which always fits, only with a lease or a report: it renews or returns the one,
    /// or delivers the other.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub cost: u64,
    /// True: counted when the take is admitted and the cost fits, never a reason to refuse.
    #[serde(default, skip_serializing_if = "is_false")]
    pub shadow: bool,
    /// Asks for more than the cost, to be spent later without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<LeaseAsk>,
    /// Says what was let through without asking.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Report>,
}

/// Tokens to be taken from a limit in advance, and unspent ones to be given back to it.
///
/// A lease is named by its holder and a number. The store keeps the leases that are out, so that it knows
/// how many hold some of a limit, grants a name once and takes a lease back once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeaseAsk {
    /// Who holds it: 1 to [`MAX_HOLDER_BYTES`] letters and digits.
    pub holder: String,
    /// The new lease's number, at most [`MAX_LEASE_ID`]. A holder uses a number once on a key, ever: a request
    /// that the network brings late would else give back another lease of that number.
    pub id: u64,
    /// Tokens wanted beyond the cost; 0 asks for none.
    pub want: u64,
    /// Microseconds for which the lease may be spent, 1 to [`MAX_TTL_US`].
    pub ttl_us: u64,
    /// At most [`MAX_RETURNS`] leases of this holder that end here.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub returns: Vec<Return>,
}

/// A lease that its holder has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Return {
    /// Its number.
    pub id: u64,
    /// Tokens of it that were not spent and will not be.
    pub tokens: u64,
}

/// What a holder has let through of a limit without asking, to be charged afterwards, whether or not it fits.
///
/// A holder numbers the tokens of a key one after the other, as TCP numbers bytes. The store remembers how far it
/// has charged them, so that a report may come twice, late or not at all: the next one covers what is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// Who counts: 1 to [`MAX_HOLDER_BYTES`] letters and digits.
    pub holder: String,
    /// Tokens up to and with this number are known to be charged.
    pub from: u64,
    /// Those after it, up to and with this number, are to be charged unless they are; at least `from`, at most
    /// [`MAX_LEASE_ID`]. A report of nothing says that the holder is there.
    pub to: u64,
    /// Microseconds for which the store remembers the holder, 1 to [`MAX_TTL_US`].
    pub ttl_us: u64,
}

/// The most bytes of a holder's name.
pub const MAX_HOLDER_BYTES: usize = 32;

/// The greatest number of a lease or a token: what doubles, the only numbers of many programs, tell apart.
pub const MAX_LEASE_ID: u64 = (1 << 53) - 1;

/// The most microseconds that a lease lasts.
pub const MAX_TTL_US: u64 = 60_000_000;

/// The most leases that one charge gives back.
pub const MAX_RETURNS: usize = 4;

/// The most leases of one key that the store keeps; while so many are out, it grants no more.
pub const MAX_LEASES: usize = 128;

/// The most holders that the store remembers for their reports; those of others are charged as they come.
pub const MAX_REPORTERS: usize = 128;

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
    /// Tokens of the lease that was asked for; 0 where none was, or there was nothing to spare.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub granted: u64,
    /// Holders whose reports the store remembers, with the one that reports; 0 where nothing was reported.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub proxies: u64,
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
const fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands a reference")]
const fn is_false(shadow: &bool) -> bool {
    !*shadow
}
