//! `limit`: how many requests pass.

use limiter::policy::Limit;
use limiter::quota::{QuotaError, TokenBucket};
use limiter::rate::{Rate, RateError};

use crate::error::{Problem, Remedy, Type};
use crate::node::Node;
use crate::report::{Report, Reported};
use crate::spot::Spot;
use crate::words::Words;

/// How a limit is written.
pub(crate) const FORM: &str =
    "use {\"token_bucket\": {\"capacity\": 100, \"rate\": \"100/m\"}}, \"unlimited\" or \"blocked\"";
const BUCKET: &str = "use an object such as {\"capacity\": 100, \"rate\": \"100/m\"}";
const CAPACITY: &str = "use the greatest number of requests at once, such as 100";
const RATE: &str = "use a whole number, a slash and one of s, m, h, d, as in \"2/s\" or \"100/m\"";
const ROUNDER: &str = "a rate with a rounder count or a shorter unit";
const LATER: &str = "use \"token_bucket\"";
const TEXTS: Words = Words::new(&["unlimited", "blocked"]).later(LATER_ALGORITHMS);
const ALGORITHMS: Words = Words::new(&["token_bucket"]).later(LATER_ALGORITHMS).elsewhere(&[
    ("unlimited", "use \"unlimited\" alone, as a string in place of the object"),
    ("blocked", "use \"blocked\" alone, as a string in place of the object"),
]);
const LATER_ALGORITHMS: &[(&str, &str)] = &[
    ("fixed_window", LATER),
    ("sliding_window_log", LATER),
    ("sliding_window_counter", LATER),
    ("leaky_bucket", LATER),
];
const FIELDS: Words = Words::new(&["capacity", "rate"]);

pub(crate) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Limit, Reported> {
    match spot.node {
        Node::Text(_) => Ok(match spot.word(&TEXTS, FORM, report)? {
            "blocked" => Limit::Blocked,
            _ => Limit::Unlimited,
        }),
        Node::Object(_) => {
            let (_, spot) = spot.form(&ALGORITHMS, FORM, report)?;
            token_bucket(&spot, report).map(Limit::TokenBucket)
        }
        _ => Err(spot.wrong_type(Type::Form, FORM, report)),
    }
}

/// Whether a limit, as it is written, counts anything: `"unlimited"` and `"blocked"` do not.
pub(crate) fn is_counted(node: Option<&Node>) -> bool {
    !matches!(node, Some(Node::Text(_)))
}

fn token_bucket(spot: &Spot<'_>, report: &mut Report) -> Result<TokenBucket, Reported> {
    let fields = spot.object(&FIELDS, BUCKET, report)?;
    let capacity = fields.required("capacity", CAPACITY, report);
    let tokens = capacity.and_then(|spot| spot.positive("use 1 or more, or the limit \"blocked\"", report));
    let rate = fields.required("rate", RATE, report).and_then(|spot| rate(&spot, report));
    TokenBucket::new(tokens?, rate?).or_else(|error| {
        let (problem, remedy) = match error {
            QuotaError::TooLarge { max_capacity } => {
                (Problem::Inexact, Remedy::AtMostOr(max_capacity, ROUNDER))
            }
            QuotaError::ZeroCapacity => (Problem::Zero, Remedy::Do("use 1 or more")),
            QuotaError::Rate(_) => (Problem::NotARate, Remedy::Do(RATE)),
        };
        Err(capacity?.refuse(problem, remedy, report))
    })
}

fn rate(spot: &Spot<'_>, report: &mut Report) -> Result<Rate, Reported> {
    let text = spot.text(RATE, report)?;
    let (problem, remedy) = match text.parse() {
        Ok(rate) => return Ok(rate),
        Err(RateError::Malformed) => {
            (Problem::NotARate, meant(text).map_or(Remedy::Do(RATE), Remedy::Perhaps))
        }
        Err(RateError::Zero) => {
            (Problem::NeverRefills, Remedy::Do("use a count of 1 or more, or the limit \"blocked\""))
        }
        Err(RateError::TooFast) => (Problem::TooLarge, Remedy::Do("use a count of 1000000000 or less")),
    };
    Err(spot.refuse(problem, remedy, report))
}

/// The rate that was probably meant, as by `10/min`, `10 per minute` or `10r/s`.
fn meant(text: &str) -> Option<String> {
    let text = text.trim();
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (count, rest) = text.split_at_checked(digits)?;
    // Another number would be lost.
    if !rest.chars().all(|char| char.is_ascii_alphabetic() || matches!(char, ' ' | '/' | '_')) {
        return None;
    }
    let words = rest.split(|char: char| !char.is_ascii_alphabetic()).filter(|word| !word.is_empty());
    let mut units = words.filter(|word| !FILLERS.iter().any(|filler| word.eq_ignore_ascii_case(filler)));
    let (word, None) = (units.next()?, units.next()) else { return None };
    let (unit, _) =
        UNITS.iter().find(|(_, names)| names.iter().any(|name| word.eq_ignore_ascii_case(name)))?;
    let rate = format!("{count}/{unit}");
    rate.parse::<Rate>().is_ok().then_some(rate)
}

/// How units of time are written elsewhere.
const UNITS: [(&str, &[&str]); 4] = [
    ("s", &["s", "sec", "secs", "second", "seconds", "rps"]),
    ("m", &["m", "min", "mins", "minute", "minutes", "rpm"]),
    ("h", &["h", "hr", "hrs", "hour", "hours", "rph"]),
    ("d", &["d", "day", "days", "rpd"]),
];
/// What tells nothing.
const FILLERS: [&str; 6] = ["r", "req", "reqs", "requests", "per", "a"];
