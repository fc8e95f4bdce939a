//! Quotas that cannot be invalid. What a quota means over time is in [`crate::bucket`].

use core::fmt;

use serde::{Deserialize, Serialize};

use crate::rate::{Rate, RateError};

/// A token bucket: starts full, every request takes its cost, tokens come back evenly at `rate`.
///
/// Levels are counted in *parts* of a token, chosen so that a whole number of parts comes back each
/// microsecond: with p = microseconds of the rate's period, n = its count and g = gcd(p, n), a token has
/// p/g parts and n/g parts come back per microsecond. Whole numbers lose nothing, however odd the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "Written")]
pub struct TokenBucket {
    capacity: u64,
    rate: Rate,
    parts_per_token: u64,
    parts_per_micro: u64,
}

/// The most parts that a bucket may hold: half of what a double, the only number of the store's Lua,
/// holds exactly, so that the sum of a level and a cost is exact too.
pub const MAX_PARTS: u64 = 1 << 52;

/// The bits of [`TokenBucket::tag`].
pub(crate) const TAG_BITS: u32 = 24;

/// Why capacity and rate do not make a quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaError {
    /// A bucket that holds nothing.
    ZeroCapacity,
    /// More parts than the store's scripts count exactly.
    TooLarge {
        /// The greatest capacity that this rate allows.
        max_capacity: u64,
    },
    /// The rate is not one.
    Rate(RateError),
}

impl fmt::Display for QuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ZeroCapacity => f.write_str("0 is not allowed; use 1 or more, or the limit \"blocked\""),
            Self::TooLarge { max_capacity } => write!(
                f,
                "too large to be counted exactly at this rate; use {max_capacity} or less, or a rate with a rounder count or a shorter unit"
            ),
            Self::Rate(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for QuotaError {}

impl TokenBucket {
    /// A bucket of `capacity` tokens, refilled at `rate`.
    ///
    /// # Errors
    /// A capacity of zero, or one too large to be counted exactly at this rate.
    pub fn new(capacity: u64, rate: Rate) -> Result<Self, QuotaError> {
        if capacity == 0 {
            return Err(QuotaError::ZeroCapacity);
        }
        let divisor = gcd(rate.period().micros(), rate.count());
        let parts_per_token = rate.period().micros() / divisor;
        let max_capacity = MAX_PARTS / parts_per_token;
        if capacity > max_capacity {
            return Err(QuotaError::TooLarge { max_capacity });
        }
        Ok(Self { capacity, rate, parts_per_token, parts_per_micro: rate.count() / divisor })
    }

    /// The bucket of one of several shards, and the shard's number: they have the capacity and the rate of this one
    /// together, as far as they go by the day. `turn` tells which. Nothing for less than two shards, and where one
    /// would have no token or never get one.
    pub fn shard(&self, shards: u32, turn: u64) -> Option<(Self, u32)> {
        let number = u32::try_from(turn.checked_rem(shards.into())?).ok().filter(|_| shards > 1)?;
        // Where one would have none, none is split off: else the others would stand beside the whole.
        if self.capacity < u64::from(shards) {
            return None;
        }
        let capacity = share(self.capacity, shards, number);
        Some((Self::new(capacity, self.rate.share(shards, number)?).ok()?, number))
    }

    /// Tokens in a full bucket, at least 1.
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Tokens that come back per period.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Parts of one token, at least 1.
    pub const fn parts_per_token(&self) -> u64 {
        self.parts_per_token
    }

    /// Parts that come back in a microsecond, at least 1.
    pub const fn parts_per_micro(&self) -> u64 {
        self.parts_per_micro
    }

    /// Parts of a full bucket, at most [`MAX_PARTS`].
    pub const fn parts(&self) -> u64 {
        self.capacity * self.parts_per_token
    }

    /// Parts of `cost` tokens; `None` for a cost above capacity, which never fits.
    pub const fn parts_of(&self, cost: u64) -> Option<u64> {
        if cost > self.capacity { None } else { Some(cost * self.parts_per_token) }
    }

    /// Tells this quota from others in [`TAG_BITS`] bits, as far as these go; never 0.
    pub(crate) fn tag(&self) -> u32 {
        // The finaliser of SplitMix64 over each number.
        let mixed =
            [self.capacity, self.parts_per_token, self.parts_per_micro].iter().fold(0, |mixed, number| {
                let mixed = (mixed ^ number).wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            });
        u32::try_from(mixed >> (u64::BITS - TAG_BITS)).unwrap_or(0) | 1
    }

    /// Microseconds until `parts` are back, rounded up.
    pub const fn micros_for(&self, parts: u64) -> u64 {
        parts.div_ceil(self.parts_per_micro)
    }
}

/// The part of a whole that falls to one of several, where the first ones get what is left over.
pub(crate) fn share(whole: u64, parts: u32, number: u32) -> u64 {
    let parts = u64::from(parts.max(1));
    whole / parts + u64::from(u64::from(number) < whole % parts)
}

/// A bucket as it is written in JSON: `{"capacity": 100, "rate": "2/s"}`.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    capacity: u64,
    rate: String,
}

impl TryFrom<Written> for TokenBucket {
    type Error = QuotaError;

    fn try_from(written: Written) -> Result<Self, QuotaError> {
        Self::new(written.capacity, written.rate.parse().map_err(QuotaError::Rate)?)
    }
}

impl From<TokenBucket> for Written {
    fn from(bucket: TokenBucket) -> Self {
        Self { capacity: bucket.capacity, rate: bucket.rate.to_string() }
    }
}

const fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket(capacity: u64, rate: &str) -> Result<TokenBucket, QuotaError> {
        TokenBucket::new(capacity, rate.parse().unwrap())
    }

    #[test]
    fn parts_are_the_smallest_whole_numbers() {
        let hourly = bucket(100, "100/h").unwrap();
        assert_eq!((hourly.parts_per_token(), hourly.parts_per_micro()), (36_000_000, 1));
        let thirds = bucket(10, "3/s").unwrap();
        assert_eq!((thirds.parts_per_token(), thirds.parts_per_micro()), (1_000_000, 3));
        let fast = bucket(10, "3000000/s").unwrap();
        assert_eq!((fast.parts_per_token(), fast.parts_per_micro()), (1, 3));
    }

    #[test]
    fn what_cannot_be_counted_exactly_is_refused_with_the_greatest_that_can() {
        assert_eq!(bucket(0, "1/s"), Err(QuotaError::ZeroCapacity));
        let QuotaError::TooLarge { max_capacity } = bucket(1_000_000, "999983/d").unwrap_err() else {
            panic!("a different error");
        };
        assert!(bucket(max_capacity, "999983/d").is_ok());
        assert!(bucket(max_capacity + 1, "999983/d").is_err());
    }

    #[test]
    fn json_is_checked_as_it_is_read() {
        let read = |text| serde_json::from_str::<TokenBucket>(text);
        assert_eq!(read(r#"{"capacity":100,"rate":"2/s"}"#).unwrap(), bucket(100, "2/s").unwrap());
        assert!(read(r#"{"capacity":0,"rate":"2/s"}"#).is_err());
        assert!(read(r#"{"capacity":1,"rate":"2/x"}"#).is_err());
        assert!(read(r#"{"capacity":1,"rate":"2/s","burst":1}"#).is_err());
        let text = serde_json::to_string(&bucket(100, "2/s").unwrap()).unwrap();
        assert_eq!(text, r#"{"capacity":100,"rate":"2/s"}"#);
    }
}
