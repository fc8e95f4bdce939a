//! Where in a configuration a value stands, as `policies[2].limit.token_bucket.capacity`.
//!
//! A place is a chain through the stack of the readers; it becomes a path only when there is an error.

use core::fmt;

use crate::shown;

/// The way to a value, shown as `policies[2].limit`; one without steps is that of the whole configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(pub Vec<Step>);

/// One step of the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Into an object, or to where this key is missing.
    Key(String),
    /// Into a list, from 0.
    Index(usize),
}

/// How the path of the configuration as a whole is shown.
const ROOT: &str = "configuration";

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str(ROOT);
        }
        for (depth, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                // A key that could be taken for something else in a path is quoted.
                Step::Key(key) if !is_plain(key) => write!(f, "[{}]", shown::text(key))?,
                Step::Key(key) => {
                    if depth > 0 {
                        f.write_str(".")?;
                    }
                    f.write_str(key)?;
                }
            }
        }
        Ok(())
    }
}

/// The place of a value that is being read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    last: Last<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Last<'a> {
    Root,
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    pub(crate) const fn root() -> Self {
        Self { parent: None, last: Last::Root }
    }

    pub(crate) const fn key(&'a self, key: &'a str) -> Self {
        Self { parent: Some(self), last: Last::Key(key) }
    }

    pub(crate) const fn index(&'a self, index: usize) -> Self {
        Self { parent: Some(self), last: Last::Index(index) }
    }

    pub(crate) fn path(&self) -> Path {
        let mut path = self.parent.map(Self::path).unwrap_or_default();
        match self.last {
            Last::Root => {}
            Last::Key(key) => path.0.push(Step::Key(key.to_owned())),
            Last::Index(index) => path.0.push(Step::Index(index)),
        }
        path
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
    fn a_path_is_written_as_one_would_in_code() {
        let root = Place::root();
        let policies = root.key("policies");
        let policy = policies.index(2);
        let shown = |place: Place<'_>| place.path().to_string();
        assert_eq!(shown(root), "configuration");
        assert_eq!(shown(policy.key("x-y_1")), "policies[2].x-y_1");
        assert_eq!(shown(policy.key("a.b\n")), r#"policies[2]["a.b\n"]"#);
        assert_eq!(shown(root.key("")), r#"[""]"#);
        assert!(shown(root.key(&"x".repeat(1000))).len() < 100);
    }

    #[test]
    fn a_path_has_its_keys_and_indices() {
        let (root, key) = (Place::root(), "x".repeat(1000));
        assert_eq!(root.path(), Path::default());
        let policies = root.key("policies");
        let steps = [Step::Key("policies".to_owned()), Step::Index(2), Step::Key(key.clone())];
        assert_eq!(policies.index(2).key(&key).path(), Path(steps.to_vec()));
    }
}
