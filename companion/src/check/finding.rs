//! What is found in a file: an error or a warning, in words, with its place.

use core::fmt;
use core::ops::Range;

use plugin_config::{Error, Path, Problem, Step};

use super::locate::{self, Aim};
use super::tree::{Id, Tree};

/// Whether Envoy would refuse the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// It would.
    Error,
}

/// One thing that is to be said about a file.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// Where, as keys and indices of the plugin configuration; none for the file itself.
    pub(crate) path: Option<String>,
    /// The name of the policy in which it is.
    pub(crate) policy: Option<String>,
    /// What stands there, as JSON, shortened and with control characters escaped.
    pub(crate) value: Option<String>,
    pub(crate) problem: String,
    pub(crate) remedy: String,
    /// Where, in bytes of the file.
    pub(crate) span: Range<usize>,
}

/// One line: `path: value problem`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{path}: ")?;
        }
        if let Some(value) = &self.value {
            write!(f, "{value} ")?;
        }
        f.write_str(&self.problem)
    }
}

impl Finding {
    /// An error about the file rather than about what its plugin configuration says.
    pub(crate) fn of_file(problem: impl Into<String>, remedy: &str, span: Range<usize>) -> Self {
        Self {
            severity: Severity::Error,
            path: None,
            policy: None,
            value: None,
            problem: problem.into(),
            remedy: remedy.to_owned(),
            span,
        }
    }

    /// An error of the configuration that stands at `span`; the rest of it is not known.
    pub(crate) fn of_whole(error: &Error, span: Range<usize>) -> Self {
        Self {
            severity: Severity::Error,
            path: Some(error.path.to_string()),
            policy: None,
            value: error.value.clone(),
            problem: error.problem.to_string(),
            remedy: error.remedy.to_string(),
            span,
        }
    }
}

/// The errors of the configuration that is the tree from `root` on; `place` makes places in the file of the
/// tree's.
pub(crate) fn all<'a>(
    errors: impl Iterator<Item = &'a Error>,
    tree: &Tree,
    root: Id,
    place: impl Fn(Range<usize>) -> Range<usize>,
) -> Vec<Finding> {
    let mut seen: Vec<(&Path, &Problem)> = Vec::new();
    let mut findings = Vec::new();
    for error in errors {
        // Errors of one kind at one path are about equal keys, in their order.
        let earlier = seen.iter().filter(|seen| **seen == (&error.path, &error.problem)).count();
        seen.push((&error.path, &error.problem));
        let span = locate::span(tree, root, &error.path, aim(&error.problem), earlier);
        let mut finding = Finding::of_whole(error, place(span));
        finding.policy = policy(tree, root, &error.path);
        findings.push(finding);
    }
    findings
}

/// What of an entry an error is about.
const fn aim(problem: &Problem) -> Aim {
    match problem {
        Problem::UnknownKey => Aim::Key,
        Problem::RepeatedKey => Aim::NextKey,
        // It may be about the key or about the value.
        Problem::NotSupported => Aim::Entry,
        _ => Aim::Value,
    }
}

/// The name of the policy that the path leads into.
fn policy(tree: &Tree, root: Id, path: &Path) -> Option<String> {
    let [Step::Key(policies), Step::Index(index), ..] = path.0.as_slice() else { return None };
    let policy = tree.items(tree.get(root, policies)?).get(*index)?;
    let name = tree.text_at(*policy, &["name"])?;
    Some(name.chars().take(plugin_config::MAX_SHOWN_CHARS).collect())
}
