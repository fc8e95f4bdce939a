//! Where in a configuration a value stands, as `policies[2].limit.token_bucket.capacity`.
//!
//! A place is a chain through the stack of the readers; it becomes text only when there is an error.

use core::fmt;

use crate::shown;

/// The way to a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

/// The path of the configuration as a whole.
pub(crate) const ROOT: &str = "configuration";

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    pub(crate) const fn root() -> Self {
        Self { parent: None, step: Step::Root }
    }

    pub(crate) const fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), step: Step::Key(key) }
    }

    pub(crate) const fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), step: Step::Index(index) }
    }

    const fn is_root(&self) -> bool {
        matches!(self.step, Step::Root)
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parent = self.parent.filter(|parent| !parent.is_root());
        if let Some(parent) = parent {
            parent.fmt(f)?;
        }
        match self.step {
            Step::Root => f.write_str(ROOT),
            Step::Index(index) => write!(f, "[{index}]"),
            // A key that could be taken for something else in a path is quoted.
            Step::Key(key) if !is_plain(key) => write!(f, "[{}]", shown::text(key)),
            Step::Key(key) => {
                if parent.is_some() {
                    f.write_str(".")?;
                }
                f.write_str(key)
            }
        }
    }
}

fn is_plain(key: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=shown::MAX_SHOWN_CHARS).contains(&key.len()) && key.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(target_arch = "wasm32")]
    use wasm_bindgen_test::wasm_bindgen_test as test;

    #[test]
    fn a_place_is_written_as_one_would_in_code() {
        let root = Place::root();
        let policies = root.key("policies");
        let policy = policies.index(2);
        assert_eq!(root.to_string(), "configuration");
        assert_eq!(policy.key("x-y_1").to_string(), "policies[2].x-y_1");
        assert_eq!(policy.key("a.b\n").to_string(), r#"policies[2]["a.b\n"]"#);
        assert_eq!(root.key("").to_string(), r#"[""]"#);
        assert!(root.key(&"x".repeat(1000)).to_string().len() < 100);
    }
}
