//! What the schema and the parser must agree on, and the closed list of what a schema cannot say.
//!
//! Numbers are the same to both: a number is whole by its value, so that `1.0` and `1e2` are and `-0` is zero, doubles
//! round before bounds are asked (`9007199254740993.0` is 2^53), whole numbers do not, and what no double holds (`1e309`)
//! is no JSON. Of a key that stands twice readers of JSON keep the last value and forget the first: only the parser
//! sees both, and refuses.

use jsonschema::Validator;
use limiter::matching::{Template, TemplateError};
use plugin_config::{Config, Error, Errors, Problem, Step, parse};
use serde_json::Value;

/// More than an error says.
const MAX_ERROR_BYTES: usize = 1000;

/// Asks both.
#[derive(Debug)]
pub struct Judge {
    validator: Validator,
}

impl Judge {
    /// A judge by this schema.
    ///
    /// # Errors
    /// It is none.
    pub fn new(schema: &Value) -> Result<Self, String> {
        let validator = jsonschema::draft202012::new(schema).map_err(|error| error.to_string())?;
        Ok(Self { validator })
    }

    /// The configuration that both accept, or nothing where it is rightly refused.
    ///
    /// # Errors
    /// Parser and schema disagree, or an error does not say what it must.
    pub fn judge(&self, bytes: &[u8]) -> Result<Option<Config>, String> {
        let parsed = parse(bytes);
        if let Err(errors) = &parsed {
            well_told(errors)?;
        }
        let value: Option<Value> = serde_json::from_slice(bytes).ok();
        let accepted = value.as_ref().is_some_and(|value| self.validator.is_valid(value));
        match (parsed, accepted) {
            (Ok(config), true) => Ok(Some(config)),
            (Ok(_), false) => Err(format!("the schema alone refuses it: {}", self.reasons(value.as_ref()))),
            (Err(_), false) => Ok(None),
            (Err(errors), true) => {
                let root = value.unwrap_or_default();
                // Of two values of a key the parser reads the first one, and everybody else the last.
                let has_doubles = errors.iter().any(|error| error.problem == Problem::RepeatedKey);
                match errors.iter().find(|error| !has_doubles && !is_unsayable(error, &root)) {
                    Some(error) => Err(format!("the parser alone refuses it: {error}")),
                    None => Ok(None),
                }
            }
        }
    }

    fn reasons(&self, value: Option<&Value>) -> String {
        let Some(value) = value else { return "no JSON".to_owned() };
        let reasons =
            self.validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path()));
        reasons.collect::<Vec<_>>().join("\n")
    }
}

/// Whether an error is of a kind that a schema cannot tell.
fn is_unsayable(error: &Error, root: &Value) -> bool {
    let value = error.path.0.iter().try_fold(root, |value, step| match step {
        Step::Key(key) => value.get(key),
        Step::Index(index) => value.get(index),
    });
    let text = value.and_then(Value::as_str);
    let key = |back: usize| match error.path.0.iter().rev().nth(back) {
        Some(Step::Key(key)) => key.as_str(),
        Some(Step::Index(_)) | None => "",
    };
    match &error.problem {
        // Relations between values, and names that must be unique.
        Problem::Inexact
        | Problem::NeverFits { .. }
        | Problem::TooManyShards { .. }
        | Problem::SameName { .. }
        // Keys and entries that are the same only once case or spelling is put aside; and double keys.
        | Problem::RepeatedKey
        | Problem::Repeated
        // What only a reader of that language knows.
        | Problem::NotARegex { .. }
        | Problem::NotABlock
        | Problem::HostBits => true,
        Problem::NotATemplate => {
            text.is_some_and(|text| text.parse::<Template>() == Err(TemplateError::RepeatedName))
        }
        // Addresses of IPv6 in brackets.
        Problem::BadCharacters => key(1) == "hosts" && text.is_some_and(|text| text.ends_with(']')),
        // The parser counts bytes, and a schema characters; and a default is at most the maximum beside it.
        Problem::TooLarge => text.is_some_and(|text| !text.is_ascii()) || key(0) == "default",
        Problem::BadKey => key(1) == "limits" && !key(0).is_ascii(),
        // The bytes of the whole.
        Problem::TooMany => error.path.0.is_empty(),
        _ => false,
    }
}

/// Every error says where, and shows nothing that is long or disturbs a terminal.
fn well_told(errors: &Errors) -> Result<(), String> {
    if errors.iter().next().is_none() {
        return Err("refused without an error".to_owned());
    }
    for error in errors {
        let (path, text) = (error.path.to_string(), error.to_string());
        if path.is_empty() || text.len() > MAX_ERROR_BYTES || text.chars().any(char::is_control) {
            return Err(format!("an error is told badly: {text:?}"));
        }
    }
    Ok(())
}
