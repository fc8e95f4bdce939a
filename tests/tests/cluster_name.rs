//! The companion's cluster may be called what Istio calls it.

use harness::{Companion, Envoy, Store, StoreKind};
use serde_json::json;

const ISTIO: &str = "outbound|8081||tidegate.ratelimit.svc.cluster.local";

#[tokio::test]
async fn a_cluster_by_istios_name_is_reached_over_http2() {
    let store = Store::start(StoreKind::Memory).await;
    let companion = Companion::start(&store).await;
    let config = json!({
        "companion": { "cluster": ISTIO, "timeout": "10s" },
        "policies": [{
            "name": "p",
            "key": [{ "header": "x-api-key" }],
            "limit": { "token_bucket": { "capacity": 2, "rate": "1/d" } },
            "sync": "exact",
            "on_failure": { "closed": { "retry_after": "5s" } },
        }],
    });
    let builder = Envoy::builder().filter(&config).companion(companion.addr()).companion_named(ISTIO);
    let envoy = builder.start().await;
    let mut statuses = Vec::new();
    for _ in 0..3 {
        statuses.push(envoy.send("GET", "/", &[("x-api-key", "k")]).await.status);
    }
    assert_eq!(statuses, [200, 200, 429]);
}
