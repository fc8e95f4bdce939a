//! `tidegate check` as a person runs it, and as a program does.

use std::process::Command;

use serde_json::Value;

use crate::binaries;

/// What `tidegate check` says of a configuration: its exit status, and what it printed.
pub fn check(configuration: &[u8]) -> (Option<i32>, String) {
    run(configuration, "text")
}

/// Its exit status, and a line for each error, in the words that the filter has for it in Envoy's log.
pub fn check_lines(configuration: &[u8]) -> (Option<i32>, Vec<String>) {
    let (code, printed) = run(configuration, "json");
    let document: Value = serde_json::from_str(&printed).expect("JSON");
    let findings = document["files"][0]["findings"].as_array().expect("a list");
    let line = |finding: &Value| {
        let text = |key: &str| finding[key].as_str();
        let value = text("value").map_or(String::new(), |value| format!("{value} "));
        let [path, problem, remedy] = ["path", "problem", "remedy"].map(|key| text(key).expect("a text"));
        format!("{path}: {value}{problem}; {remedy}")
    };
    (code, findings.iter().map(line).collect())
}

fn run(configuration: &[u8], format: &str) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    // The name is part of what is printed.
    std::fs::write(folder.path().join("policies.json"), configuration)
        .expect("the configuration can be written");
    let output = Command::new(binaries::companion())
        .args(["check", "--format", format, "policies.json"])
        .current_dir(folder.path())
        .output()
        .expect("the companion can be run");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&printed).into_owned())
}
