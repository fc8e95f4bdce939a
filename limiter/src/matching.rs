//! The requests that a policy applies to, as conditions on what a request says of itself.
//!
//! Conditions are compiled when a configuration is loaded. How many policies are tried at once is
//! [`crate::sieve`]'s; where the values come from is [`crate::request`]'s.

mod cidr;
mod header;
mod host;
mod literal;
mod pattern;
mod template;

pub use cidr::{Cidr, CidrError};
pub use header::{HeaderCondition, HeaderMatch, Values};
pub use host::{HostMatch, normalize_host};
pub use pattern::{MAX_PATTERN_BYTES, MAX_TEXT_BYTES, Pattern, PatternError};
pub use template::{Template, TemplateError};

/// The requests that a policy applies to: all conditions hold together, and nothing excepted does.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Match {
    /// What must hold.
    pub conditions: Conditions,
    /// Where all of one of these hold, the policy does not apply. None is empty.
    pub except: Vec<Conditions>,
}

/// Conditions that hold together. An empty one holds for every request.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conditions {
    /// One of these methods, in upper case; empty: any.
    pub methods: Vec<String>,
    /// One of these hosts; empty: any.
    pub hosts: Vec<HostMatch>,
    /// This path; `None`: any.
    pub path: Option<PathMatch>,
    /// All of these, by names in lower case, each name once.
    pub headers: Vec<HeaderMatch>,
    /// One of Envoy's routes, by name; empty: any.
    pub routes: Vec<String>,
    /// An address in one of these; empty: any, and none.
    pub cidrs: Vec<Cidr>,
}

/// A condition on the path, which is compared normalised; see [`crate::path`].
#[derive(Clone, Debug, PartialEq)]
pub enum PathMatch {
    /// The whole path.
    Exact(String),
    /// What the path starts with, to the letter: `/api` matches `/apix` too, `/api/` does not.
    Prefix(String),
    /// Every segment of the path.
    Template(Template),
    /// The whole path.
    Regex(Pattern),
}

impl PathMatch {
    /// Whether a normalised path fits. One that upstream may read as another path is excepted only where it is what
    /// was written.
    pub fn holds(&self, path: &[u8], values: Values) -> bool {
        match self {
            Self::Exact(exact) => exact.as_bytes() == path,
            _ if values == Values::All && is_ambiguous(path) => false,
            Self::Prefix(prefix) => path.starts_with(prefix.as_bytes()),
            Self::Template(template) => template.holds(path),
            Self::Regex(pattern) => pattern.holds(path, values),
        }
    }
}

/// Whether servers differ about what a normalised path is: some decode slashes, and take what follows a semicolon for a
/// parameter, before they resolve dots.
pub(crate) fn is_ambiguous(path: &[u8]) -> bool {
    path.contains(&b';') || path.windows(3).any(|escape| matches!(escape, b"%2F" | b"%5C"))
}
