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

mod verdict;

use wasm_bindgen::prelude::wasm_bindgen;

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
/// null where nothing does; `message` is the line that `tidegate check` prints; `left_out` counts the errors
/// beyond those that are told at once.
#[wasm_bindgen]
pub fn validate(text: &str) -> String {
    Verdict::of(text).to_json()
}
