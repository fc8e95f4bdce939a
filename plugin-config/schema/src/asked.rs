//! Requests made up at random, of words that a configuration uses.

use core::net::IpAddr;

use limiter::request::{Given, demands};
use plugin_config::Config;
use serde_json::Value;

use crate::dice::Dice;

/// Words that requests have anyway.
const WORDS: [&str; 16] = [
    "GET",
    "/",
    "//x/../%6frders?api_key=1&user=%",
    "sid=1; SID=2",
    "a.example.com:80",
    "10.1.2.3",
    "::1",
    "42",
    "1e309",
    "",
    "é",
    "x-api-key",
    "/users/7/orders",
    "gold",
    "payload",
    "a,b",
];

/// Evaluates a request against the policies, and returns how many of them it has to do with. All that can go wrong here
/// is a panic.
pub fn ask(config: &Config, written: &Value, dice: &mut Dice<'_>) -> usize {
    let mut words: Vec<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
    gather(written, &mut words);
    let mut word = || dice.one_of(&words).cloned().unwrap_or_default();
    let mut given = Given {
        method: word().into(),
        target: word().into(),
        authority: word().into(),
        address: word().split('/').next().and_then(|text| text.parse::<IpAddr>().ok()),
        headers: (0..6).map(|_| (word().to_ascii_lowercase(), word().into())).collect(),
        route: word().into(),
        metadata: (0..2).map(|_| (vec![word(), word()], word().into())).collect(),
        route_metadata: vec![(vec![word(), word()], word().into())],
    };
    demands(&config.policies, &mut given, dice.roll(1 << 20) as u64).count()
}

fn gather(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) => words.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, words)),
        Value::Object(object) => {
            for (key, value) in object {
                words.push(key.clone());
                gather(value, words);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
