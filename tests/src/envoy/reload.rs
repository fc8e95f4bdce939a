//! Another plugin configuration for a running Envoy, delivered as a control plane does it, but from files: one
//! is replaced by a rename, Envoy reads it, and its counters tell whether it was taken.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};

use super::Envoy;
use super::bootstrap::Bootstrap;
use crate::answer::{client, client_of_new_connections};
use crate::wait::until;

/// Longer than a busy machine takes to start the filter's VMs once more.
const DEADLINE: Duration = Duration::from_secs(30);

/// How the filter's configuration comes to an Envoy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Delivery {
    /// With all else at the start; it stays as it is.
    #[default]
    AtStart,
    /// In the listener (LDS). Another configuration is another listener: connections of the old one are drained.
    Listener,
    /// By itself (ECDS), as Istio delivers a `WasmPlugin`. Connections stay.
    Extension,
}

/// Envoy has refused a configuration and goes on with the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

impl Delivery {
    /// The file, in the folder of the process, that Envoy watches.
    pub(super) const FILE: &str = "delivered.json";

    /// The counters of what was taken and of what was refused.
    fn counters(self) -> (&'static str, &'static str) {
        match self {
            Self::AtStart => {
                panic!("this Envoy's configuration stays as it is; say Envoy::builder().delivery(…)")
            }
            Self::Listener => ("listener_manager.lds.update_success", "listener_manager.lds.update_rejected"),
            Self::Extension => (
                "extension_config_discovery.http_filter.tidegate.config_reload",
                "extension_config_discovery.http_filter.tidegate.config_fail",
            ),
        }
    }
}

/// What an Envoy's configuration is made of, to make the next one.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) bootstrap: Bootstrap,
    pub(super) wasm: PathBuf,
    pub(super) version: u64,
}

impl Source {
    /// A client for an Envoy that was made of this.
    pub(super) fn client(&self) -> reqwest::Client {
        match self.bootstrap.delivery {
            // A listener that is replaced drains its connections.
            Delivery::Listener => client_of_new_connections(),
            Delivery::AtStart | Delivery::Extension => client(),
        }
    }

    /// Puts what Envoy is to read in the place of what it has read, at once.
    pub(super) fn deliver(&self, folder: &Path) {
        let Some(resource) = self.bootstrap.delivered(&self.wasm) else { return };
        let response = json!({ "version_info": self.version.to_string(), "resources": [resource] });
        let next = folder.join("delivered.next");
        std::fs::write(&next, response.to_string()).expect("the configuration can be written");
        std::fs::rename(&next, folder.join(Delivery::FILE)).expect("a file can be renamed");
    }
}

impl Envoy {
    /// Gives Envoy another plugin configuration and waits until it has taken it. Its workers take it a moment
    /// later, each for itself. From here on this value's requests use new connections: those of before may go
    /// on under the old configuration for a while.
    pub async fn reload(&mut self, configuration: &Value) {
        let taken = self.try_reload(&configuration.to_string()).await;
        taken.expect("Envoy takes the configuration");
        self.client = self.source.client();
    }

    /// The same for a configuration that Envoy may refuse.
    pub async fn try_reload(&mut self, configuration: &str) -> Result<(), Refused> {
        let (taken, refused) = self.source.bootstrap.delivery.counters();
        let before = (self.counter(taken).await, self.counter(refused).await);
        self.source.bootstrap.listener.filter = Some(configuration.to_owned());
        self.source.version += 1;
        self.source.deliver(self.process.folder());
        until("Envoy to read its configuration", DEADLINE, async || {
            let stats = self.stats().await;
            let value = |name| stats.iter().find_map(|(found, value)| (found == name).then_some(*value));
            if value(refused).unwrap_or(0) > before.1 {
                return Some(Err(Refused));
            }
            let is_warming = value("listener_manager.total_listeners_warming").unwrap_or(0) > 0;
            (value(taken).unwrap_or(0) > before.0 && !is_warming).then_some(Ok(()))
        })
        .await
    }
}
