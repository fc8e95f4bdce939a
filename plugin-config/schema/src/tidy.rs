//! What the types cannot say of the schema that is made of them.

use schemars::Schema;
use serde_json::Value;

/// Makes what is optional a key that may be left out, not one that may be null; takes descriptions out of their
/// lines; and drops formats that only Rust knows.
pub(crate) fn tidy(schema: &mut Schema) {
    without_null(schema);
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| format.starts_with("uint")) {
        schema.remove("format");
    }
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description =
            description.split("\n\n").map(|part| part.replace('\n', " ")).collect::<Vec<_>>().join("\n\n");
    }
}

fn without_null(schema: &mut Schema) {
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            schema.insert("type".to_owned(), only);
        }
    }
    let Some(Value::Array(forms)) = schema.get_mut("anyOf") else { return };
    let count = forms.len();
    forms.retain(|form| form.get("type").is_none_or(|kind| kind != "null"));
    if forms.len() == count {
        return;
    }
    if let [Value::Object(only)] = forms.as_mut_slice() {
        let only = core::mem::take(only);
        schema.remove("anyOf");
        for (key, value) in only {
            schema.insert(key, value);
        }
    }
}
