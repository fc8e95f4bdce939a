//! `tidegate check` over files as people have them: every word and every place of what is printed, in
//! `check/*.out`. With `TIDEGATE_BLESS` set, those files are written anew; read the difference.

#![allow(clippy::unwrap_used, reason = "a panic is a test's report")]

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/check");

/// The exit status and all that was printed; standard output comes first.
fn check(args: &[&str], input: &[u8]) -> (Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .arg("check")
        .args(args)
        .current_dir(FOLDER)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // One that reads nothing may have ended already.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(printed).unwrap())
}

/// What is printed about a file that has errors is what `name` has.
fn assert_printed(args: &[&str], name: &str) {
    assert_ends_with(1, args, name);
}

fn assert_ends_with(status: i32, args: &[&str], name: &str) {
    let (code, printed) = check(args, b"");
    assert_eq!(code, Some(status), "{printed}");
    let path = Path::new(FOLDER).join(name);
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        fs::write(&path, &printed).unwrap();
    }
    assert_eq!(
        printed,
        fs::read_to_string(&path).unwrap_or_default(),
        "{name}; with TIDEGATE_BLESS, it is kept"
    );
}

#[test]
fn five_errors_of_a_json_file_are_told_with_place_policy_and_remedy() {
    assert_printed(&["five.json"], "five.json.out");
}

#[test]
fn the_same_errors_are_told_where_they_stand_in_a_bootstrap_of_envoy() {
    assert_printed(&["bootstrap.yaml"], "bootstrap.yaml.out");
}

#[test]
fn the_same_errors_are_told_where_they_stand_in_a_plugin_of_istio() {
    assert_printed(&["wasmplugin.yaml"], "wasmplugin.yaml.out");
}

#[test]
fn messages_that_the_filter_cannot_read_and_keys_that_come_twice_are_told() {
    assert_printed(&["struct.yaml"], "struct.yaml.out");
}

#[test]
fn warnings_are_told_as_errors_are_and_fail_only_where_they_are_denied() {
    assert_ends_with(0, &["surprising.yaml"], "surprising.yaml.out");
    assert_ends_with(1, &["--deny-warnings", "surprising.yaml"], "surprising.yaml.out");
    let (code, printed) = check(&["--deny-warnings", "--format", "json", "surprising.yaml"], b"");
    let document: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((code, &document["errors"], &document["warnings"]), (Some(1), &0.into(), &3.into()));
    assert_eq!(document["files"][0]["findings"][0]["severity"], "warning");
}

#[test]
fn what_is_not_yaml_is_told_where_it_is_not() {
    assert_printed(&["tabs.yaml"], "tabs.yaml.out");
}

#[test]
fn for_machines_all_of_it_is_one_json_document() {
    let args = ["--format", "json", "bootstrap.yaml", "five.json", "no-such-file"];
    assert_printed(&args, "machine.out");
    let document: Value = serde_json::from_str(&check(&args, b"").1).unwrap();
    assert_eq!(document["errors"], 10);
    let findings = |file: usize| document["files"][file]["findings"].as_array().unwrap().clone();
    for (bootstrap, plain) in findings(0).iter().zip(findings(1)) {
        for key in ["path", "policy", "value", "problem", "remedy"] {
            assert_eq!(bootstrap[key], plain[key]);
        }
        let line = |finding: &Value| finding["line"].as_u64().unwrap();
        assert_eq!(line(bootstrap), line(&plain) + 23);
    }
}

#[test]
fn the_documentation_shows_the_document_for_machines() {
    let text = include_str!("../../docs/check.md");
    let (_, shown) = text.split_once("```json\n").unwrap();
    let (shown, _) = shown.split_once("```").unwrap();
    let json = r#"{
  "policies": [
    { "name": "per-ip",
      "key": ["ip"],
      "limit": { "token_bucket": { "capacity": 0, "rate": "100/m" } },
      "sync": "local" }
  ]
}"#;
    let (_, printed) = check(&["--format", "json", "-"], json.as_bytes());
    assert_eq!(printed.replace("\"-\"", "\"policies.json\""), shown);
}

#[test]
fn every_recipe_is_valid_and_holds_no_surprise() {
    let text = include_str!("../../docs/policies.md");
    let (_, recipes) = text.split_once("\n## Recipes\n").unwrap();
    let (recipes, _) = recipes.split_once("\n## ").unwrap();
    let mut count = 0;
    for block in recipes.split("```json\n").skip(1) {
        let (policies, _) = block.split_once("```").unwrap();
        let json = format!(r#"{{"companion": {{"cluster": "tidegate"}}, "policies": [{policies}]}}"#);
        // A policy in the proxy asks no companion.
        let json =
            if policies.contains("\"local\"") { format!("{{\"policies\": [{policies}]}}") } else { json };
        let (code, printed) = check(&["--deny-warnings", "-"], json.as_bytes());
        assert_eq!(code, Some(0), "{printed}");
        count += 1;
    }
    assert!(count >= 3, "{count}");
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn every_example_with_policies_is_valid() {
    let mut count = 0;
    for file in files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../envoy")) {
        let is_document = file
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].map(AsRef::as_ref).contains(&extension));
        let text = fs::read_to_string(&file).unwrap_or_default();
        if is_document && (text.contains("\"policies\"") || text.contains("policies:")) {
            let (code, printed) = check(&[&file.to_string_lossy()], b"");
            assert_eq!(code, Some(0), "{printed}");
            count += 1;
        }
    }
    assert!(count >= 3, "{count}");
}

