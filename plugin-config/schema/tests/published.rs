//! The schema in the repository is the one that the types make, and it is a schema.

use serde_json::{Value, json};

const PUBLISHED: &str = include_str!("../../schema.json");

#[test]
fn the_published_schema_is_the_one_of_the_types() {
    assert!(PUBLISHED == config_schema::text(), "plugin-config/schema.json is behind; run make schema");
}

#[test]
fn the_published_schema_is_one_of_its_draft() {
    let schema: Value = serde_json::from_str(PUBLISHED).unwrap();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::draft202012::new(&schema).unwrap();
}

/// Calls `visit` for every schema within this one, with the way to it.
fn each(schema: &Value, way: &str, visit: &mut impl FnMut(&Value, &str)) {
    visit(schema, way);
    for key in ["properties", "$defs"] {
        for (name, inner) in schema[key].as_object().into_iter().flatten() {
            each(inner, &format!("{way}/{key}/{name}"), visit);
        }
    }
    for key in ["items", "additionalProperties"] {
        if schema[key].is_object() {
            each(&schema[key], &format!("{way}/{key}"), visit);
        }
    }
    for key in ["oneOf", "anyOf"] {
        for (index, inner) in schema[key].as_array().into_iter().flatten().enumerate() {
            each(inner, &format!("{way}/{key}/{index}"), visit);
        }
    }
}

#[test]
fn everything_is_described_and_every_object_is_closed() {
    let schema = config_schema::schema();
    each(&schema, "", &mut |inner, way| {
        for (name, value) in inner["properties"].as_object().into_iter().flatten() {
            // The one key of a form is described with the form.
            let is_form = inner["required"] == json!([name]) && inner["description"].is_string();
            assert!(value["description"].is_string() || is_form, "{way}/properties/{name}");
        }
        for form in inner["oneOf"].as_array().into_iter().flatten() {
            assert!(form["description"].is_string(), "{way}: {form}");
        }
        // What is a map names its values instead.
        let is_closed = inner["additionalProperties"] == false || inner["additionalProperties"].is_object();
        assert!(inner["type"] != "object" || is_closed, "{way}");
    });
}

#[test]
fn every_example_and_default_is_valid() {
    let schema = config_schema::schema();
    each(&schema, "", &mut |inner, way| {
        let mut values: Vec<&Value> = inner["examples"].as_array().into_iter().flatten().collect();
        values.extend(inner.get("default"));
        if values.is_empty() {
            return;
        }
        let mut alone = inner.clone();
        alone["$defs"] = schema["$defs"].clone();
        let validator = jsonschema::draft202012::new(&alone).unwrap();
        for value in values {
            assert!(validator.is_valid(value), "{way}: {value}");
        }
    });
}

#[test]
fn patterns_use_what_every_validator_knows() {
    each(&config_schema::schema(), "", &mut |inner, way| {
        let text = inner.to_string();
        for group in ["(?=", "(?!", "(?<", "\\\\1"] {
            assert!(!text.contains(group), "{way}: {group}");
        }
    });
}
