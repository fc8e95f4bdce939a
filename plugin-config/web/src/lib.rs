//! What a web page can ask about a configuration: the filter's own judgement, without a server.
//!
//! ```js
//! import init, { validate } from "./tidegate_web.js"; // from dist/web/, where `make web` leaves it
//! await init();
//! for (const error of JSON.parse(validate(text)).errors) console.log(error.message);
//! ```
//!
//! Here stands what the page calls, one function a question, with text in and JSON out. What an answer
//! holds has a file of its own; what is right and what is wrong is `plugin-config`'s.

mod explanation;
mod verdict;

use wasm_bindgen::prelude::wasm_bindgen;

use crate::explanation::Explained;
use crate::verdict::Verdict;

/// Judges a configuration as the filter does when it loads one.
///
/// The answer is JSON, in any case with all of these keys:
///
/// ```json
/// {"valid": false, "policies": null, "left_out": 0, "errors": [
///   {"path": "policies[0].limit.token_bucket.capacity", "value": "0", "problem": "is not allowed",
///    "remedy": "use 1 or more, or the limit \"blocked\"", "message": "policies[0].limit.…: 0 is not…"}]}
/// ```
///
/// `policies` is their number where all is well. `value` is the JSON that stands at the path, shortened, or
/// null where nothing does; `message` is all of that on one line, as in the log of Envoy; `left_out` counts the errors
/// beyond those that are told at once.
#[wasm_bindgen]
pub fn validate(text: &str) -> String {
    Verdict::of(text).to_json()
}

/// Explains what a configuration makes of one request, as `tidegate explain` does.
///
/// The request is JSON; of its keys all but `target` may be left out:
///
/// ```json
/// {"method": "POST", "target": "/orders?x=1", "host": "api.example.com", "address": "203.0.113.7",
///  "headers": {"x-api-key": "abc", "x-twice": ["1", "2"]}, "route": "orders",
///  "claims": [{"path": ["payload", "sub"], "value": 42}], "metadata": [], "route_metadata": []}
/// ```
///
/// The answer is JSON: `policies`, in their order, each with its name under `policy`, its `outcome` (`counts`, `blocks`,
/// `no_identity`, `unmet`, `excepted`, `skipped` or `unlimited`) and what belongs to that; and `answer`, what a first
/// request is answered: `status` (null where it goes on to upstream), `headers` and `body`. Where the configuration
/// or the request is not valid, the answer is `{"error": …}` alone.
#[wasm_bindgen]
pub fn explain(configuration: &str, request: &str) -> String {
    Explained::of(configuration, request).to_json()
}
