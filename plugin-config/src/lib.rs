//! The configuration of the filter: bytes of JSON to valid policies, or every error at once.
//!
//! The same bytes stand in Envoy's `configuration`, in Istio's `pluginConfig` and in the file that
//! `tidegate check` reads. A value is read in two steps: [`parse`] makes a tree that keeps what was
//! written, double keys included; then one reader for each part of the contract walks it, reports what it
//! finds wrong, and goes on. What policies mean for requests is `limiter`'s.

mod companion;
mod cost;
mod document;
mod entries;
mod error;
mod fields;
mod headers;
mod key;
mod limit;
mod matching;
mod node;
mod pattern;
mod place;
mod plan;
mod policy;
mod remedy;
mod report;
mod response;
mod shards;
mod shown;
mod source;
mod spot;
mod state;
mod sync;
mod token;
mod warnings;
mod words;

use limiter::fields::Family;
use limiter::policies::Policies;

pub use companion::{Companion, DEFAULT_TIMEOUT, MAX_CLUSTER_BYTES, MAX_TIMEOUT, MIN_TIMEOUT};
pub use document::MAX_BYTES;
pub use error::{Error, Problem, Remedy, Type};
pub use key::MAX_PARTS;
pub use matching::{
    MAX_CIDRS, MAX_CONDITIONS, MAX_EXCEPTIONS, MAX_HOST_BYTES, MAX_HOSTS, MAX_METHODS, MAX_PATH_BYTES,
    MAX_ROUTE_BYTES, MAX_ROUTES, MAX_VALUE_BYTES,
};
pub use place::{Path, Step};
pub use plan::{MAX_PLAN_BYTES, MAX_PLANS};
pub use report::{Errors, MAX_ERRORS};
pub use response::{MAX_HEADERS, MAX_TEXT_BYTES, REFUSED_FAMILIES, REFUSED_HEADERS, STATUSES};
pub use shards::MAX_SHARDS;
pub use shown::MAX_SHOWN_CHARS;
pub use source::{MAX_NAME_BYTES, MAX_SOURCES, MAX_STEPS, MIN_STEPS};
pub use spot::MAX_WHOLE;
pub use state::{DEFAULT_SLOTS, MAX_SLOTS};
pub use token::MAX_TOKEN_BYTES;
pub use warnings::{Concern, Warning, check};

use crate::report::Report;
use crate::spot::Spot;
use crate::words::Words;

/// The JSON Schema of a configuration. It knows less than [`parse`]: what it accepts may be refused, and what it
/// refuses always is.
pub const SCHEMA: &str = include_str!("../schema.json");

/// A valid configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Present where a policy asks it.
    pub companion: Option<Companion>,
    /// The families of response fields, each at most once, in the order of the configuration.
    pub families: Vec<Family>,
    /// The slots of the table of local buckets and leases: 1 to [`MAX_SLOTS`].
    pub slots: u32,
    /// One to [`MAX_POLICIES`] policies with different names, in the order of the configuration.
    pub policies: Policies,
}

const FORM: &str = "use an object with \"policies\"";
const WORDS: Words = Words::new(&["companion", "headers", "state", "response", "policies", "$schema"]);
/// What editors find the schema by.
const ADDRESS: &str = "use the address of a schema, or leave it out";

/// Reads a configuration.
///
/// # Errors
/// Everything that is wrong with it, at least one error.
pub fn parse(bytes: &[u8]) -> Result<Config, Errors> {
    let root = document::read(bytes)?;
    let mut report = Report::default();
    let config = read(&Spot::root(&root), &mut report);
    report.finish(config)
}

/// Reads the parts that can be read: what cannot is in the report, and makes the rest of no use.
fn read(spot: &Spot<'_>, report: &mut Report) -> Config {
    let mut config = Config {
        companion: None,
        families: headers::DEFAULT.to_vec(),
        slots: DEFAULT_SLOTS,
        policies: Policies::default(),
    };
    let Ok(fields) = spot.object(&WORDS, FORM, report) else { return config };
    if let Some(spot) = fields.optional("$schema") {
        let _ = spot.text(ADDRESS, report);
    }
    if let Some(spot) = fields.optional("companion") {
        config.companion = companion::read(&spot, report).ok();
    }
    if let Some(spot) = fields.optional("headers") {
        config.families = headers::read(&spot, report).unwrap_or_default();
    }
    if let Some(spot) = fields.optional("state") {
        config.slots = state::read(&spot, report).unwrap_or(DEFAULT_SLOTS);
    }
    let response = fields.optional("response").and_then(|spot| response::read(&spot, report).ok());
    if let Ok(spot) = fields.required("policies", policy::FORM, report) {
        config.policies = policy::read_all(&spot, &response.unwrap_or_default(), report);
        if policy::shared_policies(spot.node) > 0 && fields.optional("companion").is_none() {
            let remedy =
                "add {\"cluster\": …}: a policy asks the companion unless it has \"sync\": \"local\"";
            fields.missing("companion", Problem::Missing, remedy, report);
        }
    }
    config
}
