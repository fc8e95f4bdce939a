//! What the documentation shows is what happens.

use harness::{Companion, check, check_lines};
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
    let configuration = r#"{
  "policies": [
    { "name": "per-ip",
      "key": ["ip"],
      "limit": { "token_bucket": { "capacity": 0, "rate": "100/m" } },
      "sync": "local" },

    { "name": "orders",
      "key": [{ "header": "x-api-key" }, "method"],
      "limt": "blocked" }
  ]
}
"#;
    assert_eq!(check(configuration.as_bytes()), (Some(1), shown.to_owned()));
}

#[test]
fn what_is_listed_as_not_yet_is_refused_as_that() {
    let (_, section) = POLICIES.split_once("\n## Not yet\n").expect("the section");
    let mut count = 0;
    for row in section.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let (place, names) = row[2..].split_once(" | ").expect("two columns");
        for name in names.split('`').skip(1).step_by(2) {
            let (configuration, path) = written(place.trim_matches('`'), name);
            let (code, lines) = check_lines(configuration.to_string().as_bytes());
            let told = |line: &String| line.starts_with(&path) && line.contains(" is not supported yet");
            assert!(code == Some(1) && lines.iter().any(told), "{place} {name}: {lines:?}");
            count += 1;
        }
    }
    assert!(count >= 4, "{count}");
}

/// The values in JSON that begin the rows of the first table in `text`, without its head.
fn first_column(text: &str) -> Vec<Value> {
    let rows =
        text.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    let shown = rows.skip(2).filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0));
    shown.map(|value| serde_json::from_str(value).unwrap_or_else(|_| panic!("{value} is not JSON"))).collect()
}

/// What `tidegate check` says of a policy that counts with these keys.
fn check_counted(keys: &Value) -> (Option<i32>, Vec<String>) {
    let limit = json!({ "token_bucket": { "capacity": 5, "rate": "1/s" } });
    let mut policy = json!({ "name": "p", "key": ["ip"], "limit": limit });
    policy.as_object_mut().expect("an object").extend(keys.as_object().expect("an object").clone());
    let configuration = json!({ "companion": { "cluster": "tidegate" }, "policies": [policy] });
    check_lines(configuration.to_string().as_bytes())
}

#[test]
fn the_modes_that_are_documented_are_those_that_work() {
    let tables = [
        between(README, "### Where a limit is counted\n", "\n## "),
        between(POLICIES, "\n## `sync`\n", "\n## "),
    ];
    for table in tables {
        let modes = first_column(table);
        for mode in &modes {
            assert_eq!(check_counted(&json!({ "sync": mode })).0, Some(0), "{mode}");
        }
        let (_, told) = check_counted(&json!({ "sync": "?" }));
        let known: Vec<&str> = told.iter().flat_map(|line| line.split('"').skip(3).step_by(2)).collect();
        let is_known = |mode: &Value| known.iter().any(|known| mode == known);
        assert!(modes.len() == known.len() && modes.iter().all(is_known), "{modes:?}, but {told:?}");
    }
}

#[test]
fn what_is_documented_for_on_failure_works_where_a_request_waits() {
    let values = first_column(between(POLICIES, "\n## `on_failure`\n", "\n## "));
    assert_eq!(values.len(), 3, "{values:?}");
    for value in &values {
        for sync in ["lease", "exact", "async", "local"] {
            let (code, told) = check_counted(&json!({ "sync": sync, "on_failure": value }));
            let works = matches!(sync, "lease" | "exact") || (sync, value) == ("async", &json!("share"));
            assert_eq!(code, Some(i32::from(!works)), "{sync} {value}: {told:?}");
        }
    }
}

/// A configuration with this name at this place, and the path that the error must start with.
fn written(place: &str, name: &str) -> (Value, String) {
    let limit = json!({ "token_bucket": { "capacity": 5, "rate": "1/s" } });
    let mut policy = json!({ "name": "p", "key": ["ip"], "limit": limit, "sync": "local" });
    let path = match place {
        "limit" => {
            policy["limit"] = json!({ name: {} });
            format!("limit.{name}")
        }
        _ => panic!("no such place: {place}"),
    };
    (json!({ "companion": { "cluster": "tidegate" }, "policies": [policy] }), format!("policies[0].{path}: "))
}
