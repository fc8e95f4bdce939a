//! Regular expressions of paths and headers.

use limiter::matching::{MAX_PATTERN_BYTES, Pattern};

use crate::error::{Problem, Remedy};
use crate::report::{Report, Reported};
use crate::spot::Spot;

const FORM: &str = "use a regular expression of 1 to 256 bytes, such as \"/v[0-9]+/.*\"";
const SYNTAX: &str = "see https://docs.rs/regex-lite/latest/regex_lite/#syntax for what can be written";
const LOOK_AROUND: &str = "write what must not fit into an \"except\" of \"match\"";
const SIZE: &str = "use fewer or smaller counts, as in \"[0-9]{1,20}\"";
/// The most characters of what the library says.
const MAX_REASON_CHARS: usize = 200;

pub(crate) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Pattern, Reported> {
    let text = spot.filled_text(MAX_PATTERN_BYTES, FORM, report)?;
    text.parse().map_err(|error: limiter::matching::PatternError| {
        let reason = one_line(&error.0);
        let remedy = Remedy::Do(remedy(&reason));
        spot.refuse(Problem::NotARegex { reason }, remedy, report)
    })
}

/// The library tells its errors apart by their text only.
fn remedy(reason: &str) -> &'static str {
    if reason.starts_with("look-around") {
        LOOK_AROUND
    } else if reason.contains("size limit") {
        SIZE
    } else {
        SYNTAX
    }
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
