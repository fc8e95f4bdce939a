//! A header that may have been sent more than once.

/// The lines of a header.
#[derive(Debug)]
pub(super) struct Lines {
    /// All values, with commas between them; nothing where there is no such header.
    pub(super) joined: Option<Vec<u8>>,
    /// The first value alone, where it was asked for.
    first: Option<Vec<u8>>,
    /// Whether it was.
    has_asked: bool,
}

impl Lines {
    pub(super) const fn new(joined: Option<Vec<u8>>) -> Self {
        Self { joined, first: None, has_asked: false }
    }

    /// Whether the first value has to be known to tell one value from several, and is not yet.
    pub(super) fn is_doubtful(&self) -> bool {
        !self.has_asked && self.joined.as_ref().is_some_and(|joined| joined.contains(&b','))
    }

    pub(super) fn set_first(&mut self, first: Option<Vec<u8>>) {
        (self.first, self.has_asked) = (first, true);
    }

    /// True where there is nothing but blanks.
    pub(super) fn is_empty(&self) -> bool {
        self.joined.as_ref().is_none_or(|joined| joined.trim_ascii().is_empty())
    }

    /// The first value, and those behind it with commas between them.
    pub(super) fn first_and_rest(&self) -> (&[u8], &[u8]) {
        let Some(joined) = self.joined.as_deref() else { return (&[], &[]) };
        let rest = match self.first.as_deref() {
            Some(first) if joined.starts_with(first) => joined.get(first.len()..).unwrap_or_default(),
            // Nobody who could tell.
            _ if self.has_asked => return (&[], joined),
            // No comma.
            _ => &[],
        };
        let first = joined.get(..joined.len() - rest.len()).unwrap_or(joined);
        (first, rest.strip_prefix(b",").unwrap_or(rest))
    }

    /// The one value of a header. Blanks around a value are not part of it. An empty header, and one that was
    /// repeated with different values, has no value: upstream might read the other one, so neither may open a
    /// bucket.
    pub(super) fn sole_value(&self) -> Option<&[u8]> {
        let joined = self.joined.as_deref()?.trim_ascii();
        if joined.is_empty() {
            return None;
        }
        if !joined.contains(&b',') {
            return Some(joined);
        }
        let first = self.first.as_deref()?.trim_ascii();
        if first.len() == joined.len() {
            // A single value that has a comma in it.
            return Some(joined);
        }
        let rest = joined.get(first.len()..)?;
        let chunk = first.len() + 1;
        let repeats = !first.is_empty()
            && rest.len().is_multiple_of(chunk)
            && rest.chunks(chunk).all(|again| again.split_first() == Some((&b',', first)));
        if repeats { joined.get(..first.len()) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_header_counts_only_where_all_values_are_equal() {
        let sole = |joined: &str, first: &str| {
            let mut lines = Lines::new(Some(joined.into()));
            if lines.is_doubtful() {
                lines.set_first(Some(first.into()));
            }
            lines.sole_value().map(|value| String::from_utf8(value.into()).unwrap())
        };
        assert_eq!(sole("a", "a").as_deref(), Some("a"));
        assert_eq!(sole(" a\t", " a\t").as_deref(), Some("a"));
        assert_eq!(sole("a,b", "a,b").as_deref(), Some("a,b"), "one value with a comma");
        assert_eq!(sole("a,a", "a").as_deref(), Some("a"));
        assert_eq!(sole("a,b,a,b", "a,b").as_deref(), Some("a,b"));
        for (joined, first) in [
            ("", ""),
            (" ", ""),
            ("a,b", "a"),
            ("a,", "a"),
            (",a", ""),
            (",", ""),
            ("a,a,b", "a"),
            ("a,ab", "a"),
            ("a,b,c", "a,b"),
        ] {
            assert_eq!(sole(joined, first), None, "{joined:?}");
        }
    }
}
