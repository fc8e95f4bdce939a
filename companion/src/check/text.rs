//! Findings as a compiler would print them.

use core::ops::Range;

use annotate_snippets::{AnnotationKind, Level, Origin, Renderer, Snippet};

use super::finding::{Finding, Severity};
use super::lines::Lines;

/// The most bytes of a line that are shown on each side of where a finding begins: configurations may be a line
/// of a megabyte.
const MAX_SIDE_BYTES: usize = 400;

/// The finding with the line in which it is, for a terminal; `file` is the name of the file.
pub(crate) fn render(finding: &Finding, file: &str, lines: &Lines<'_>) -> String {
    let level = match finding.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let (number, line, start) = lines.line(finding.span.start);
    let from = (finding.span.start - start).min(line.len());
    // Of what goes on over several lines, the first one says enough.
    let to = finding.span.end.saturating_sub(start).clamp(from, line.trim_end().len().max(from));
    let part = part(line, from);
    let within = from - part.start..to.min(part.end) - part.start;
    let label = finding.policy.as_ref().map(|name| format!("in policy {name:?}"));
    let mark = AnnotationKind::Primary.span(within).label(label);
    let is_cut = part.len() < line.len();
    let snippet = Snippet::source(line.get(part).unwrap_or_default()).line_start(number).annotation(mark);
    let group = level.primary_title(finding.to_string()).elements(is_cut.then(|| {
        // The column within the part would be another.
        let position = lines.position(finding.span.start);
        Origin::path(file).line(position.line).char_column(position.column)
    }));
    let snippet = if is_cut { snippet } else { snippet.path(file) };
    let help = Level::HELP.message(finding.remedy.as_str());
    Renderer::styled().render(&[group.element(snippet).element(help)])
}

/// The part of a line around this byte that is shown.
fn part(line: &str, at: usize) -> Range<usize> {
    let boundary =
        |at: usize| (0..=at.min(line.len())).rev().find(|at| line.is_char_boundary(*at)).unwrap_or(0);
    boundary(at.saturating_sub(MAX_SIDE_BYTES))..boundary(at + MAX_SIDE_BYTES)
}
