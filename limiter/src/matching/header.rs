//! Conditions on header fields, which may come several times.

use super::Pattern;

/// A condition on a header.
#[derive(Clone, Debug, PartialEq)]
pub struct HeaderMatch {
    /// In lower case.
    pub name: String,
    /// What its value must be.
    pub condition: HeaderCondition,
}

/// What the value of a header must be.
#[derive(Clone, Debug, PartialEq)]
pub enum HeaderCondition {
    /// This.
    Exact(String),
    /// Something that starts like this.
    Prefix(String),
    /// Something that fits as a whole.
    Regex(Pattern),
    /// Anything, or with `false` no such header.
    Present(bool),
}

/// What is asked of a request that may be read in several ways, as one with a header that comes several times: which
/// readings must fit. In doubt a limit applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// One is enough: for what a policy applies to.
    Any,
    /// All must: for what it excepts.
    All,
}

impl HeaderCondition {
    /// Whether a header fits: all its values, with commas between them; `None` where there is none. Blanks around a
    /// value are not part of it.
    pub fn holds(&self, joined: Option<&[u8]>, values: Values) -> bool {
        let Some(joined) = joined else { return *self == Self::Present(false) };
        let whole = joined.trim_ascii();
        if let Self::Present(wanted) = self {
            return *wanted;
        }
        if !whole.contains(&b',') {
            return self.fits(whole, values);
        }
        // It may be one value that has a comma, or several values.
        let mut parts = whole.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
        match values {
            Values::Any => self.fits(whole, values) || parts.any(|part| self.fits(part, values)),
            Values::All => parts.all(|part| self.fits(part, values)),
        }
    }

    fn fits(&self, value: &[u8], values: Values) -> bool {
        match self {
            Self::Exact(exact) => exact.as_bytes() == value,
            Self::Prefix(prefix) => value.starts_with(prefix.as_bytes()),
            Self::Regex(pattern) => pattern.holds(value, values),
            Self::Present(wanted) => *wanted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(condition: &HeaderCondition, joined: Option<&str>) -> (bool, bool) {
        let joined = joined.map(str::as_bytes);
        (condition.holds(joined, Values::Any), condition.holds(joined, Values::All))
    }

    #[test]
    fn a_value_fits_with_blanks_around_it() {
        let exact = HeaderCondition::Exact("yes".into());
        assert_eq!(holds(&exact, Some(" yes\t")), (true, true));
        assert_eq!(holds(&exact, Some("YES")), (false, false));
        assert_eq!(holds(&exact, None), (false, false));
        assert_eq!(holds(&HeaderCondition::Prefix("ye".into()), Some("yes")), (true, true));
        assert_eq!(holds(&HeaderCondition::Regex("y.s".parse().unwrap()), Some("yes")), (true, true));
    }

    #[test]
    fn in_doubt_the_limit_applies() {
        let exact = HeaderCondition::Exact("yes".into());
        assert_eq!(holds(&exact, Some("no,yes")), (true, false));
        assert_eq!(holds(&exact, Some("yes, yes")), (true, true));
        assert_eq!(holds(&HeaderCondition::Exact("a,b".into()), Some("a,b")), (true, false));
    }

    #[test]
    fn a_header_is_there_or_not() {
        assert_eq!(holds(&HeaderCondition::Present(true), Some("")), (true, true));
        assert_eq!(holds(&HeaderCondition::Present(true), None), (false, false));
        assert_eq!(holds(&HeaderCondition::Present(false), None), (true, true));
        assert_eq!(holds(&HeaderCondition::Present(false), Some("a,b")), (false, false));
    }
}
