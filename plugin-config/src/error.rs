//! What can be wrong with a configuration. Every error says where, what and how to mend it; see [`crate::remedy`].

use core::fmt;

use crate::place::Path;
pub use crate::remedy::Remedy;
use crate::shown;

/// One thing that is wrong, shown as `path: value problem; remedy`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Where, as `policies[2].limit.token_bucket.capacity`; `configuration` is the whole.
    pub path: Path,
    /// What stands there, as JSON, shortened and with control characters escaped; `None` where nothing does.
    pub value: Option<String>,
    /// What is wrong with it.
    pub problem: Problem,
    /// How to mend it.
    pub remedy: Remedy,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// No bytes at all, or blanks only.
    Blank,
    /// The bytes start with a byte order mark.
    ByteOrderMark,
    /// The bytes of a protobuf message.
    Message,
    /// Not JSON.
    NotJson {
        /// From 1.
        line: usize,
        /// In bytes, from 1; 0 where a line has only begun.
        column: usize,
        /// What the reader of JSON says.
        reason: String,
    },
    /// A value of another type.
    WrongType(Type),
    /// A key that the contract does not have here.
    UnknownKey,
    /// A key that is no name of what stands here.
    BadKey,
    /// A text that the contract does not have here.
    UnknownWord,
    /// Part of the contract, but not of this version.
    NotSupported,
    /// What must be there is not.
    Missing,
    /// The second value of a key in one object.
    RepeatedKey,
    /// The same entry again in one list.
    Repeated,
    /// Two forms in one object that may have one.
    SeveralForms,
    /// A list, text or object with nothing in it.
    Empty,
    /// More than the maximum.
    TooMany,
    /// Less than the minimum.
    TooFew,
    /// Zero where there must be something.
    Zero,
    /// A number that is not whole.
    Fraction,
    /// A number below zero.
    Negative,
    /// A number or text over the maximum.
    TooLarge,
    /// More tokens than can be counted exactly at the rate.
    Inexact,
    /// A cost above the capacity.
    NeverFits {
        /// Of a bucket of the policy.
        capacity: u64,
        /// In how many the limit is divided; 1: it is not.
        shards: u32,
        /// Whose limit it is; `None`: of those without one.
        plan: Option<String>,
    },
    /// More shards than the limit can be divided into.
    TooManyShards {
        /// Whose limit it is; `None`: of those without one.
        plan: Option<String>,
    },
    /// Not a rate.
    NotARate,
    /// Not a span of time.
    NotADuration,
    /// A rate of nothing.
    NeverRefills,
    /// A span of time that is too short, too long or too fine.
    OutOfRange,
    /// Characters that cannot stand here.
    BadCharacters,
    /// A method in lower case, which differs from the one in upper case.
    LowerCase,
    /// A pseudo header where a header belongs.
    PseudoHeader,
    /// A path, host or value spelled otherwise than those of requests are compared.
    NotNormal {
        /// What it is one of, in the plural.
        things: &'static str,
    },
    /// A wildcard in a path that is compared to the letter.
    Wildcard,
    /// A template without variables, or with broken ones.
    NotATemplate,
    /// Not a regular expression.
    NotARegex {
        /// What the library says, on one line.
        reason: String,
    },
    /// Neither an address nor a block of addresses.
    NotABlock,
    /// An address of a block in place of its first.
    HostBits,
    /// A header that answers get from elsewhere.
    NotYours,
    /// A name that another policy has.
    SameName {
        /// The index of the policy that has it.
        first: usize,
    },
    /// A header family that writes the same field as another in a contradicting form.
    SameField,
    /// A rule that can never take effect.
    Dead,
}

/// A type of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// An object.
    Object,
    /// A list.
    List,
    /// A text.
    Text,
    /// A text, or an object with one key.
    Form,
    /// A number.
    Number,
    /// True or false.
    Flag,
}

impl core::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.path)?;
        if let Some(value) = &self.value {
            write!(f, "{value} ")?;
        }
        write!(f, "{}; {}", self.problem, self.remedy)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self {
            Self::NotJson { line, column, reason } => {
                return write!(f, "not JSON at line {line}, column {column}: {reason}");
            }
            Self::NeverFits { capacity, shards, plan } => {
                write!(f, "is above the capacity of {capacity}")?;
                if *shards > 1 {
                    write!(f, " that each of {shards} shards has")?;
                }
                of_plan(plan.as_deref(), f)?;
                ", so that no request would ever pass"
            }
            Self::TooManyShards { plan } => {
                f.write_str("is more than the limit")?;
                of_plan(plan.as_deref(), f)?;
                " can be divided into"
            }
            Self::NotNormal { things } => return write!(f, "is not spelled as {things} are compared"),
            Self::NotARegex { reason } => return write!(f, "is not a regular expression: {reason}"),
            Self::SameName { first } => return write!(f, "is the name of policies[{first}] too"),
            Self::Blank => "empty",
            Self::ByteOrderMark => "starts with a byte order mark",
            Self::Message => "a protobuf message, as of a google.protobuf.Struct, and not JSON",
            Self::WrongType(Type::Object) => "is not an object",
            Self::WrongType(Type::List) => "is not a list",
            Self::WrongType(Type::Text) => "is not a string",
            Self::WrongType(Type::Form) => "is neither a string nor an object",
            Self::WrongType(Type::Number) => "is not a number",
            Self::WrongType(Type::Flag) => "is neither true nor false",
            Self::UnknownKey => "stands under an unknown key",
            Self::BadKey => "stands under a key that is no such name",
            Self::UnknownWord => "is not allowed here",
            Self::NotSupported => "is not supported yet",
            Self::Missing => "missing",
            Self::RepeatedKey => "is a second value for this key",
            Self::Repeated => "is repeated",
            Self::SeveralForms => "has several forms at once",
            Self::Empty => "is empty",
            Self::TooFew => "has too few entries",
            Self::TooMany => "are too many",
            Self::Zero => "is not allowed",
            Self::Fraction => "is not a whole number",
            Self::Negative => "is negative",
            Self::TooLarge => "is too large",
            Self::Inexact => "is too large to be counted exactly at this rate",
            Self::NotARate => "is not a rate",
            Self::NeverRefills => "never refills",
            Self::NotADuration => "is not a duration",
            Self::OutOfRange => "is out of range",
            Self::BadCharacters => "has characters that cannot stand here",
            Self::LowerCase => "is not in upper case",
            Self::PseudoHeader => "is a pseudo header",
            Self::Wildcard => "has a wildcard, but is compared to the letter",
            Self::NotATemplate => "is not a template of paths",
            Self::NotABlock => "is not an address or a block of addresses",
            Self::HostBits => "is not the first address of its block",
            Self::NotYours => "is for a header that cannot be set here",
            Self::SameField => {
                "writes the field RateLimit-Policy in a form that contradicts another family's"
            }
            Self::Dead => "has no effect here",
        };
        f.write_str(words)
    }
}

/// Says whose limit it is.
fn of_plan(plan: Option<&str>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match plan {
        Some(plan) => write!(f, " of plan {}", shown::text(plan)),
        None => Ok(()),
    }
}
