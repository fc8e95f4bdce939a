//! Findings for machines, as one JSON document: the contract is in `docs/check.md`.

use serde::Serialize;

use super::finding::{Finding, Severity};
use super::judge::Judgement;
use super::lines::{Lines, Position};

/// All that is to be said.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Document {
    pub(crate) files: Vec<File>,
    pub(crate) errors: usize,
    pub(crate) warnings: usize,
}

/// What is to be said of one file.
#[derive(Debug, Serialize)]
pub(crate) struct File {
    #[serde(rename = "file")]
    name: String,
    configurations: usize,
    policies: usize,
    /// Why there is nothing to check; absent where there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    nothing: Option<String>,
    findings: Vec<Entry>,
    /// Errors that are not among the findings.
    left_out: usize,
}

#[derive(Debug, Serialize)]
struct Entry {
    severity: &'static str,
    file: String,
    line: usize,
    column: usize,
    end: Position,
    path: Option<String>,
    policy: Option<String>,
    value: Option<String>,
    problem: String,
    remedy: String,
}

impl File {
    pub(crate) fn new(file: &str, judgement: &Judgement, lines: &Lines<'_>) -> Self {
        Self {
            name: file.to_owned(),
            configurations: judgement.configurations,
            policies: judgement.policies(),
            nothing: None,
            findings: judgement.findings.iter().map(|finding| entry(file, finding, lines)).collect(),
            left_out: judgement.left_out,
        }
    }

    pub(crate) fn unchecked(file: &str, reason: &str) -> Self {
        let lines = Lines::new("");
        Self { nothing: Some(reason.to_owned()), ..Self::new(file, &Judgement::default(), &lines) }
    }
}

fn entry(file: &str, finding: &Finding, lines: &Lines<'_>) -> Entry {
    let start = lines.position(finding.span.start);
    Entry {
        severity: match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        },
        file: file.to_owned(),
        line: start.line,
        column: start.column,
        end: lines.position(finding.span.end),
        path: finding.path.clone(),
        policy: finding.policy.clone(),
        value: finding.value.clone(),
        problem: finding.problem.clone(),
        remedy: finding.remedy.clone(),
    }
}
