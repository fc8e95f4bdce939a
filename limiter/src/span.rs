//! Spans of time as people write them: `50ms`, `1s`, `1m`, `1h`, `1d`.

use core::fmt;
use core::time::Duration;

/// Why a text is not a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanError {
    /// Not a whole number followed by a unit.
    Malformed,
    /// Zero of any unit.
    Zero,
    /// More than [`MAX_DAYS`] days.
    TooLong,
}

/// The longest span that a configuration may state, in days.
pub const MAX_DAYS: u64 = 366;

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("not a duration; use a whole number and a unit, as in \"50ms\", \"1s\", \"1m\", \"1h\", \"1d\""),
            Self::Zero => f.write_str("zero is not allowed; use \"1ms\" or more"),
            Self::TooLong => write!(f, "too long; use \"{MAX_DAYS}d\" or less"),
        }
    }
}

impl core::error::Error for SpanError {}

/// Reads a span such as `50ms` or `1h`.
///
/// # Errors
/// Says which of the three things is wrong; fractions, signs, blanks and unknown units are malformed.
pub fn parse(text: &str) -> Result<Duration, SpanError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at_checked(digits).ok_or(SpanError::Malformed)?;
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(SpanError::Malformed),
    };
    if number.is_empty() {
        return Err(SpanError::Malformed);
    }
    // A number too large for its type is a span too long, not a malformed one.
    let count: u64 = number.parse().map_err(|_| SpanError::TooLong)?;
    let span_ms = count.checked_mul(unit_ms).ok_or(SpanError::TooLong)?;
    match span_ms {
        0 => Err(SpanError::Zero),
        ms if ms > MAX_DAYS * 86_400_000 => Err(SpanError::TooLong),
        ms => Ok(Duration::from_millis(ms)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_read() {
        assert_eq!(parse("50ms"), Ok(Duration::from_millis(50)));
        assert_eq!(parse("2s"), Ok(Duration::from_secs(2)));
        assert_eq!(parse("3m"), Ok(Duration::from_mins(3)));
        assert_eq!(parse("4h"), Ok(Duration::from_hours(4)));
        assert_eq!(parse("366d"), Ok(Duration::from_hours(366 * 24)));
    }

    #[test]
    fn what_is_not_a_span_is_refused_by_its_kind() {
        for text in ["", "s", "1", "1.5s", "-1s", " 1s", "1 s", "1x", "1S", "١s"] {
            assert_eq!(parse(text), Err(SpanError::Malformed), "{text:?}");
        }
        assert_eq!(parse("0s"), Err(SpanError::Zero));
        assert_eq!(parse("367d"), Err(SpanError::TooLong));
        assert_eq!(parse("99999999999999999999s"), Err(SpanError::TooLong));
    }
}
