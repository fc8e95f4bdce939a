//! What every text that fits a regular expression contains: looking for it first spares most texts the expression.

/// The longest text that every fitting one contains, the last of several; `None` where it is not plain to see.
pub(super) fn required(pattern: &str) -> Option<String> {
    // Groups carry alternatives and flags.
    if pattern.contains(['(', '|', '\u{fffd}']) {
        return None;
    }
    let mut longest = String::new();
    let mut run = String::new();
    let mut chars = pattern.chars();
    while let Some(char) = chars.next() {
        match char {
            // What is repeated may be there no times, by a second operator even after a plus.
            '*' | '?' | '+' | '{' => drop(run.pop()),
            '\\' | '.' | '^' | '$' | '[' => {}
            _ => {
                run.push(char);
                continue;
            }
        }
        keep(&mut longest, &mut run);
        let rest = match char {
            '{' => chars.as_str().split_once('}').map(|(_, rest)| rest),
            '[' => after_class(chars.as_str()),
            // Letters begin escapes with more to them; all else stands for itself.
            '\\' => match chars.next() {
                Some(escaped) if escaped.is_ascii_punctuation() => {
                    run.push(escaped);
                    continue;
                }
                _ => None,
            },
            _ => continue,
        };
        match rest {
            Some(rest) => chars = rest.chars(),
            // Nothing behind this is plain.
            None => return Some(longest).filter(|text| !text.is_empty()),
        }
    }
    keep(&mut longest, &mut run);
    Some(longest).filter(|text| !text.is_empty())
}

fn keep(longest: &mut String, run: &mut String) {
    if !run.is_empty() && run.len() >= longest.len() {
        core::mem::swap(longest, run);
    }
    run.clear();
}

/// What follows a class of nothing but characters and ranges.
fn after_class(text: &str) -> Option<&str> {
    let (class, rest) = text.split_once(']')?;
    let members = class.strip_prefix('^').unwrap_or(class);
    (!members.is_empty() && !members.contains(['[', '\\'])).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_must_be_there_is_found() {
        for (pattern, expected) in [
            ("/api/v[0-9]+/bulk/.*", Some("/bulk/")),
            ("/orders", Some("/orders")),
            ("/orders/?", Some("/orders")),
            ("/orders+", Some("/order")),
            ("/orders+{0}", Some("/order")),
            ("/a{0,3}b", Some("b")),
            (r"/a\.json", Some(".json")),
            (r"/a\x{41}bcd", Some("/a")),
            ("[^]a]b", None),
            ("[[:alpha:]]bcd", None),
            ("(?i)/orders", None),
            ("/orders|/carts", None),
            (".*", None),
        ] {
            assert_eq!(required(pattern).as_deref(), expected, "{pattern:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4096))]
        #[test]
        fn no_text_that_fits_is_without_it(
            pattern in r"([ab/]|\\[.d/]|[*+?.^$]|\[[ab\]^-]{1,3}\]|\{[01]\}|\(\?:|\)|\|){1,8}",
            texts in proptest::collection::vec("[ab/.]{0,6}", 1..32),
        ) {
            let Ok(regex) = regex_lite::Regex::new(&format!("^(?:{pattern})$")) else { return Ok(()) };
            let literal = required(&pattern).unwrap_or_default();
            for text in texts {
                prop_assert!(!regex.is_match(&text) || text.contains(&literal), "{:?} {:?} {:?}", pattern, text, literal);
            }
        }
    }
}
