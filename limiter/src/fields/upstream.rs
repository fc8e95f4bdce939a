//! What upstream says in the same fields. Its bytes are not trusted: they may be of any length and in no
//! encoding, and only the beginning is looked at.

use super::Item;
use super::render::push_quoted;

/// The most bytes of a field in which names are looked for. A name beyond may be used twice, which costs
/// a client nothing but the choice between two policies.
const MAX_SCANNED_BYTES: usize = 4096;

/// The most names of upstream's that are heeded in each field.
const MAX_NAMES: usize = 64;

/// The greatest number that is put behind a name to make it distinct.
const MAX_SUFFIX: u32 = 16;

/// The names that differ from the items' own, by the items' indices.
#[derive(Debug, Default)]
pub(super) struct Names(Vec<(usize, String)>);

impl Names {
    /// The name in place of the item's own.
    pub(super) fn get(&self, index: usize) -> Option<&str> {
        self.0.iter().find(|(renamed, _)| *renamed == index).map(|(_, name)| name.as_str())
    }
}

/// Names for all items that upstream does not use in either field: the item's own, or the same with a
/// number. The choice depends on nothing else, so that a client finds a policy under one name. Where all
/// numbers up to [`MAX_SUFFIX`] are taken too, the item keeps its own name.
pub(super) fn distinct_names(items: &[Item<'_>], policies: Option<&[u8]>, states: Option<&[u8]>) -> Names {
    let mut names = Names::default();
    let theirs: Vec<&[u8]> =
        [policies, states].into_iter().flatten().flat_map(|list| members(list).take(MAX_NAMES)).collect();
    if theirs.is_empty() {
        return names;
    }
    let mut quoted = String::new();
    let mut is_theirs = |name: &str| {
        quoted.clear();
        push_quoted(&mut quoted, name);
        theirs.contains(&quoted.as_bytes())
    };
    for (index, item) in items.iter().enumerate() {
        if !is_theirs(item.name) {
            continue;
        }
        for suffix in 2..=MAX_SUFFIX {
            let candidate = format!("{}-{suffix}", item.name);
            let is_ours = items.iter().any(|other| other.name == candidate)
                || names.0.iter().any(|(_, renamed)| *renamed == candidate);
            if !is_ours && !is_theirs(&candidate) {
                names.0.push((index, candidate));
                break;
            }
        }
    }
    names
}

/// Whether upstream's remaining is more than ours. What is not a number is not shown to be more: it stays.
pub(super) fn is_looser(theirs: &[u8], ours: u64) -> bool {
    let digits = theirs.trim_ascii();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let significant = digits.iter().skip_while(|digit| **digit == b'0');
    // A number of too many digits is a great number.
    let theirs = significant.take(20).fold(0_u64, |number, digit| {
        number.saturating_mul(10).saturating_add(u64::from(digit.saturating_sub(b'0')))
    });
    theirs > ours
}

/// The Strings, with their quotes and escapes, that begin a list's members.
fn members(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = list.get(..MAX_SCANNED_BYTES).unwrap_or(list);
    core::iter::from_fn(move || {
        while !rest.is_empty() {
            let (member, after) = split_member(rest.trim_ascii_start());
            rest = after;
            if let Some(string) = leading_string(member) {
                return Some(string);
            }
        }
        None
    })
}

/// The first member of a list, and what follows its comma.
fn split_member(list: &[u8]) -> (&[u8], &[u8]) {
    let mut in_string = false;
    let mut escaped = false;
    let comma = list.iter().position(|byte| {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b',' => return !in_string,
            _ => {}
        }
        false
    });
    match comma.and_then(|comma| list.split_at_checked(comma)) {
        Some((member, after)) => (member, after.get(1..).unwrap_or_default()),
        None => (list, &[]),
    }
}

/// The String at the beginning of a member, with its quotes.
fn leading_string(member: &[u8]) -> Option<&[u8]> {
    let inner = member.strip_prefix(b"\"")?;
    let mut escaped = false;
    let end = inner.iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    })?;
    member.get(..end + 2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fields::{Advertised, Closed, State};

    fn names_of(list: &[u8]) -> Vec<&[u8]> {
        members(list).collect()
    }

    fn item(name: &str) -> Item<'_> {
        Item { name, advertised: Advertised::NOTHING, state: State::Closed(Closed::Blocked) }
    }

    fn renamed(ours: &[&str], policies: &str, states: &str) -> Vec<String> {
        let items: Vec<_> = ours.iter().map(|name| item(name)).collect();
        let names = distinct_names(&items, Some(policies.as_bytes()), Some(states.as_bytes()));
        (0..items.len()).map(|index| names.get(index).unwrap_or(ours[index]).to_owned()).collect()
    }

    #[test]
    fn members_are_found_by_their_strings() {
        let list = br#""a";q=1;qu="x, y" , "b,\"c\\";r=1,token;r=5, 100;w=60,"""#;
        assert_eq!(names_of(list), [&br#""a""#[..], br#""b,\"c\\""#, br#""""#]);
        assert_eq!(names_of(b""), [b""; 0]);
        assert_eq!(names_of(b"\"open;r=1, \"a\""), [b"\"open;r=1, \""]);
    }

    #[test]
    fn a_name_that_upstream_uses_in_either_field_gets_a_number() {
        assert_eq!(renamed(&["api", "ip"], r#""api";q=1"#, ""), ["api-2", "ip"]);
        assert_eq!(renamed(&["api", "ip"], "", r#""ip";r=1"#), ["api", "ip-2"]);
        assert_eq!(renamed(&["api"], r#""api";q=1"#, r#""api-2";r=1"#), ["api-3"]);
        assert_eq!(renamed(&["api", "api-2"], r#""api";q=1"#, ""), ["api-3", "api-2"]);
        assert_eq!(renamed(&["api-2", "api"], r#""api";q=1, "api-2";q=1"#, ""), ["api-2-2", "api-3"]);
        assert_eq!(renamed(&[r#"a"b\c"#], r#""a\"b\\c";q=1"#, ""), [r#"a"b\c-2"#]);
        assert_eq!(renamed(&["requests"], r#""x";q=1;qu="requests""#, ""), ["requests"]);
    }

    #[test]
    fn a_number_is_looser_where_it_is_greater() {
        assert!(is_looser(b"6", 5));
        assert!(!is_looser(b"5", 5));
        assert!(is_looser(b" 0006 ", 5));
        assert!(is_looser("9".repeat(60_000).as_bytes(), u64::MAX - 1));
        for not_a_number in [&b""[..], b"-1", b"6.0", b"6, 7", b"many", b"\xff\xfe", b"+6"] {
            assert!(!is_looser(not_a_number, 5), "{not_a_number:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_scanned_to_their_end(list in proptest::collection::vec(any::<u8>(), 0..6_000)) {
            let found: usize = members(&list).map(<[u8]>::len).sum();
            prop_assert!(found <= MAX_SCANNED_BYTES);
        }

        #[test]
        fn our_own_names_are_always_recognised(name in "[ -~]{1,64}") {
            let mut list = String::new();
            push_quoted(&mut list, &name);
            list.push_str(";q=1;w=1");
            let names = distinct_names(&[item(&name)], None, Some(list.as_bytes()));
            prop_assert_eq!(names.get(0).unwrap(), format!("{name}-2"));
        }
    }
}
