//! Regular expressions of paths and headers.

use limiter::matching::{MAX_PATTERN_BYTES, Pattern};

use crate::error::{Problem, Remedy};
use crate::report::{Report, Reported};
use crate::spot::Spot;

const FORM: &str = "use a regular expression of 1 to 256 bytes, such as \"/v[0-9]+/.*\"";
const SYNTAX: &str = "use the syntax of the Rust crate regex-lite";
/// The most characters of what the library says.
const MAX_REASON_CHARS: usize = 200;

pub(crate) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Pattern, Reported> {
    let text = spot.filled_text(MAX_PATTERN_BYTES, FORM, report)?;
    text.parse().map_err(|error: limiter::matching::PatternError| {
        spot.refuse(Problem::NotARegex { reason: one_line(&error.0) }, Remedy::Do(SYNTAX), report)
    })
}

/// What the library says, harmless to a terminal and a log.
fn one_line(reason: &str) -> String {
    let mut line = String::new();
    for word in
        reason.split(|char: char| char.is_whitespace() || char.is_control()).filter(|word| !word.is_empty())
    {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line.chars().take(MAX_REASON_CHARS).collect()
}
