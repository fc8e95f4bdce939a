//! How to mend what is wrong with a configuration.

use core::fmt;

use crate::shown;

/// How to mend an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// In words.
    Do(&'static str),
    /// The known word that was probably meant.
    DidYouMean(&'static str),
    /// The text that was probably meant.
    Perhaps(String),
    /// One of the words that are known here.
    OneOf(&'static [&'static str]),
    /// A number, or a count, up to this.
    AtMost(u64),
    /// A number up to this, or something else.
    AtMostOr(u64, &'static str),
    /// This text.
    Write(String),
    /// An object with this key and text.
    WriteUnder(&'static str, String),
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Do(words) => f.write_str(words),
            Self::DidYouMean(word) => write!(f, "did you mean \"{word}\"?"),
            Self::Perhaps(text) => write!(f, "did you mean {}?", shown::text(text)),
            Self::AtMost(most) => write!(f, "use at most {most}"),
            Self::AtMostOr(most, otherwise) => write!(f, "use at most {most}, or {otherwise}"),
            Self::Write(text) => write!(f, "use {}", shown::text(text)),
            Self::WriteUnder(key, text) => write!(f, "use {{\"{key}\": {}}}", shown::text(text)),
            Self::OneOf(words) => {
                f.write_str("use ")?;
                for (index, word) in words.iter().enumerate() {
                    let before = match index {
                        0 => "",
                        _ if index + 1 == words.len() => " or ",
                        _ => ", ",
                    };
                    write!(f, "{before}\"{word}\"")?;
                }
                Ok(())
            }
        }
    }
}
