//! The configuration that an Envoy under test is started with.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use super::reload::Delivery;

/// The access log, in the folder of the process.
pub(super) const ACCESS_LOG: &str = "access.log";

const ACCESS_LOG_FORMAT: &str = "%RESPONSE_CODE% %RESPONSE_CODE_DETAILS%\n";

/// The name of the listener, by which the admin interface tells its port.
pub(super) const LISTENER: &str = "under_test";

/// The name that plugin configurations give the companion's cluster.
pub(super) const COMPANION_CLUSTER: &str = "tidegate";

/// The name of the filter, under which Envoy counts what is delivered of it.
const FILTER: &str = "tidegate";

const WASM: &str = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";

const HTTP_CONNECTION_MANAGER: &str =
    "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";

/// Where the cluster `tidegate` of an Envoy leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CompanionAt {
    /// There is no such cluster.
    #[default]
    NoCluster,
    /// The cluster has no endpoint.
    NoEndpoint,
    /// The cluster has this endpoint, whether somebody listens there or not.
    Addr(SocketAddr),
}

impl From<SocketAddr> for CompanionAt {
    fn from(addr: SocketAddr) -> Self {
        Self::Addr(addr)
    }
}

/// What can differ between the Envoys of the tests.
#[derive(Debug)]
pub(super) struct Bootstrap {
    /// The plugin configuration as Envoy hands it over; `None` leaves the filter out.
    pub(super) filter: Option<String>,
    pub(super) companion: CompanionAt,
    pub(super) companion_name: String,
    pub(super) companion_http1: bool,
    pub(super) companion_max_requests: Option<u32>,
    pub(super) upstream: Option<SocketAddr>,
    pub(super) routes: Vec<Value>,
    pub(super) stream_idle_timeout: String,
    pub(super) has_access_log: bool,
    pub(super) delivery: Delivery,
}

impl Bootstrap {
    /// The whole file. Envoy chooses the ports itself. `folder` is where it finds what is delivered later.
    pub(super) fn render(&self, wasm: &Path, folder: &Path) -> Value {
        let mut clusters = Vec::new();
        if let Some(addr) = self.upstream {
            clusters.push(cluster("upstream", Some(addr)));
        }
        clusters.extend(self.companion_cluster());
        let mut bootstrap = json!({
            "node": { "id": "test-proxy", "cluster": "test" },
            "admin": { "address": address(SocketAddr::from(([127, 0, 0, 1], 0))) },
            "static_resources": { "clusters": clusters },
        });
        let source = json!({ "path_config_source": { "path": folder.join(Delivery::FILE) } });
        match self.delivery {
            Delivery::AtStart => {
                let filter = self.filter.iter().map(|configuration| wasm_filter(configuration, wasm));
                bootstrap["static_resources"]["listeners"] = json!([self.listener(filter.collect())]);
            }
            Delivery::Listener => bootstrap["dynamic_resources"] = json!({ "lds_config": source }),
            Delivery::Extension => {
                let discovered = json!({
                    "name": FILTER,
                    "config_discovery": { "config_source": source, "type_urls": [WASM] },
                });
                bootstrap["static_resources"]["listeners"] = json!([self.listener(vec![discovered])]);
            }
        }
        bootstrap
    }

    /// What Envoy finds in the file that it watches, if it watches one.
    pub(super) fn delivered(&self, wasm: &Path) -> Option<Value> {
        let mut filter = self.filter.iter().map(|configuration| wasm_filter(configuration, wasm));
        match self.delivery {
            Delivery::AtStart => None,
            Delivery::Listener => {
                let mut listener = self.listener(filter.collect());
                listener["@type"] = json!("type.googleapis.com/envoy.config.listener.v3.Listener");
                Some(listener)
            }
            Delivery::Extension => {
                let mut filter = filter.next_back().expect("a filter is what is delivered");
                filter["@type"] = json!("type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig");
                Some(filter)
            }
        }
    }

