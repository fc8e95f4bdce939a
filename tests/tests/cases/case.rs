//! What a case file can say. How to write one is told in `tests/cases/README.md`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use serde_json::{Map, Value};

/// One claim, the configuration it is about, and the requests that show it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    pub(crate) claim: String,
    /// The plugin configuration.
    pub(crate) plugin: Map<String, Value>,
    #[serde(default)]
    pub(crate) envoy: EnvoySettings,
    pub(crate) requests: Vec<Request>,
    /// Counters of the filter after the last request, without `wasmcustom.tidegate.`.
    #[serde(default)]
    pub(crate) counters: BTreeMap<String, u64>,
}

/// In what this listener differs from the others, in Envoy's own words.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnvoySettings {
    /// Fields of the HTTP connection manager.
    #[serde(default)]
    pub(crate) manager: BTreeMap<String, Value>,
    /// HTTP filters before Tidegate.
    #[serde(default)]
    pub(crate) filters: Vec<Value>,
    /// Routes before the one for all paths; one that does nothing else answers 200.
    #[serde(default)]
    pub(crate) routes: Vec<Value>,
    /// Virtual hosts before the one for all hosts; their routes as above.
    #[serde(default)]
    pub(crate) virtual_hosts: Vec<Value>,
    /// Adds Envoy's own filter for tokens; what it verified is in the metadata under this name.
    #[serde(default)]
    pub(crate) jwt: Option<String>,
}

/// A request and what becomes of it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    /// `METHOD TARGET`; the target is sent byte by byte as it stands.
    pub(crate) send: String,
    /// Header lines, sent as they stand.
    #[serde(default)]
    pub(crate) headers: Vec<String>,
    /// The claims of a signed token in `authorization`.
    #[serde(default)]
    pub(crate) token: Option<Value>,
    /// The version of HTTP, 1 or 2.
    #[serde(default = "one")]
    pub(crate) http: u32,
    /// How often it is sent, one after the other.
    #[serde(default = "one")]
    pub(crate) times: u32,
    pub(crate) expect: Expect,
}

fn one() -> u32 {
    1
}

/// A bare status, or more than that.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Expect {
    Status(u16),
    Answer(ExpectedAnswer),
}

/// A status, or several of which each will do.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Status {
    One(u16),
    AnyOf(Vec<u16>),
}

impl Status {
    /// Whether this is the status, or one of them.
    pub(crate) fn takes(&self, status: u16) -> bool {
        match self {
            Self::One(expected) => *expected == status,
            Self::AnyOf(all) => all.contains(&status),
        }
    }
}

/// What is expected of an answer. What is not named is not looked at.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExpectedAnswer {
    pub(crate) status: Status,
    /// Header fields; `null` for one that is absent.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, Option<String>>,
    /// The whole body.
    #[serde(default)]
    pub(crate) body: Option<String>,
    /// A part of a body in JSON.
    #[serde(default)]
    pub(crate) json: Option<Value>,
    /// `%RESPONSE_CODE_DETAILS%` of the access log.
    #[serde(default)]
    pub(crate) details: Option<String>,
}

impl Expect {
    pub(crate) fn answer(&self) -> ExpectedAnswer {
        match self {
            Self::Status(status) => ExpectedAnswer {
                status: Status::One(*status),
                headers: BTreeMap::new(),
                body: None,
                json: None,
                details: None,
            },
            Self::Answer(answer) => answer.clone(),
        }
    }
}

/// Reads the sections of a file; `Err` says what is wrong with it, in a sentence.
pub(crate) fn read(text: &str) -> Result<Vec<Section>, String> {
    // Of YAML 1.1's words for true and false, as `no` and `n`, only these two are not text.
    let options = serde_saphyr::options! { strict_booleans: true };
    let sections: Vec<Section> =
        serde_saphyr::from_str_with_options(text, options).map_err(|error| error.to_string())?;
    if sections.is_empty() {
        return Err("there is no section".to_owned());
    }
    let (mut claims, mut policies) = (BTreeSet::new(), BTreeSet::new());
    for section in &sections {
        let claim = &section.claim;
        if claim.trim().is_empty() || !claims.insert(claim) {
            return Err(format!("{claim:?} is not a claim of its own"));
        }
        section.check().map_err(|error| format!("{claim:?}: {error}"))?;
        for name in section.policies().filter_map(|policy| policy["name"].as_str()) {
            // The sections of a file share a companion and Envoy's counters.
            if !policies.insert(name) {
                return Err(format!("{claim:?}: another section has a policy that is called {name:?}, too"));
            }
        }
    }
    Ok(sections)
}

impl Section {
    /// The policies of its configuration.
    pub(crate) fn policies(&self) -> impl Iterator<Item = &Value> {
        self.plugin.get("policies").and_then(Value::as_array).into_iter().flatten()
    }

    /// Whether a policy counts anything outside of the proxy.
    pub(crate) fn needs_companion(&self) -> bool {
        let plans = |policy: &Value| policy["plan"]["limits"].as_object().cloned().unwrap_or_default();
        let counts =
            |policy: &Value| policy["limit"].is_object() || plans(policy).values().any(Value::is_object);
        self.policies().any(|policy| policy["sync"] != "local" && counts(policy))
    }

    fn check(&self) -> Result<(), String> {
        for request in &self.requests {
            let Some((method, target)) = request.send.split_once(' ') else {
                return Err(format!("{:?} is not \"METHOD TARGET\"", request.send));
            };
            let is_sendable = |text: &str| text.chars().all(|char| u8::try_from(char).is_ok());
            let lines = request.headers.iter().map(String::as_str);
            if let Some(text) = [method, target].into_iter().chain(lines).find(|text| !is_sendable(text)) {
                return Err(format!("{text:?} has characters above U+00FF, which stand for no byte"));
            }
            if let Some(line) = request.headers.iter().find(|line| !line.contains(':')) {
                return Err(format!("{line:?} is not \"name: value\""));
            }
            if request.times == 0 || !matches!(request.http, 1 | 2) {
                return Err(format!("{:?} is sent 0 times, or by another HTTP than 1 and 2", request.send));
            }
        }
        // An Envoy without the filter admits everything, and would pass for one with it.
        let is_bare = |request: &Request| {
            let ExpectedAnswer { status, headers, body, json, details } = request.expect.answer();
            status.takes(200) && headers.is_empty() && body.is_none() && json.is_none() && details.is_none()
        };
        if self.counters.is_empty() && self.requests.iter().all(is_bare) {
            return Err("nothing is checked that an Envoy without the filter would not do".to_owned());
        }
        Ok(())
    }
}
