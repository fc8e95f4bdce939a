//! How an Envoy under test is put together and started.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::bootstrap::{Bootstrap, COMPANION_CLUSTER, CompanionAt};
use super::listener::Listener;
use super::reload::{Delivery, Source};
use super::{Envoy, admin};
use crate::binaries;
use crate::logs::Logs;
use crate::module::Module;
use crate::process::{Process, Program};
use crate::wait::START_DEADLINE;

/// Collects what differs from a plain Envoy; see [`Envoy::builder`].
#[derive(Debug)]
#[must_use]
pub struct EnvoyBuilder {
    bootstrap: Bootstrap,
    module: Module,
    workers: u32,
    log_level: String,
    wasm_log_level: String,
}

impl Default for EnvoyBuilder {
    fn default() -> Self {
        let bootstrap = Bootstrap {
            listener: Listener::default(),
            others: Vec::new(),
            companion: CompanionAt::NoCluster,
            companion_name: COMPANION_CLUSTER.to_owned(),
            companion_http1: false,
            companion_max_requests: None,
            upstream: None,
            clusters: Vec::new(),
            runtime: Map::new(),
            stream_idle_timeout: "5s".to_owned(),
            has_access_log: true,
            delivery: Delivery::AtStart,
        };
        Self {
            bootstrap,
            module: Module::Shipped,
            workers: 1,
            log_level: "warn".to_owned(),
            wasm_log_level: "info".to_owned(),
        }
    }
}

impl EnvoyBuilder {
    /// Adds the filter with this plugin configuration.
    pub fn filter(self, configuration: &Value) -> Self {
        self.filter_text(&configuration.to_string())
    }

    /// Adds the filter with a plugin configuration that need not be JSON.
    pub fn filter_text(mut self, configuration: &str) -> Self {
        self.bootstrap.listener.filter = Some(configuration.to_owned());
        self
    }

    /// Runs another module than the filter as it is shipped.
    pub fn module(mut self, module: Module) -> Self {
        self.module = module;
        self
    }

    /// How the filter's configuration comes to Envoy, which can be another one later where it does not come at
    /// the start: [`Envoy::reload`].
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.bootstrap.delivery = delivery;
        self
    }

    /// How many worker threads serve requests; 1 unless said.
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = workers;
        self
    }

    /// Where the companion's cluster leads; an address will do.
    pub fn companion(mut self, companion: impl Into<CompanionAt>) -> Self {
        self.bootstrap.companion = companion.into();
        self
    }

    /// Calls the companion's cluster by another name than `tidegate`.
    pub fn companion_named(mut self, name: &str) -> Self {
        name.clone_into(&mut self.bootstrap.companion_name);
        self
    }

    /// Speaks HTTP/1.1 to the companion, for one that is written byte by byte.
    pub fn http1_to_companion(mut self) -> Self {
        self.bootstrap.companion_http1 = true;
        self
    }

    /// Limits the calls under way to the companion (Envoy's circuit breaker).
    pub fn max_requests_to_companion(mut self, max: u32) -> Self {
        self.bootstrap.companion_max_requests = Some(max);
        self
    }

    /// Forwards to this server instead of answering 200 itself.
    pub fn upstream(mut self, addr: SocketAddr) -> Self {
        self.bootstrap.upstream = Some(addr);
        self
    }

    /// Adds a route, in Envoy's JSON, before the one for all paths.
    pub fn route(mut self, route: Value) -> Self {
        self.bootstrap.listener = self.bootstrap.listener.route(route);
        self
    }

    /// Sets a field of the HTTP connection manager, such as `normalize_path`.
    pub fn manager(mut self, field: &str, value: Value) -> Self {
        self.bootstrap.listener = self.bootstrap.listener.manager(field, value);
        self
    }

    /// Adds a listener; see [`Envoy::addr_of`].
    pub fn listener(mut self, listener: Listener) -> Self {
        self.bootstrap.others.push(listener);
        self
    }

    /// Adds a cluster of this name that leads to this address.
    pub fn cluster(mut self, name: &str, addr: SocketAddr) -> Self {
        self.bootstrap.clusters.push((name.to_owned(), addr));
        self
    }

    /// Sets one of Envoy's runtime flags.
    pub fn runtime(mut self, flag: &str, value: Value) -> Self {
        self.bootstrap.runtime.insert(flag.to_owned(), value);
        self
    }

    /// When Envoy gives a silent stream up, such as `"5s"`, which is what holds unless said.
    pub fn stream_idle_timeout(mut self, timeout: &str) -> Self {
        timeout.clone_into(&mut self.bootstrap.stream_idle_timeout);
        self
    }

    /// Writes no access log, for a test of more requests than anybody reads of.
    pub fn without_access_log(mut self) -> Self {
        self.bootstrap.has_access_log = false;
        self
    }

    /// Envoy's log level; `warn` unless said. The filter's own log is shown from `info` on.
    pub fn log_level(mut self, level: &str) -> Self {
        level.clone_into(&mut self.log_level);
        self
    }

    /// Logs every call between Envoy and the filter, in both directions.
    pub fn trace_host_calls(mut self) -> Self {
        "trace".clone_into(&mut self.wasm_log_level);
        self
    }

    /// Starts Envoy and waits until its listener takes requests.
    pub async fn start(self) -> Envoy {
        let (mut process, source) = self.spawn();
        let address_file = process.folder().join(ADMIN_ADDRESS);
        let count = 1 + source.bootstrap.others.len();
        let (admin, listeners) = process
            .ready("Envoy's listener", START_DEADLINE, async || {
                let admin = std::fs::read_to_string(&address_file).ok()?.parse().ok()?;
                Some((admin, admin::ready_listeners(admin, count).await?))
            })
            .await;
        Envoy::new(process, source, admin, listeners)
    }

    /// Starts an Envoy that must not load, and returns what it printed before it ended.
    pub async fn expect_refused(self) -> String {
        let (mut process, _) = self.spawn();
        let status = process.exited(START_DEADLINE).await;
        assert!(!status.success(), "Envoy ended without an error");
        process.log()
    }

    fn spawn(self) -> (Process, Source) {
        let logs = Logs::new("envoy");
        let has_filter = self.bootstrap.has_filter();
        let wasm = if has_filter { self.module.file(logs.folder()) } else { PathBuf::new() };
        let file = logs.folder().join("envoy.json");
        std::fs::write(&file, self.bootstrap.render(&wasm, logs.folder()).to_string())
            .expect("the configuration can be written");
        let source = Source { bootstrap: self.bootstrap, wasm, version: 1 };
        source.deliver(logs.folder());
        let program = Program::new(binaries::envoy())
            .arg("--config-path", file)
            .arg("--admin-address-path", ADMIN_ADDRESS)
            .arg("--concurrency", self.workers.to_string())
            .arg("--log-level", self.log_level)
            .arg("--component-log-level", format!("wasm:{}", self.wasm_log_level))
            // The access log is looked at by tests; ten seconds, Envoy's default, is long for them.
            .arg("--file-flush-interval-msec", "50")
            // What Envoys on one machine would share is what hot restart needs, and no test does.
            .args(["--disable-hot-restart"])
            // Connections of a listener that was replaced end soon, and so does its configuration.
            .args(["--drain-time-s", "1"]);
        (Process::start_in(logs, program), source)
    }
}

/// The file, in the folder of the process, in which Envoy tells the port that it chose.
const ADMIN_ADDRESS: &str = "admin.address";
