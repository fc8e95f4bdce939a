//! Regular expressions that fit less than they seem to: the whole path, or the whole value, has to fit.

use super::subject::{Subject, key};
use super::{Concern, Warning};
use crate::error::Remedy;
use crate::node::Node;
use crate::place::Step;

const SLASH: &str = "begin it with a slash, or with \".*\"";
const ENDLESS: &str = "end it with \".*\" for what begins like it, or with \"$\" where it is the whole";
const PLAIN: &str = "use \"exact\", or \"prefix\" for what begins like it";
/// What is more in an expression than itself.
const SIGNS: [char; 14] = ['\\', '^', '$', '.', '|', '?', '*', '+', '(', ')', '[', ']', '{', '}'];

pub(super) fn warn(subject: &Subject<'_>, warnings: &mut Vec<Warning>) {
    for steps in expressions(subject) {
        let Some(expression) = subject.written(&steps).and_then(Node::as_text) else { continue };
        let is_of_path = steps.iter().rev().nth(1) == Some(&key("path"));
        if let Some((concern, remedy)) = judge(expression, is_of_path) {
            warnings.push(subject.warning(&steps, None, concern, remedy));
        }
    }
}

/// Where the policy's expressions stand: those of its conditions and of its exceptions.
fn expressions(subject: &Subject<'_>) -> Vec<Vec<Step>> {
    let mut places = vec![vec![key("match")]];
    let except = vec![key("match"), key("except")];
    match subject.written(&except) {
        Some(Node::List(items)) => {
            places.extend((0..items.len()).map(|index| with(&except, [Step::Index(index)])));
        }
        _ => places.push(except),
    }
    let mut expressions = Vec::new();
    for place in places {
        let path = with(&place, [key("path"), key("regex")]);
        let headers = with(&place, [key("headers")]);
        expressions.push(path);
        if let Some(Node::Object(entries)) = subject.written(&headers) {
            expressions.extend(entries.iter().map(|(name, _)| with(&headers, [key(name), key("regex")])));
        }
    }
    expressions
}

fn with<const COUNT: usize>(steps: &[Step], more: [Step; COUNT]) -> Vec<Step> {
    steps.iter().cloned().chain(more).collect()
}

fn judge(expression: &str, is_of_path: bool) -> Option<(Concern, Remedy)> {
    if is_of_path && begins_with_a_letter(expression) {
        return Some((Concern::NoSlash, Remedy::Do(SLASH)));
    }
    let is_plain = |text: &str| !text.contains(SIGNS);
    match expression.strip_prefix('^') {
        Some(rest) if is_plain(rest) && !rest.is_empty() => {
            Some((Concern::NotOnlyBegun, Remedy::WriteUnder("prefix", rest.to_owned())))
        }
        Some(rest) if !rest.ends_with('$') && !rest.contains(".*") => {
            Some((Concern::NotOnlyBegun, Remedy::Do(ENDLESS)))
        }
        None if is_plain(expression) => Some((Concern::PlainText, Remedy::Do(PLAIN))),
        _ => None,
    }
}

/// Whether an expression plainly begins with a letter or digit, and so fits nothing that begins with a slash.
fn begins_with_a_letter(expression: &str) -> bool {
    let text = expression.strip_prefix('^').unwrap_or(expression).as_bytes();
    let is_letter = text.first().is_some_and(u8::is_ascii_alphanumeric);
    // Another branch may begin otherwise, and what may come no time may be missing.
    is_letter && !text.contains(&b'|') && !matches!(text.get(1), Some(b'?' | b'*' | b'{'))
}
