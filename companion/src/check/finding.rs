//! What is found in a file: an error or a warning, in words, with its place.

use core::fmt;
use core::ops::Range;

use plugin_config::{Concern, Error, Path, Problem, Step, Warning};

use super::locate::{self, Aim};
use super::tree::{Id, Tree};

/// Whether Envoy would refuse the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Severity {
    /// It would.
    Error,
    /// It would not, but it may not do what is meant.
    Warning,
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
        Said::from(error).at(span, None)
    }
}

/// What the parser says of a place in a configuration.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    severity: Severity,
    path: &'a Path,
    value: Option<&'a str>,
    problem: String,
    remedy: String,
    /// What of the entry at the path is meant.
    aim: Aim,
}

impl<'a> From<&'a Error> for Said<'a> {
    fn from(error: &'a Error) -> Self {
        Self {
            severity: Severity::Error,
            path: &error.path,
            value: error.value.as_deref(),
            problem: error.problem.to_string(),
            remedy: error.remedy.to_string(),
            aim: aim(&error.problem),
        }
    }
}

impl<'a> From<&'a Warning> for Said<'a> {
    fn from(warning: &'a Warning) -> Self {
        let aim = match warning.concern {
            // What is to be removed is more than the value.
            Concern::NothingCounted | Concern::NothingRefused | Concern::NobodyAsks => Aim::Entry,
            _ => Aim::Value,
        };
        Self {
            severity: Severity::Warning,
            path: &warning.path,
            value: warning.value.as_deref(),
            problem: warning.concern.to_string(),
            remedy: warning.remedy.to_string(),
            aim,
        }
    }
}

impl Said<'_> {
    fn at(self, span: Range<usize>, policy: Option<String>) -> Finding {
        Finding {
            severity: self.severity,
            path: Some(self.path.to_string()),
            policy,
            value: self.value.map(str::to_owned),
            problem: self.problem,
            remedy: self.remedy,
            span,
        }
    }
}

/// What is said of the configuration that is the tree from `root` on; `place` makes places in the file of the
/// tree's.
pub(crate) fn all<'a>(
    said: impl Iterator<Item = Said<'a>>,
    tree: &Tree,
    root: Id,
    place: impl Fn(Range<usize>) -> Range<usize>,
) -> Vec<Finding> {
    let mut seen: Vec<(&Path, Aim, Severity)> = Vec::new();
    let mut findings = Vec::new();
    for said in said {
        // Errors of the keys at one path are about equal keys, in their order. What has warnings has no such.
        let same = (said.path, said.aim, Severity::Error);
        let earlier = seen.iter().filter(|seen| **seen == same).count();
        seen.push((said.path, said.aim, said.severity));
        let span = locate::span(tree, root, said.path, said.aim, earlier);
        let policy = policy(tree, root, said.path);
        findings.push(said.at(place(span), policy));
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
