//! Whether an answer is the expected one. Nothing but times may differ, and these only as far as time has passed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use harness::Answer;
use serde_json::Value;

use crate::case::ExpectedAnswer;

/// The mark of a number that runs down, as in `~3600`.
const RUNNING: char = '~';

/// Stands behind the mark where a number is a time since 1970.
const NOW: &str = "now+";

/// How much time may have passed since the section's first request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Elapsed(pub(crate) Duration);

/// All in which the answer is another one than expected; empty where it is that one.
pub(crate) fn differences(expected: &ExpectedAnswer, actual: &Answer, elapsed: Elapsed) -> Vec<String> {
    let mut differences = Vec::new();
    if !expected.status.takes(actual.status) {
        differences.push(format!("status: {} instead of {:?}", actual.status, expected.status));
    }
    for (name, expected) in &expected.headers {
        let actual = actual.header(name);
        // The one field that is not in seconds.
        let units = if name == "grpc-retry-pushback-ms" { 1_000 } else { 1 };
        let agrees = match (expected, &actual) {
            (Some(expected), Some(actual)) => elapsed.agree(expected, actual, units),
            (None, None) => true,
            _ => false,
        };
        if !agrees {
            let show = |value: &Option<String>| {
                value.clone().map_or("absent".to_owned(), |value| format!("{value:?}"))
            };
            differences.push(format!("{name}: {} instead of {}", show(&actual), show(expected)));
        }
    }
    if let Some(body) = &expected.body
        && !elapsed.agree(body, &actual.text(), 1)
    {
        differences.push(format!("body: {:?} instead of {body:?}", actual.text()));
    }
    if let Some(json) = &expected.json {
        match serde_json::from_slice(&actual.body) {
            Ok(actual) => elapsed.compare_json("body", json, &actual, &mut differences),
            Err(error) => differences.push(format!("body: {:?} is not JSON: {error}", actual.text())),
        }
    }
    differences
}

impl Elapsed {
    /// Whether a text is the expected one, in which `~N` stands for N or what is left of it.
    fn agree(self, expected: &str, actual: &str, units: u64) -> bool {
        let Some((before, rest)) = expected.split_once(RUNNING) else { return expected == actual };
        let Some(actual) = actual.strip_prefix(before) else { return false };
        let (base, rest) = match rest.strip_prefix(NOW) {
            Some(rest) => (unix_now_s(), rest),
            None => (0, rest),
        };
        let (Some((expected, rest)), Some((actual, actual_rest))) = (number(rest), number(actual)) else {
            return false;
        };
        let passed =
            self.0.as_secs() * units + if units > 1 { u64::from(self.0.subsec_millis()) + 1 } else { 0 };
        // A clock that was read in two places may show two seconds.
        let slack = u64::from(base > 0);
        let latest = base + expected + slack;
        (latest.saturating_sub(passed + 2 * slack).max(1)..=latest).contains(&actual)
            && self.agree(rest, actual_rest, units)
    }

    /// Adds in what a value differs; of an object only the expected members are looked at.
    fn compare_json(self, path: &str, expected: &Value, actual: &Value, differences: &mut Vec<String>) {
        let agrees = match (expected, actual) {
            (Value::Object(expected), Value::Object(members)) => {
                for (name, expected) in expected {
                    let actual = members.get(name).unwrap_or(&Value::Null);
                    self.compare_json(&format!("{path}.{name}"), expected, actual, differences);
                }
                true
            }
            (Value::String(expected), Value::String(actual)) => self.agree(expected, actual, 1),
            (Value::String(expected), Value::Number(actual)) if expected.starts_with(RUNNING) => {
                self.agree(expected, &actual.to_string(), 1)
            }
            _ => expected == actual,
        };
        if !agrees {
            differences.push(format!("{path}: {actual} instead of {expected}"));
        }
    }
}

/// The number that a text begins with, and what comes after it.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    Some((digits.parse().ok()?, rest))
}

fn unix_now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970").as_secs()
}
