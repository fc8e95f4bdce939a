//! What Envoy's admin interface tells: readiness, counters, and the state of the filter's VMs.

use std::net::SocketAddr;

use serde_json::Value;

use super::{Envoy, bootstrap};
use crate::answer::{Answer, client};

/// What Envoy logs when the filter traps, as in `Function: proxy_on_request_headers failed: Uncaught …`.
const VM_FAILURE: &str = " failed: Uncaught";

/// Envoy counts `vm_reload`, `vm_reload_backoff`, `vm_reload_success` and `vm_reload_failure`, each
/// when the first request after a crash comes: a VM that died in its last callback is not in them.
const VM_RELOADS: &str = "wasm.tidegate.vm_reload";

/// Memory in use, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// All of the process, as the kernel counts it.
    pub resident: u64,
    /// What Envoy's own allocator has given out: without the memory of the filter's VMs.
    pub allocated: u64,
}

/// The addresses of so many listeners, once they take requests.
pub(super) async fn ready_listeners(admin: SocketAddr, count: usize) -> Option<Vec<SocketAddr>> {
    let client = client();
    let ready = Answer::try_receive(client.get(format!("http://{admin}/ready"))).await.ok()?;
    if ready.status != 200 {
        return None;
    }
    let listeners =
        Answer::try_receive(client.get(format!("http://{admin}/listeners?format=json"))).await.ok()?.json();
    let all = listeners["listener_statuses"].as_array()?;
    let named = |name: &str| {
        let ours = all.iter().find(|listener| listener["name"] == name)?;
        let address = &ours["local_address"]["socket_address"];
        let port = u16::try_from(address["port_value"].as_u64()?).ok()?;
        Some(SocketAddr::new(address["address"].as_str()?.parse().ok()?, port))
    };
    (0..count).map(|index| named(&bootstrap::listener_name(index))).collect()
}

impl Envoy {
    /// A counter or gauge by its full name; 0 where Envoy does not have it yet. The filter's own
    /// metrics are named `wasmcustom.NAME`.
    pub async fn counter(&self, name: &str) -> u64 {
        self.stats()
            .await
            .into_iter()
            .find_map(|(found, value)| (found == name).then_some(value))
            .unwrap_or(0)
    }

    /// All counters and gauges.
    pub async fn stats(&self) -> Vec<(String, u64)> {
        let stats = self.admin("/stats?format=json").await.json();
        let all = stats["stats"].as_array().expect("the statistics are a list");
        all.iter().filter_map(name_and_value).collect()
    }

    /// The memory that Envoy has in use at present.
    pub async fn memory(&self) -> Memory {
        let told = self.admin("/memory").await.json();
        let allocated = told["allocated"].as_str().and_then(|number| number.parse().ok());
        Memory {
            resident: self.process.resident_bytes(),
            allocated: allocated.unwrap_or_else(|| panic!("no memory in {told}")),
        }
    }

    /// How often a VM of the filter has died, by Envoy's log, which tells it at once.
    pub fn vm_crashes(&self) -> usize {
        self.log().lines().filter(|line| line.contains("[wasm]") && line.contains(VM_FAILURE)).count()
    }

    /// How often Envoy has made a new VM for a dead one, tried to, or held a request off meanwhile.
    pub async fn vm_reloads(&self) -> u64 {
        let stats = self.stats().await;
        stats.iter().filter(|(name, _)| name.starts_with(VM_RELOADS)).map(|(_, value)| value).sum()
    }

    /// Fails the test if a VM of the filter has died, by the log or by the statistics.
    pub async fn assert_no_vm_crash(&self) {
        assert_eq!(self.vm_crashes(), 0, "a VM of the filter has died; see Envoy's log");
        assert_eq!(self.vm_reloads().await, 0, "a VM of the filter has been replaced; see Envoy's log");
    }

    /// Gets a path of the admin interface.
    pub async fn admin(&self, path: &str) -> Answer {
        Answer::receive(self.client.get(format!("http://{}{path}", self.admin))).await
    }
}

/// Histograms have no single value and are left out.
fn name_and_value(stat: &Value) -> Option<(String, u64)> {
    Some((stat["name"].as_str()?.to_owned(), stat["value"].as_u64()?))
}
