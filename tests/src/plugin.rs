//! Plugin configurations as most tests need them.

use serde_json::{Value, json};

/// A configuration of these policies that waits for the companion as long as it may, so that a busy
/// machine is not taken for a failure. What a test is about it sets itself.
#[expect(clippy::needless_pass_by_value, reason = "callers write it as a literal")]
pub fn plugin(policies: Value) -> Value {
    json!({ "companion": { "cluster": "tidegate", "timeout": "10s" }, "policies": policies })
}
