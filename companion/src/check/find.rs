//! Where in a document the configurations of Tidegate's filter stand: in Envoy's messages, wherever they are,
//! and in the resources of Istio and Envoy Gateway.

use std::collections::HashSet;

use super::tree::{Entry, Id, Tree};

/// The end of the type of Envoy's message.
const WASM: &str = "/envoy.extensions.filters.http.wasm.v3.Wasm";

/// What names of ours have in them.
const OUR_NAME: &str = "tidegate";

/// What only our configurations have at their top.
const OUR_KEY: &str = "policies";

/// The key of the configuration in Istio's resource.
pub(crate) const ISTIO_KEY: &str = "pluginConfig";

/// Where in `vm_config` the module's file or address stands, in both spellings that Envoy takes.
const IN_ENVOY: [&[&str]; 4] = [
    &["vm_id"],
    &["code", "local", "filename"],
    &["code", "remote", "http_uri", "uri"],
    &["code", "remote", "httpUri", "uri"],
];

/// The same in Envoy Gateway's `code`.
const IN_GATEWAY: [&[&str]; 2] = [&["http", "url"], &["image", "url"]];

/// A configuration of our filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// Envoy's `configuration`, a message in which the JSON should stand as a text.
    Message(Id),
    /// Istio's or Envoy Gateway's mapping, of which they make JSON.
    Mapping(Id),
    /// There is none in this part, which should have one.
    Missing(Id),
    /// The key of a mapping that is almost Istio's.
    Misspelt(Id),
}

/// All configurations of our filter, in the order of the file.
pub(crate) fn all(tree: &Tree) -> Vec<Found> {
    let mut found = Vec::new();
    let mut names = HashSet::new();
    let filters: Vec<Id> = tree.ids().filter(|id| tree.is_object(*id)).collect();
    // Envoy's filters have their names beside the message.
    for id in &filters {
        if is_ours(tree.text_at(*id, &["name"])) {
            names.extend(tree.get(*id, "typed_config").or_else(|| tree.get(*id, "typedConfig")));
        }
    }
    for id in filters {
        found.extend(in_envoy(tree, id, names.contains(&id)));
        match tree.text_at(id, &["kind"]) {
            Some("WasmPlugin") => found.extend(in_istio(tree, id)),
            Some("EnvoyExtensionPolicy") => found.extend(in_gateway(tree, id)),
            _ => {}
        }
    }
    found
}

/// True for a document of Envoy or Kubernetes, in which a configuration stands deeper down if at all.
pub(crate) fn is_around(tree: &Tree) -> bool {
    const KEYS: [&str; 16] = [
        "@type",
        "admin",
        "apiVersion",
        "configs",
        "dynamic_resources",
        "filter_chains",
        "filters",
        "http_filters",
        "items",
        "kind",
        "layered_runtime",
        "listeners",
        "node",
        "resources",
        "static_resources",
        "typed_config",
    ];
    tree.roots.iter().any(|root| KEYS.iter().any(|key| tree.get(*root, key).is_some()))
}

/// True for a configuration that is written in YAML, as the filter does not take it.
pub(crate) fn is_bare(tree: &Tree) -> Option<Id> {
    tree.roots.iter().find(|root| tree.get(**root, OUR_KEY).is_some()).copied()
}

fn in_envoy(tree: &Tree, id: Id, named: bool) -> Option<Found> {
    let is_wasm = |key| tree.text_at(id, &[key]).is_some_and(|name| name.ends_with(WASM));
    let message = if is_wasm("@type") {
        id
    } else if is_wasm("type_url") || is_wasm("typeUrl") {
        // A TypedStruct, which has the message's fields in another message.
        tree.get(id, "value")?
    } else {
        return None;
    };
    let config = tree.get(message, "config").unwrap_or(message);
    let configuration = tree.get(config, "configuration");
    let ours = named
        || ["name", "root_id", "rootId"].iter().any(|key| is_ours(tree.text_at(config, &[key])))
        || ["vm_config", "vmConfig"].iter().any(|vm| names_us(tree, config, vm, &IN_ENVOY))
        || configuration.is_some_and(|configuration| is_policies(tree, configuration));
    ours.then(|| configuration.map_or(Found::Missing(config), Found::Message))
}

fn in_istio(tree: &Tree, id: Id) -> Vec<Found> {
    let Some(spec) = tree.get(id, "spec") else { return Vec::new() };
    let entry = tree.entry(spec, ISTIO_KEY, 0);
    let misspelt = if entry.is_some() { None } else { misspelt(tree, spec) };
    let config = entry.or(misspelt).map(|entry| entry.value);
    let ours = is_ours(tree.text_at(id, &["metadata", "name"]))
        || ["url", "pluginName"].iter().any(|key| is_ours(tree.text_at(spec, &[key])))
        || config.is_some_and(|config| tree.get(config, OUR_KEY).is_some());
    if !ours {
        return Vec::new();
    }
    let misspelt = misspelt.map(|entry| Found::Misspelt(entry.key));
    misspelt.into_iter().chain([config.map_or(Found::Missing(spec), Found::Mapping)]).collect()
}

/// The entry that Istio would not find, for its key is written as in other places.
fn misspelt(tree: &Tree, spec: Id) -> Option<Entry> {
    let is_almost = |key: &str| key.replace(['_', '-'], "").eq_ignore_ascii_case(ISTIO_KEY);
    tree.entries(spec).iter().find(|entry| tree.text(entry.key).is_some_and(is_almost)).copied()
}

fn in_gateway(tree: &Tree, id: Id) -> Vec<Found> {
    let extensions = tree.get_at(id, &["spec", "wasm"]).map(|wasm| tree.items(wasm)).unwrap_or_default();
    let found = |extension: &Id| {
        let config = tree.get(*extension, "config");
        let ours = ["name", "rootID"].iter().any(|key| is_ours(tree.text_at(*extension, &[key])))
            || names_us(tree, *extension, "code", &IN_GATEWAY)
            || config.is_some_and(|config| tree.get(config, OUR_KEY).is_some());
        ours.then(|| config.map_or(Found::Missing(*extension), Found::Mapping))
    };
    extensions.iter().filter_map(found).collect()
}

fn is_ours(name: Option<&str>) -> bool {
    name.is_some_and(|name| name.to_ascii_lowercase().contains(OUR_NAME))
}

/// Whether one of these texts, such as the module's file or address, names us.
fn names_us(tree: &Tree, id: Id, key: &str, places: &[&[&str]]) -> bool {
    let id = tree.get(id, key);
    id.is_some_and(|id| places.iter().any(|keys| is_ours(tree.text_at(id, keys))))
}

/// Whether a message of Envoy has our key in its text, which need not be JSON, or in its fields.
fn is_policies(tree: &Tree, configuration: Id) -> bool {
    let Some(value) = tree.get(configuration, "value") else { return false };
    tree.get(value, OUR_KEY).is_some()
        || tree.text(value).is_some_and(|text| text.contains(&format!("\"{OUR_KEY}\"")))
}