#[test]
fn what_cannot_be_read_as_text_is_told_in_one_error() {
    for (input, place, words) in [
        (b"".as_slice(), "-:1:1", "empty"),
        (b" \n\n", "-:1:1", "empty"),
        (b"\xff\xfe{\0", "-:1:1", "byte order mark"),
        (b"\xef\xbb\xbf{}", "-:1:1", "byte order mark"),
        (b"{\n \"a\xc3(\": 1}", "-:2:4", "not UTF-8"),
        (b"kind: \xff", "-:1:7", "not UTF-8"),
        (b"\n\x0e\n\x08policies\x12\x02\x32\x00", "-:1:1", "protobuf message"),
        (b"{\"policies\": [\n\n", "-:1:14", "EOF while parsing a list"),
        (b"not JSON", "-:1:2", "not JSON"),
        (b"{\"policies\": [\n  {},\n  ]}", "-:2:5", "help: remove the comma\n"),
        (b"{\"policies\": [{\"a\": \"\\d\"}]}", "-:1:23", r#"backslash twice, as in "\\d""#),
        (b"kind: WasmPlugin\nspec: *none", "-:2:7", "unknown anchor"),
        (b"kind: &a [*a]", "-:1:11", "an alias for what it stands in"),
        (b"a:\n  - \"b", "-:2:", "not YAML"),
        (b"a:\n  value: |\n    {\n  {}\n", "-:4:3", "indent line 4 like line 3: the text under \"value\""),
        (b"policies:\n  - name: a\n", "-:1:1", "in YAML, and not in JSON"),
    ] {
        let (code, printed) = check(&["-"], input);
        assert_eq!(code, Some(1), "{printed}");
        assert!(printed.contains(place) && printed.contains(words), "{input:?}: {printed}");
        assert!(printed.ends_with("-: 1 error\n"), "{printed}");
    }
}

#[test]
fn a_misspelt_plugin_config_is_told_and_judged_all_the_same() {
    for key in ["pluginconfig", "plugin_config", "plugin-config", "PluginConfig"] {
        let plugin = format!("kind: WasmPlugin\nspec:\n  {key}: {{policies: []}}\n");
        let (code, printed) = check(&["-"], plugin.as_bytes());
        assert_eq!(code, Some(1), "{printed}");
        for words in ["-:3:3", "did you mean \"pluginConfig\"?", "policies: [] is empty", "-: 2 errors\n"] {
            assert!(printed.contains(words), "{words}: {printed}");
        }
    }
}

#[test]
fn what_yaml_takes_for_a_flag_is_to_be_quoted_where_a_text_belongs() {
    let policy = |name| format!("{{name: {name}, limit: blocked, shadow: on}}");
    let plugin =
        |name| format!("kind: WasmPlugin\nspec: {{pluginConfig: {{policies: [{}]}}}}\n", policy(name));
    let (code, printed) = check(&["-"], plugin("on").as_bytes());
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("policies[0].name: true is not a string"), "{printed}");
    assert!(printed.contains("help: put it in quotes; "), "{printed}");
    assert_eq!(check(&["-"], plugin("\"on\"").as_bytes()).0, Some(0));
}

#[test]
fn there_is_nothing_to_check_in_a_file_without_the_filter() {
    let bootstrap = br#"{"static_resources": {"listeners": []}}"#;
    let deployment = b"apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: tidegate}\n";
    for input in [bootstrap.as_slice(), deployment] {
        let (code, printed) = check(&["-"], input);
        assert_eq!(code, Some(2), "{printed}");
        assert!(printed.starts_with("-: no configuration of the Tidegate filter in it; "), "{printed}");
    }
    let huge = [b"{\"policies\": [".as_slice(), &b" ".repeat(17 << 20)].concat();
    let (code, printed) = check(&["-"], &huge);
    assert_eq!((code, printed.starts_with("-: more than 16777216 bytes; ")), (Some(2), true), "{printed}");
}

#[test]
fn a_configuration_that_is_one_long_line_is_shown_in_part() {
    let policies = vec![format!(r#"{{"name": "{}"}}"#, "x".repeat(20_000)); 40];
    let json = format!(r#"{{"policies": [{}]}}"#, policies.join(","));
    let (code, printed) = check(&["-"], json.as_bytes());
    assert!(code == Some(1) && printed.len() < 200_000, "{}", printed.len());
    assert!(printed.contains("--> -:1:15\n"), "{printed}");
}
