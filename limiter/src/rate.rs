//! Rates as people write them: `2/s`, `100/m`, `1000/h`, `5000/d`.

use core::fmt;
use core::num::NonZeroU64;

/// The span that a rate counts over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Period {
    /// `/s`
    Second,
    /// `/m`
    Minute,
    /// `/h`
    Hour,
    /// `/d`
    Day,
}

impl Period {
    /// Length in microseconds.
    pub const fn micros(self) -> u64 {
        self.seconds() * 1_000_000
    }

    /// Length in seconds.
    pub const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3_600,
            Self::Day => 86_400,
        }
    }

    const fn unit(self) -> &'static str {
        match self {
            Self::Second => "s",
            Self::Minute => "m",
            Self::Hour => "h",
            Self::Day => "d",
        }
    }
}

/// Units per period, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    count: NonZeroU64,
    period: Period,
}

/// The greatest count of a rate.
pub const MAX_COUNT: u64 = 1_000_000_000;

/// Why a text is not a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateError {
    /// Not a whole number, a slash and a unit.
    Malformed,
    /// Nothing per period.
    Zero,
    /// A count over [`MAX_COUNT`].
    TooFast,
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str(
                "not a rate; use a whole number, a slash and one of s, m, h, d, as in \"2/s\" or \"100/m\"",
            ),
            Self::Zero => {
                f.write_str("a rate of zero never refills; use 1 or more, or the limit \"blocked\"")
            }
            Self::TooFast => write!(f, "too fast; use a count of {MAX_COUNT} or less"),
        }
    }
}

impl core::error::Error for RateError {}

impl Rate {
    /// A rate of `count` units per `period`.
    ///
    /// # Errors
    /// A count of zero or over [`MAX_COUNT`].
    pub fn new(count: u64, period: Period) -> Result<Self, RateError> {
        let count = NonZeroU64::new(count).ok_or(RateError::Zero)?;
        if count.get() > MAX_COUNT {
            return Err(RateError::TooFast);
        }
        Ok(Self { count, period })
    }

    /// Units per period, at least 1.
    pub const fn count(self) -> u64 {
        self.count.get()
    }

    /// The period.
    pub const fn period(self) -> Period {
        self.period
    }

    /// The part of this rate that falls to one of several: over the shortest period that divides it evenly, else over
    /// the longest that can tell it, where the first ones get what is left over. `None` where any would get nothing.
    pub(crate) fn share(self, parts: u32, number: u32) -> Option<Self> {
        let periods = [Period::Second, Period::Minute, Period::Hour, Period::Day];
        let longer = periods.into_iter().filter(|period| period.seconds() >= self.period.seconds());
        let told = longer.filter_map(|period| {
            let count = self.count.get() * (period.seconds() / self.period.seconds());
            (count / u64::from(parts.max(1)) < MAX_COUNT).then_some((period, count))
        });
        let mut last = None;
        for (period, count) in told {
            last = Some((period, count));
            if count.is_multiple_of(parts.max(1).into()) {
                break;
            }
        }
        let (period, count) = last.filter(|(_, count)| *count >= u64::from(parts))?;
        Self::new(crate::quota::share(count, parts, number), period).ok()
    }
}

impl core::str::FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        let (count, unit) = text.split_once('/').ok_or(RateError::Malformed)?;
        let period = match unit {
            "s" => Period::Second,
            "m" => Period::Minute,
            "h" => Period::Hour,
            "d" => Period::Day,
            _ => return Err(RateError::Malformed),
        };
        if count.is_empty() || !count.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(RateError::Malformed);
        }
        Self::new(count.parse().map_err(|_| RateError::TooFast)?, period)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.count, self.period.unit())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_written_as_it_is_read() {
        for text in ["2/s", "100/m", "1000/h", "5000/d", "1000000000/s"] {
            assert_eq!(text.parse::<Rate>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_is_not_a_rate_is_refused_by_its_kind() {
        for text in ["", "2", "/s", "2/", "2/x", "2/ s", "+2/s", "-2/s", "2.5/s", "2/s/s", "2/S"] {
            assert_eq!(text.parse::<Rate>(), Err(RateError::Malformed), "{text:?}");
        }
        assert_eq!("0/s".parse::<Rate>(), Err(RateError::Zero));
        assert_eq!("1000000001/s".parse::<Rate>(), Err(RateError::TooFast));
        assert_eq!("99999999999999999999/s".parse::<Rate>(), Err(RateError::TooFast));
    }
}
