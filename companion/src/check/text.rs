//! Findings as a compiler would print them.

use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

use super::finding::{Finding, Severity};
use super::lines::Lines;

/// The finding with the line in which it is, for a terminal; `file` is the name of the file.
pub(crate) fn render(finding: &Finding, file: &str, lines: &Lines<'_>) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
    };
    let (number, line, start) = lines.line(finding.span.start);
    // Of what goes on over several lines, the first one says enough.
    let from = finding.span.start - start;
    let to = finding.span.end.saturating_sub(start).clamp(from, line.trim_end().len().max(from));
    let label = finding.policy.as_ref().map(|name| format!("in policy {name:?}"));
    let mark = AnnotationKind::Primary.span(from..to).label(label);
    let snippet = Snippet::source(line).line_start(number).path(file).annotation(mark);
    let group = level
        .primary_title(finding.to_string())
        .element(snippet)
        .element(Level::HELP.message(finding.remedy.as_str()));
    Renderer::styled().render(&[group])
}
