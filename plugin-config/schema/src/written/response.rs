//! `response`: how a policy refuses.

use std::collections::BTreeMap;

use plugin_config::{MAX_HEADERS, MAX_TEXT_BYTES, MAX_VALUE_BYTES, STATUSES};
use schemars::JsonSchema;

use super::rules;

/// How a policy refuses.
#[derive(JsonSchema)]
#[schemars(
    deny_unknown_fields,
    extend(
        "allOf" = rules::of_response(),
        "examples" = [{"status": 429, "body": "problem", "headers": {"x-limited-by": "tidegate"}}]
    )
)]
pub struct Response {
    /// The status of a refusal. A request that could not be checked is answered 503 whatever stands here.
    #[schemars(range(min = *STATUSES.start(), max = *STATUSES.end()), extend("default" = 429))]
    pub status: Option<u16>,
    /// What the answer says.
    pub body: Option<Body>,
    /// More header fields, by name.
    #[schemars(extend("maxProperties" = MAX_HEADERS, "propertyNames" = rules::field_names()))]
    pub headers: Option<BTreeMap<String, FieldValue>>,
}

/// What an answer says.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", extend("default" = "json"))]
pub enum Body {
    /// A JSON object with `error`, `message`, `policy` and `retry_after`.
    Json,
    /// A problem of RFC 9457, `application/problem+json`.
    Problem,
    /// Nothing.
    None,
    /// This text, at most 4096 bytes; its type is `text/plain` unless `headers` says another.
    Text(#[schemars(length(max = MAX_TEXT_BYTES))] String),
}

/// The value of a header field: printable ASCII.
#[derive(JsonSchema)]
#[schemars(extend("maxLength" = MAX_VALUE_BYTES, "pattern" = "^[ -~]*$"))]
pub struct FieldValue(pub String);
