//! That the cases hold the whole plugin configuration, as its JSON Schema tells it: each of its keys, and each word that
//! a key can have for a value.

use std::collections::BTreeSet;
use std::path::PathBuf;

use libtest_mimic::Failed;
use serde_json::Value;

use crate::case;

const SCHEMA: &str = include_str!("../../../plugin-config/schema.json");

/// Keys by their path, lists left out and `*` for names that users choose, and words behind an equals sign, as in
/// `policies.match.headers.*.prefix` and `policies.sync="exact"`.
type Places = BTreeSet<String>;

/// Fails with what no case has, and with what the cases have and the schema does not know.
pub(crate) fn every_key_and_value_has_a_case(files: &[PathBuf]) -> Result<(), Failed> {
    let schema: Value = serde_json::from_str(SCHEMA)?;
    let (mut contract, mut shown) = (Places::new(), Places::new());
    describe(&schema, &schema, "", &mut contract);
    for file in files {
        for section in case::read(&std::fs::read_to_string(file)?)? {
            collect(&Value::Object(section.plugin), "", &contract, &mut shown);
        }
    }
    let list = |words: Vec<&String>| words.into_iter().map(String::as_str).collect::<Vec<_>>().join("\n  ");
    let missing = list(contract.difference(&shown).collect());
    let unknown = list(shown.difference(&contract).collect());
    println!("{} keys and words", contract.len());
    if missing.is_empty() && unknown.is_empty() && contract.len() > 50 {
        return Ok(());
    }
    Err(format!("no case has:\n  {missing}\nthe schema does not know:\n  {unknown}").into())
}

/// Adds the places of a part of the schema. What is only for checks, as `allOf` and `if`, adds none.
fn describe(schema: &Value, part: &Value, path: &str, places: &mut Places) {
    if let Some(reference) = part["$ref"].as_str() {
        let definition = schema.pointer(reference.trim_start_matches('#'));
        describe(schema, definition.unwrap_or(&Value::Null), path, places);
        return;
    }
    let choices = ["oneOf", "anyOf"].into_iter().filter_map(|choice| part[choice].as_array()).flatten();
    let (mut is_leaf, members) = (true, part["properties"].as_object().into_iter().flatten());
    for choice in choices.chain(part.get("items")) {
        is_leaf = false;
        describe(schema, choice, path, places);
    }
    let names = part.get("additionalProperties").filter(|rest| rest.is_object());
    for (name, member) in
        members.map(|(name, member)| (name.as_str(), member)).chain(names.map(|rest| ("*", rest)))
    {
        is_leaf = false;
        describe(schema, member, &join(path, name), places);
    }
    if !is_leaf {
        return;
    }
    let words = part["enum"].as_array().into_iter().flatten().chain(part.get("const"));
    let booleans = [Value::Bool(true), Value::Bool(false)];
    let booleans = booleans.iter().filter(|_| part["type"] == "boolean");
    let words: Places = words.chain(booleans).map(|word| format!("{path}={word}")).collect();
    if words.is_empty() {
        places.insert(path.to_owned());
    }
    places.extend(words);
}

/// Adds the places of a configuration's values.
fn collect(value: &Value, path: &str, contract: &Places, shown: &mut Places) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, path, contract, shown)),
        Value::Object(members) => {
            let any = join(path, "*");
            let is_users = contract.iter().any(|place| place.starts_with(&any));
            for (name, member) in members {
                let path = if is_users { any.clone() } else { join(path, name) };
                collect(member, &path, contract, shown);
            }
        }
        _ => {
            let word = format!("{path}={value}");
            let is_word = contract.contains(&word) || !contract.contains(path);
            shown.insert(if is_word { word } else { path.to_owned() });
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
