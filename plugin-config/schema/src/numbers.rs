//! Regular expressions of the numbers that stand in texts.
//!
//! They use only what the specification recommends (section 6.4 of its core): no lookaround and no references back.

/// A whole number from 1 to `most` in digits, zeros before it allowed, as readers of texts allow them.
pub(crate) fn up_to(most: u64) -> String {
    let digits = most.to_string();
    // Shorter ones first, then those that begin as the greatest does and then fall behind it.
    let mut forms = Vec::new();
    if digits.len() > 1 {
        forms.push(format!("[1-9]{}", any(digits.len() - 2, true)));
    }
    for (at, digit) in digits.char_indices() {
        let least = if at == 0 { '1' } else { '0' };
        if digit > least {
            let below = char::from_u32(u32::from(digit) - 1).unwrap_or(least);
            let rest = any(digits.len() - at - 1, false);
            forms.push(format!("{}{}{rest}", digits.get(..at).unwrap_or_default(), range(least, below)));
        }
    }
    forms.push(digits);
    format!("0*({})", forms.join("|"))
}

fn range(first: char, last: char) -> String {
    if first == last { first.to_string() } else { format!("[{first}-{last}]") }
}

/// So many digits, or up to so many.
fn any(count: usize, or_less: bool) -> String {
    match (count, or_less) {
        (0, _) => String::new(),
        (1, false) => "[0-9]".to_owned(),
        (_, false) => format!("[0-9]{{{count}}}"),
        (_, true) => format!("[0-9]{{0,{count}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_up_to_the_greatest_fits_and_no_other() {
        for most in [1, 9, 10, 24, 64, 100, 128, 1440, 9999] {
            let pattern = jsonschema::options()
                .build(&serde_json::json!({ "pattern": format!("^{}$", up_to(most)) }))
                .unwrap();
            for number in 0..=most * 2 + 11 {
                for zeros in ["", "0", "000"] {
                    let text = format!("{zeros}{number}");
                    assert_eq!(
                        pattern.is_valid(&text.as_str().into()),
                        (1..=most).contains(&number),
                        "{text} {most}"
                    );
                }
            }
        }
    }
}
