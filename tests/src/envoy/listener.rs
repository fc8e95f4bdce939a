//! A listener of an Envoy under test: the filter, what stands before it, and the routes behind it.

use serde_json::{Map, Value, json};

use super::bootstrap::{address, any_port, wasm_filter};
use std::path::Path;

const HTTP_CONNECTION_MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/// What can differ between listeners. All listeners of an Envoy share its workers, clusters and statistics; their
/// filters share nothing.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Listener {
    /// The plugin configuration as Envoy hands it over; `None` leaves the filter out.
    pub(super) filter: Option<String>,
    filters_before: Vec<Value>,
    manager: Map<String, Value>,
    routes: Vec<Value>,
    virtual_hosts: Vec<Value>,
}

impl Listener {
    /// A listener with the filter and this plugin configuration.
    pub fn new(configuration: &Value) -> Self {
        Self { filter: Some(configuration.to_string()), ..Self::default() }
    }

    /// Adds another HTTP filter, in Envoy's JSON, before Tidegate's.
    pub fn filter_before(mut self, filter: Value) -> Self {
        self.filters_before.push(filter);
        self
    }

    /// Sets a field of the HTTP connection manager, such as `normalize_path`.
    pub fn manager(mut self, field: &str, value: Value) -> Self {
        self.manager.insert(field.to_owned(), value);
        self
    }

    /// Adds a route, in Envoy's JSON, before the one for all paths.
    pub fn route(mut self, route: Value) -> Self {
        self.routes.push(route);
        self
    }

    /// Adds a virtual host, in Envoy's JSON, before the one for all hosts.
    pub fn virtual_host(mut self, virtual_host: Value) -> Self {
        self.virtual_hosts.push(virtual_host);
        self
    }

    /// The listener in Envoy's JSON, without the filters of a plugin that is delivered by itself.
    pub(super) fn render(&self, place: &Place<'_>) -> Value {
        let mut filters = self.filters_before.clone();
        match (&place.discovered, &self.filter) {
            (Some(discovered), _) => filters.push(discovered.clone()),
            (None, Some(configuration)) => filters.push(wasm_filter(place.plugin, configuration, place.wasm)),
            (None, None) => {}
        }
        filters.push(json!({
            "name": "envoy.filters.http.router",
            "typed_config": { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
        }));
        json!({
            "name": place.name,
            "address": address(any_port()),
            "filter_chains": [{ "filters": [{
                "name": "envoy.filters.network.http_connection_manager",
                "typed_config": self.render_manager(&filters, place),
            }] }],
        })
    }

    fn render_manager(&self, filters: &[Value], place: &Place<'_>) -> Value {
        let mut virtual_hosts = self.virtual_hosts.clone();
        virtual_hosts.push(json!({ "name": "all", "domains": ["*"], "routes": self.render_routes(place) }));
        let mut manager = json!({
            "@type": HTTP_CONNECTION_MANAGER,
            "stat_prefix": "ingress",
            "use_remote_address": true,
            "normalize_path": true,
            "merge_slashes": true,
            // Large enough for the 60 KB header that a test sends.
            "max_request_headers_kb": 96,
            // How long a connection that says `connection: close` lingers after its last byte; the
            // default is a second, which every raw request would wait for.
            "delayed_close_timeout": "0s",
            "stream_idle_timeout": place.stream_idle_timeout,
            "access_log": place.access_log.iter().map(|path| access_log(path)).collect::<Vec<_>>(),
            "http_filters": filters,
            "route_config": { "name": "test", "virtual_hosts": virtual_hosts },
        });
        for (field, value) in &self.manager {
            manager[field] = value.clone();
        }
        manager
    }

    fn render_routes(&self, place: &Place<'_>) -> Vec<Value> {
        let mut routes = self.routes.clone();
        let mut last = json!({ "name": "catch-all", "match": { "prefix": "/" } });
        if place.has_upstream {
            last["route"] = json!({ "cluster": "upstream" });
        } else {
            last["direct_response"] = json!({ "status": 200, "body": { "inline_string": "admitted\n" } });
        }
        routes.push(last);
        routes
    }
}

/// What a listener is told by the Envoy that it is a part of.
#[derive(Debug)]
pub(super) struct Place<'a> {
    pub(super) name: &'a str,
    /// The name and root id of the plugin, by which its state is told from others'.
    pub(super) plugin: &'a str,
    pub(super) wasm: &'a Path,
    /// The filter as one that is delivered by itself.
    pub(super) discovered: Option<Value>,
    pub(super) access_log: Option<String>,
    pub(super) stream_idle_timeout: &'a str,
    pub(super) has_upstream: bool,
}

const ACCESS_LOG_FORMAT: &str = "%RESPONSE_CODE% %RESPONSE_CODE_DETAILS%\n";

fn access_log(path: &str) -> Value {
    json!({
        "name": "envoy.access_loggers.file",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
            "path": path,
            "log_format": { "text_format_source": { "inline_string": ACCESS_LOG_FORMAT } },
        },
    })
}
