//! What policies make of a request that a page describes.

use std::collections::BTreeMap;

use limiter::explain::{Explanation, explain};
use limiter::request::{Given, JWT_AUTHN};
use plugin_config::parse;
use serde::{Deserialize, Serialize};

/// The explanation, or why there is none.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Explained {
    /// What all policies make of the request.
    Explained(Explanation),
    /// The configuration is not valid, or the request is none.
    Failed {
        /// For people.
        error: String,
    },
}

/// A request as a page describes it.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Described {
    method: Option<String>,
    target: String,
    host: String,
    address: Option<core::net::IpAddr>,
    headers: BTreeMap<String, Values>,
    route: String,
    claims: Vec<Entry>,
    metadata: Vec<Entry>,
    route_metadata: Vec<Entry>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Values {
    One(String),
    Several(Vec<String>),
}

/// A path of metadata and its value, which may be a text, a whole number or a flag.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: Vec<String>,
    value: Value,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Value {
    Flag(bool),
    Number(i64),
    Text(String),
}

impl Explained {
    pub(crate) fn of(configuration: &str, request: &str) -> Self {
        let described: Described = match serde_json::from_str(request) {
            Ok(described) => described,
            Err(error) => return Self::Failed { error: format!("the request: {error}") },
        };
        match parse(configuration.as_bytes()) {
            Ok(config) => Self::Explained(explain(&config.policies, &config.families, &described.into())),
            Err(errors) => Self::Failed { error: errors.to_string() },
        }
    }

    pub(crate) fn to_json(&self) -> String {
        // Texts and numbers under fixed names: there is nothing that JSON could refuse.
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl From<Described> for Given {
    fn from(described: Described) -> Self {
        let headers = described.headers.into_iter().flat_map(|(name, values)| {
            let values = match values {
                Values::One(value) => vec![value],
                Values::Several(values) => values,
            };
            values.into_iter().map(move |value| (name.to_ascii_lowercase(), value.into_bytes()))
        });
        let entries =
            |entries: Vec<Entry>| entries.into_iter().map(|entry| (entry.path, entry.value.bytes()));
        let claims = entries(described.claims)
            .map(|(path, value)| (core::iter::once(JWT_AUTHN.to_owned()).chain(path).collect(), value));
        Self {
            method: described.method.unwrap_or_else(|| "GET".to_owned()).into_bytes(),
            target: described.target.into_bytes(),
            authority: described.host.into_bytes(),
            address: described.address,
            headers: headers.collect(),
            route: described.route.into_bytes(),
            metadata: claims.chain(entries(described.metadata)).collect(),
            route_metadata: entries(described.route_metadata).collect(),
        }
    }
}

impl Value {
    /// In the form in which it becomes part of a key.
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Flag(flag) => flag.to_string().into_bytes(),
            Self::Number(number) => number.to_string().into_bytes(),
            Self::Text(text) => text.into_bytes(),
        }
    }
}
