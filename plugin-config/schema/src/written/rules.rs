//! What holds between the values of a configuration, as far as a schema can say it.

use limiter::wire::MAX_CHARGES;
use plugin_config::{MAX_TOKEN_BYTES, REFUSED_FAMILIES, REFUSED_HEADERS};
use serde_json::{Value, json};

use super::texts::TOKEN;

/// A policy with a limit that counts: its own, or one of a plan.
fn counts() -> Value {
    let counts = json!({ "type": "object" });
    json!({ "anyOf": [
        { "properties": { "limit": counts }, "required": ["limit"] },
        {
            "properties": { "plan": {
                "type": "object",
                "properties": { "limits": {
                    "type": "object",
                    "not": { "additionalProperties": { "not": counts } }
                } },
                "required": ["limits"]
            } },
            "required": ["plan"]
        }
    ] })
}

fn says(key: &str, value: &str) -> Value {
    json!({ "properties": { key: { "const": value } }, "required": [key] })
}

/// A policy that asks the companion.
fn asks() -> Value {
    json!({ "allOf": [counts(), { "not": says("sync", "local") }] })
}

pub(super) fn of_configuration() -> Value {
    json!([
        {
            "if": { "properties": { "policies": { "type": "array", "contains": asks() } }, "required": ["policies"] },
            "then": { "required": ["companion"] }
        },
        { "properties": { "policies": { "contains": asks(), "minContains": 0, "maxContains": MAX_CHARGES } } }
    ])
}

pub(super) fn of_families() -> Value {
    let (new, old) =
        (json!({ "contains": { "const": "draft-11" } }), json!({ "contains": { "const": "draft-06" } }));
    let other = json!({ "enum": ["draft-11", "draft-06"] });
    json!([
        { "not": { "allOf": [new, old] } },
        { "contains": { "not": other }, "minContains": 0, "maxContains": 1 }
    ])
}

pub(super) fn of_policy() -> Value {
    let scopes = json!({ "enum": ["method", "path", "route", "host"] });
    json!([
        { "if": counts(), "then": { "required": ["key"] } },
        // A limit that is not counted in the store has nothing to ask.
        { "if": says("sync", "local"), "then": { "properties": { "on_failure": false, "shards": false } } },
        { "if": says("sync", "async"), "then": { "properties": { "on_failure": { "const": "share" } } } },
        {
            "if": { "allOf": [{ "not": counts() }, { "not": { "required": ["sync"] } }] },
            "then": { "properties": { "on_failure": false } }
        },
        // There must be an identity that can be missing.
        {
            "if": { "required": ["on_missing"] },
            "then": { "properties": { "key": { "contains": { "not": scopes } } }, "required": ["key"] }
        }
    ])
}

/// The type of a text may be said.
pub(super) fn of_response() -> Value {
    json!([{
        "if": { "not": { "properties": { "body": { "type": "object" } }, "required": ["body"] } },
        "then": { "properties": { "headers": {
            "propertyNames": { "not": { "pattern": any_case("content-type") } }
        } } }
    }])
}

/// All names but those that a response may not set.
pub(super) fn field_names() -> Value {
    let mut patterns: Vec<String> = REFUSED_HEADERS.iter().map(|name| any_case(name)).collect();
    patterns.extend(REFUSED_FAMILIES.iter().map(|start| any_case(start).trim_end_matches('$').to_owned()));
    json!({
        "pattern": TOKEN,
        "minLength": 1,
        "maxLength": MAX_TOKEN_BYTES,
        "not": { "pattern": patterns.join("|") }
    })
}

/// The expression of a word in any case.
fn any_case(word: &str) -> String {
    let letter = |char: char| {
        if char.is_ascii_lowercase() {
            format!("[{char}{}]", char.to_ascii_uppercase())
        } else {
            char.to_string()
        }
    };
    format!("^{}$", word.chars().map(letter).collect::<String>())
}
