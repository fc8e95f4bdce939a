//! That the cases hold the whole plugin configuration: each of its keys, and each word that a key can have for a value.

use std::collections::BTreeSet;
use std::path::PathBuf;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::case;

/// Keys by their path, lists left out and `*` for names that users choose, and words behind an equals sign. Conditions
/// stand under `match` once; `except` takes the same.
const CONTRACT: &str = r#"
    companion.cluster
    companion.timeout
    headers
    headers="draft-11"
    headers="draft-06"
    headers="x-ratelimit"
    headers.x-ratelimit.reset="delta"
    headers.x-ratelimit.reset="epoch"
    state.slots
    response.status
    response.body="none"
    response.body="problem"
    response.headers.*
    policies.name
    policies.match.methods
    policies.match.hosts
    policies.match.path.exact
    policies.match.path.prefix
    policies.match.path.template
    policies.match.path.regex
    policies.match.headers.*
    policies.match.headers.*.exact
    policies.match.headers.*.prefix
    policies.match.headers.*.regex
    policies.match.headers.*.present=true
    policies.match.headers.*.present=false
    policies.match.routes
    policies.match.cidrs
    policies.match.except.methods
    policies.match.except.hosts
    policies.match.except.path.exact
    policies.match.except.path.prefix
    policies.match.except.path.template
    policies.match.except.path.regex
    policies.match.except.headers.*
    policies.match.except.headers.*.exact
    policies.match.except.headers.*.prefix
    policies.match.except.headers.*.regex
    policies.match.except.headers.*.present=true
    policies.match.except.headers.*.present=false
    policies.match.except.routes
    policies.match.except.cidrs
    policies.key="ip"
    policies.key.header
    policies.key.cookie
    policies.key.query
    policies.key.claim
    policies.key.metadata
    policies.key.first="ip"
    policies.key.first.header
    policies.key.first.cookie
    policies.key.first.query
    policies.key.first.claim
    policies.key.first.metadata
    policies.key="method"
    policies.key="path"
    policies.key="route"
    policies.key="host"
    policies.on_missing="anonymous"
    policies.on_missing="skip"
    policies.on_missing="deny"
    policies.limit.token_bucket.capacity
    policies.limit.token_bucket.rate
    policies.limit="unlimited"
    policies.limit="blocked"
    policies.plan.from.header
    policies.plan.from.cookie
    policies.plan.from.query
    policies.plan.from.claim
    policies.plan.from.metadata
    policies.plan.from.first.header
    policies.plan.from.first.claim
    policies.plan.limits.*.token_bucket.capacity
    policies.plan.limits.*.token_bucket.rate
    policies.plan.limits.*="unlimited"
    policies.plan.limits.*="blocked"
    policies.cost
    policies.cost.header
    policies.cost.query
    policies.cost.default
    policies.cost.max
    policies.shards
    policies.sync="exact"
    policies.sync="lease"
    policies.sync="async"
    policies.sync="local"
    policies.on_failure="open"
    policies.on_failure="share"
    policies.on_failure.closed.retry_after
    policies.shadow=true
    policies.shadow=false
    policies.response.status
    policies.response.body="json"
    policies.response.body="problem"
    policies.response.body="none"
    policies.response.body.text
    policies.response.headers.*
"#;

/// Keys whose members have names that users choose.
const NAMED_BY_USERS: [&str; 5] = [
    "policies.match.headers",
    "policies.match.except.headers",
    "policies.plan.limits",
    "policies.response.headers",
    "response.headers",
];

/// Keys whose values are words of the contract, where they are words.
const WORDS: [&str; 14] = [
    "headers",
    "headers.x-ratelimit.reset",
    "response.body",
    "policies.match.headers.*.present",
    "policies.match.except.headers.*.present",
    "policies.key",
    "policies.key.first",
    "policies.on_missing",
    "policies.limit",
    "policies.plan.limits.*",
    "policies.sync",
    "policies.on_failure",
    "policies.shadow",
    "policies.response.body",
];

/// Fails with what no case has, and with what the cases have and the contract does not know.
pub(crate) fn every_key_and_value_has_a_case(files: &[PathBuf]) -> Result<(), Failed> {
    let mut shown = BTreeSet::new();
    for file in files {
        let sections = case::read(&std::fs::read_to_string(file)?)?;
        for section in sections {
            // What `companion` needs not be there is added by the runner.
            collect(&Value::Object(section.plugin), "", &mut shown);
        }
    }
    let contract: BTreeSet<String> = CONTRACT.split_whitespace().map(str::to_owned).collect();
    let list = |words: Vec<&String>| words.into_iter().map(String::as_str).collect::<Vec<_>>().join("\n  ");
    let missing = list(contract.difference(&shown).collect());
    let unknown = list(shown.difference(&contract).collect());
    if missing.is_empty() && unknown.is_empty() {
        return Ok(());
    }
    Err(format!("no case has:\n  {missing}\nno such thing is in the contract:\n  {unknown}").into())
}

/// Adds the paths of a value's leaves.
fn collect(value: &Value, path: &str, shown: &mut BTreeSet<String>) {
    match value {
        Value::Array(items) if items.iter().any(Value::is_object) || WORDS.contains(&path) => {
            if items.is_empty() {
                shown.insert(path.to_owned());
            }
            for item in items {
                collect(item, path, shown);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                let name = if NAMED_BY_USERS.contains(&path) { "*" } else { name };
                let separator = if path.is_empty() { "" } else { "." };
                collect(member, &format!("{path}{separator}{name}"), shown);
            }
        }
        Value::String(_) | Value::Bool(_) if WORDS.contains(&path) => {
            shown.insert(format!("{path}={value}"));
        }
        _ => {
            shown.insert(path.to_owned());
        }
    }
}
