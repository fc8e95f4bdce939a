//! The words that a place in the configuration understands, and the nearest one to a word that it does not.

use crate::error::{Problem, Remedy};

/// The keys of an object, or the texts that a value may be.
#[derive(Debug)]
pub(crate) struct Words {
    /// What works.
    pub(crate) known: &'static [&'static str],
    /// What the contract has and this version has not, each with what to do instead.
    later: &'static [(&'static str, &'static str)],
    /// What is written otherwise than here, each with how.
    elsewhere: &'static [(&'static str, &'static str)],
}

impl Words {
    pub(crate) const fn new(known: &'static [&'static str]) -> Self {
        Self { known, later: &[], elsewhere: &[] }
    }

    pub(crate) const fn later(self, later: &'static [(&'static str, &'static str)]) -> Self {
        Self { later, ..self }
    }

    pub(crate) const fn elsewhere(self, elsewhere: &'static [(&'static str, &'static str)]) -> Self {
        Self { elsewhere, ..self }
    }

    /// The known word that `word` is.
    pub(crate) fn find(&self, word: &str) -> Option<&'static str> {
        self.known.iter().find(|known| **known == word).copied()
    }

    /// What is wrong with a word that is not known; `unknown` is the problem where the contract does not
    /// have it either, `otherwise` the remedy where nothing known is near.
    pub(crate) fn judge(&self, word: &str, unknown: Problem, otherwise: Remedy) -> (Problem, Remedy) {
        if let Some((_, instead)) = self.later.iter().find(|(later, _)| *later == word) {
            return (Problem::NotSupported, Remedy::Do(instead));
        }
        if let Some((_, how)) = self.elsewhere.iter().find(|(elsewhere, _)| *elsewhere == word) {
            return (unknown, Remedy::Do(how));
        }
        (unknown, self.nearest(word).map_or(otherwise, Remedy::DidYouMean))
    }

    /// The known word that `word` was probably meant to be.
    pub(crate) fn nearest(&self, word: &str) -> Option<&'static str> {
        let word = folded(word);
        (0..=MAX_EDITS).find_map(|edits| {
            self.known
                .iter()
                .find(|known| edits <= tolerance(known) && within(&word, &folded(known), edits))
                .copied()
        })
    }
}

const MAX_EDITS: usize = 2;

/// Short words are near to everything: the shorter, the fewer edits.
const fn tolerance(known: &str) -> usize {
    match known.len() {
        0..=2 => 0,
        3..=5 => 1,
        _ => MAX_EDITS,
    }
}

/// `Token-Bucket` and `token_bucket` are one word to a person.
fn folded(word: &str) -> Vec<u8> {
    let fold = |byte: u8| if byte == b'-' { b'_' } else { byte.to_ascii_lowercase() };
    // What is longer is near to nothing, and only costs time.
    word.bytes().take(MAX_WORD_BYTES).map(fold).collect()
}

const MAX_WORD_BYTES: usize = 48;

/// Whether `edits` insertions, deletions, replacements and swaps of neighbours make `a` into `b`.
fn within(a: &[u8], b: &[u8], edits: usize) -> bool {
    if a.len().abs_diff(b.len()) > edits {
        return false;
    }
    match (a, b) {
        ([x, a_rest @ ..], [y, b_rest @ ..]) if x == y => within(a_rest, b_rest, edits),
        ([x, a_rest @ ..], [y, b_rest @ ..]) => {
            let Some(left) = edits.checked_sub(1) else { return false };
            let swapped = match (a_rest, b_rest) {
                ([x2, a_rest @ ..], [y2, b_rest @ ..]) => x == y2 && y == x2 && within(a_rest, b_rest, left),
                _ => false,
            };
            swapped || within(a_rest, b_rest, left) || within(a_rest, b, left) || within(a, b_rest, left)
        }
        // One is empty, and the difference in length is within the edits.
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    const WORDS: Words = Words::new(&["ip", "key", "limit", "token_bucket", "name", "local"])
        .later(&[("plan", "use \"limit\"")])
        .elsewhere(&[("limb", "grow it elsewhere")]);

    #[test]
    fn a_slip_of_the_pen_is_recognised() {
        for (word, meant) in [
            ("limt", Some("limit")),
            ("lmiit", Some("limit")),
            ("limits", Some("limit")),
            ("tokenBucket", Some("token_bucket")),
            ("token-bucket", Some("token_bucket")),
            ("KEY", Some("key")),
            ("kex", Some("key")),
            ("IP", Some("ip")),
            // Two edits make another word out of a short one.
            ("global", None),
            ("id", None),
            ("", None),
            ("rate", None),
            ("quota", None),
        ] {
            assert_eq!(WORDS.nearest(word), meant, "{word:?}");
        }
        assert_eq!(WORDS.nearest(&"limit".repeat(100_000)), None);
    }

    #[test]
    fn a_word_of_the_contract_is_not_called_unknown() {
        let judge = |word| WORDS.judge(word, Problem::UnknownKey, Remedy::OneOf(WORDS.known));
        assert_eq!(judge("plan"), (Problem::NotSupported, Remedy::Do("use \"limit\"")));
        assert_eq!(judge("limb"), (Problem::UnknownKey, Remedy::Do("grow it elsewhere")));
        assert_eq!(judge("limt"), (Problem::UnknownKey, Remedy::DidYouMean("limit")));
        assert_eq!(judge("burst"), (Problem::UnknownKey, Remedy::OneOf(WORDS.known)));
    }
}