    fn listener(&self, mut http_filters: Vec<Value>) -> Value {
        http_filters.push(json!({
            "name": "envoy.filters.http.router",
            "typed_config": { "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router" },
        }));
        let access_log = if self.has_access_log { vec![access_log()] } else { Vec::new() };
        let manager = json!({
            "@type": HTTP_CONNECTION_MANAGER,
            "stat_prefix": "ingress",
            "use_remote_address": true,
            "normalize_path": true,
            "merge_slashes": true,
            // Large enough for the 60 KB header that a test sends.
            "max_request_headers_kb": 96,
            // How long a connection that says `connection: close` lingers after its last byte; the
            // default is a second, which every raw request would wait for.
            "delayed_close_timeout": "0.05s",
            "stream_idle_timeout": self.stream_idle_timeout,
            "access_log": access_log,
            "http_filters": http_filters,
            "route_config": {
                "name": "test",
                "virtual_hosts": [{ "name": "all", "domains": ["*"], "routes": self.routes() }],
            },
        });
        json!({
            "name": LISTENER,
            "address": address(SocketAddr::from(([127, 0, 0, 1], 0))),
            "filter_chains": [{ "filters": [{
                "name": "envoy.filters.network.http_connection_manager",
                "typed_config": manager,
            }] }],
        })
    }

    fn routes(&self) -> Vec<Value> {
        let mut routes = self.routes.clone();
        let mut last = json!({ "name": "catch-all", "match": { "prefix": "/" } });
        if self.upstream.is_some() {
            last["route"] = json!({ "cluster": "upstream" });
        } else {
            last["direct_response"] = json!({ "status": 200, "body": { "inline_string": "admitted\n" } });
        }
        routes.push(last);
        routes
    }

    fn companion_cluster(&self) -> Option<Value> {
        let mut cluster = match self.companion {
            CompanionAt::NoCluster => return None,
            CompanionAt::NoEndpoint => cluster(&self.companion_name, None),
            CompanionAt::Addr(addr) => cluster(&self.companion_name, Some(addr)),
        };
        if !self.companion_http1 {
            cluster["typed_extension_protocol_options"] = json!({
                "envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
                    "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
                    "explicit_http_config": { "http2_protocol_options": {} },
                },
            });
        }
        if let Some(max) = self.companion_max_requests {
            cluster["circuit_breakers"] =
                json!({ "thresholds": [{ "max_requests": max, "max_pending_requests": max }] });
        }
        Some(cluster)
    }
}

fn wasm_filter(configuration: &str, wasm: &Path) -> Value {
    json!({
        "name": FILTER,
        "typed_config": {
            "@type": WASM,
            "config": {
                "name": "tidegate",
                "root_id": "tidegate",
                "failure_policy": "FAIL_RELOAD",
                "configuration": {
                    "@type": "type.googleapis.com/google.protobuf.StringValue",
                    "value": configuration,
                },
                "vm_config": {
                    "vm_id": "tidegate",
                    "runtime": "envoy.wasm.runtime.v8",
                    "code": { "local": { "filename": wasm } },
                },
            },
        },
    })
}

fn access_log() -> Value {
    json!({
        "name": "envoy.access_loggers.file",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.access_loggers.file.v3.FileAccessLog",
            "path": ACCESS_LOG,
            "log_format": { "text_format_source": { "inline_string": ACCESS_LOG_FORMAT } },
        },
    })
}

fn cluster(name: &str, endpoint: Option<SocketAddr>) -> Value {
    let endpoints: Vec<Value> =
        endpoint.iter().map(|addr| json!({ "endpoint": { "address": address(*addr) } })).collect();
    json!({
        "name": name,
        "type": "STATIC",
        "connect_timeout": "0.25s",
        "load_assignment": { "cluster_name": name, "endpoints": [{ "lb_endpoints": endpoints }] },
    })
}

fn address(addr: SocketAddr) -> Value {
    json!({ "socket_address": { "address": addr.ip().to_string(), "port_value": addr.port() } })
}
