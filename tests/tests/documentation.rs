//! What the documentation shows is what happens.

use harness::{Companion, check};
use serde_json::{Value, json};

const README: &str = include_str!("../../README.md");
const POLICIES: &str = include_str!("../../docs/policies.md");

/// What stands in `text` between `start` and the next `end`.
fn between<'a>(text: &'a str, start: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(start).unwrap_or_else(|| panic!("no {start:?}"));
    rest.split_once(end).unwrap_or_else(|| panic!("no {end:?} behind {start:?}")).0
}

#[tokio::test]
async fn the_readme_shows_a_take_and_its_answer() {
    let section = between(README, "## Ask the companion yourself", "\n## ");
    let question: Value = serde_json::from_str(between(section, "-d '", "'")).expect("JSON");
    let answer: Value = serde_json::from_str(between(section, "```json", "```")).expect("JSON");
    let companion = Companion::builder("memory").store_timeout("5s").start().await;
    assert_eq!(companion.take(&question).await, (200, answer));
}

#[test]
fn the_readme_shows_what_check_says() {
    let shown = between(README, "$ dist/tidegate check policies.json\n", "```");
    let configuration = json!({ "policies": [
        { "name": "a", "key": ["ip"], "limit": { "token_bucket": { "capacity": 0, "rate": "1/s" } }, "sync": "local" },
        { "name": "b", "key": ["ip"], "limt": "blocked", "sync": "local" },
    ] });
    assert_eq!(check(configuration.to_string().as_bytes()), (Some(1), shown.to_owned()));
}

#[test]
fn what_is_listed_as_not_yet_is_refused_as_that() {
    let (_, section) = POLICIES.split_once("\n## Not yet\n").expect("the section");
    let mut count = 0;
    for row in section.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let (place, names) = row[2..].split_once(" | ").expect("two columns");
        for name in names.split('`').skip(1).step_by(2) {
            let (configuration, path) = written(place.trim_matches('`'), name);
            let (code, printed) = check(configuration.to_string().as_bytes());
            let told = |line: &str| line.starts_with(&path) && line.contains(" is not supported yet");
            assert!(code == Some(1) && printed.lines().any(told), "{place} {name}: {printed}");
            count += 1;
        }
    }
    assert!(count > 20, "{count}");
}

/// A configuration with this name at this place, and the path that the error must start with.
fn written(place: &str, name: &str) -> (Value, String) {
    let limit = json!({ "token_bucket": { "capacity": 5, "rate": "1/s" } });
    let mut policy = json!({ "name": "p", "key": ["ip"], "limit": limit, "sync": "local" });
    let path = match (place, name) {
        ("the configuration", _) => return (json!({ name: {}, "policies": [policy] }), name.to_owned()),
        ("a policy", "cost") => {
            policy["cost"] = json!({ "header": "x-cost" });
            "cost".to_owned()
        }
        ("a policy", _) => {
            policy[name] = json!({});
            name.to_owned()
        }
        ("match", "template" | "regex") => {
            policy["match"] = json!({ "path": { name: "/x" } });
            format!("match.path.{name}")
        }
        ("match", _) => {
            policy["match"] = json!({ name: [] });
            format!("match.{name}")
        }
        ("key", "route" | "host") => {
            policy["key"] = json!([name]);
            "key[0]".to_owned()
        }
        ("key", _) => {
            policy["key"] = json!([{ name: "x" }]);
            format!("key[0].{name}")
        }
        ("limit", _) => {
            policy["limit"] = json!({ name: {} });
            format!("limit.{name}")
        }
        ("sync" | "on_failure", _) => {
            policy["sync"] = json!("exact");
            policy[place] = json!(name);
            place.to_owned()
        }
        _ => panic!("no such place: {place}"),
    };
    (json!({ "companion": { "cluster": "tidegate" }, "policies": [policy] }), format!("policies[0].{path}: "))
}
