//! The configuration that an Envoy under test is started with.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::listener::{Listener, Place};
use super::reload::Delivery;

/// The name of a listener, by which the admin interface tells its port.
pub(super) fn listener_name(index: usize) -> String {
    numbered("under_test", index)
}

/// The access log of a listener, in the folder of the process.
pub(super) fn access_log(index: usize) -> String {
    format!("{}.log", numbered("access", index))
}

/// A name that the first bears as it is, and others with their number.
fn numbered(name: &str, index: usize) -> String {
    if index == 0 { name.to_owned() } else { format!("{name}-{index}") }
}

/// The name that plugin configurations give the companion's cluster.
pub(super) const COMPANION_CLUSTER: &str = "tidegate";

/// The name of the filter, under which Envoy counts what is delivered of it.
const FILTER: &str = "tidegate";

const WASM: &str = "type.googleapis.com/envoy.extensions.filters.http.wasm.v3.Wasm";

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
    /// The listener that [`Envoy::addr`](super::Envoy::addr) is of, whose filter may be delivered later.
    pub(super) listener: Listener,
    /// The listeners beside it.
    pub(super) others: Vec<Listener>,
    pub(super) companion: CompanionAt,
    pub(super) companion_name: String,
    pub(super) companion_http1: bool,
    pub(super) companion_max_requests: Option<u32>,
    pub(super) upstream: Option<SocketAddr>,
    /// Clusters beside the companion's and the upstream's.
    pub(super) clusters: Vec<(String, SocketAddr)>,
    /// Envoy's runtime flags that differ from its defaults.
    pub(super) runtime: Map<String, Value>,
    pub(super) stream_idle_timeout: String,
    pub(super) has_access_log: bool,
    pub(super) delivery: Delivery,
}

impl Bootstrap {
    /// Whether any listener runs the filter.
    pub(super) fn has_filter(&self) -> bool {
        self.listener.filter.is_some() || self.others.iter().any(|listener| listener.filter.is_some())
    }

    /// The whole file. Envoy chooses the ports itself. `folder` is where it finds what is delivered later.
    pub(super) fn render(&self, wasm: &Path, folder: &Path) -> Value {
        let mut clusters = Vec::new();
        if let Some(addr) = self.upstream {
            clusters.push(cluster("upstream", Some(addr)));
        }
        clusters.extend(self.clusters.iter().map(|(name, addr)| cluster(name, Some(*addr))));
        clusters.extend(self.companion_cluster());
        let mut bootstrap = json!({
            "node": { "id": "test-proxy", "cluster": "test" },
            "admin": { "address": address(any_port()) },
            "static_resources": { "clusters": clusters },
            "layered_runtime": { "layers": [{ "name": "test", "static_layer": self.runtime }] },
        });
        let source = json!({ "path_config_source": { "path": folder.join(Delivery::FILE) } });
        let mut listeners = Vec::new();
        match self.delivery {
            Delivery::AtStart => listeners.push(self.listener(0, &self.listener, wasm, None)),
            Delivery::Listener => bootstrap["dynamic_resources"] = json!({ "lds_config": source }),
            Delivery::Extension => {
                let discovered = json!({
                    "name": FILTER,
                    "config_discovery": { "config_source": source, "type_urls": [WASM] },
                });
                listeners.push(self.listener(0, &self.listener, wasm, Some(discovered)));
            }
        }
        let others = self.others.iter().enumerate();
        listeners.extend(others.map(|(index, other)| self.listener(index + 1, other, wasm, None)));
        bootstrap["static_resources"]["listeners"] = json!(listeners);
        bootstrap
    }

    /// What Envoy finds in the file that it watches, if it watches one.
    pub(super) fn delivered(&self, wasm: &Path) -> Option<Value> {
        match self.delivery {
            Delivery::AtStart => None,
            Delivery::Listener => {
                let mut listener = self.listener(0, &self.listener, wasm, None);
                listener["@type"] = json!("type.googleapis.com/envoy.config.listener.v3.Listener");
                Some(listener)
            }
            Delivery::Extension => {
                let configuration = self.listener.filter.as_ref().expect("a filter is what is delivered");
                let mut filter = wasm_filter(FILTER, configuration, wasm);
                filter["@type"] = json!("type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig");
                Some(filter)
            }
        }
    }

    fn listener(&self, index: usize, listener: &Listener, wasm: &Path, discovered: Option<Value>) -> Value {
        listener.render(&Place {
            name: &listener_name(index),
            plugin: &numbered(FILTER, index),
            wasm,
            discovered,
            access_log: self.has_access_log.then(|| access_log(index)),
            stream_idle_timeout: &self.stream_idle_timeout,
            has_upstream: self.upstream.is_some(),
        })
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

/// The filter under a name that tells its state from that of others.
pub(super) fn wasm_filter(plugin: &str, configuration: &str, wasm: &Path) -> Value {
    json!({
        "name": FILTER,
        "typed_config": {
            "@type": WASM,
            "config": {
                "name": plugin,
                "root_id": plugin,
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

/// A free port of the loopback, which Envoy chooses.
pub(super) fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

pub(super) fn address(addr: SocketAddr) -> Value {
    json!({ "socket_address": { "address": addr.ip().to_string(), "port_value": addr.port() } })
}
