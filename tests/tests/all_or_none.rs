//! A request is charged on all its policies or on none: what a policy has left does not change when
//! another policy refuses.

use std::sync::Arc;

use harness::{Answer, Companion, Envoy, Store, StoreKind, plugin};
use serde_json::{Value, json};
use tokio::task::JoinSet;

const WIDE: u64 = 100;
const REFUSED: usize = 5;
const CLIENTS: usize = 20;

/// Two policies of one request, one with room and one with a single token.
#[derive(Debug, Clone, Copy)]
struct Pair {
    wide: &'static str,
    narrow: &'static str,
    narrow_first: bool,
}

impl Pair {
    fn all() -> Vec<Self> {
        let mut pairs = Vec::new();
        for wide in ["local", "exact"] {
            for narrow in ["local", "exact"] {
                pairs.extend([false, true].map(|narrow_first| Self { wide, narrow, narrow_first }));
            }
        }
        pairs
    }

    /// Distinguishes the policies and the paths of the pairs.
    fn name(&self) -> String {
        let Self { wide, narrow, narrow_first } = self;
        if *narrow_first { format!("{narrow}-before-{wide}") } else { format!("{narrow}-after-{wide}") }
    }

    fn wide_policy(&self) -> String {
        format!("wide-{}", self.name())
    }

    fn narrow_policy(&self) -> String {
        format!("narrow-{}", self.name())
    }

    /// The path under which both policies apply; under `/NAME/` the wide one does.
    fn narrow_path(&self) -> String {
        format!("/{}/narrow", self.name())
    }

    fn wide_path(&self) -> String {
        format!("/{}/wide", self.name())
    }

    fn policies(&self) -> [Value; 2] {
        let policy = |name: String, path: Value, capacity: u64, sync: &str| {
            let mut policy = json!({
                "name": name,
                "match": { "path": path },
                "key": [{ "header": "x-api-key" }],
                "limit": { "token_bucket": { "capacity": capacity, "rate": "1/d" } },
                "sync": sync,
            });
            if sync == "exact" {
                policy["on_failure"] = json!({ "closed": { "retry_after": "1s" } });
            }
            policy
        };
        let wide =
            policy(self.wide_policy(), json!({ "prefix": format!("/{}/", self.name()) }), WIDE, self.wide);
        let narrow = policy(self.narrow_policy(), json!({ "exact": self.narrow_path() }), 1, self.narrow);
        if self.narrow_first { [narrow, wide] } else { [wide, narrow] }
    }
}

/// An Envoy with the policies of all pairs.
async fn start(kind: StoreKind) -> (Store, Companion, Arc<Envoy>) {
    let store = Store::start(kind).await;
    let companion = Companion::builder(&store.url()).store_timeout("5s").start().await;
    let policies: Vec<Value> = Pair::all().iter().flat_map(Pair::policies).collect();
    let builder = Envoy::builder().filter(&plugin(json!(policies))).companion(companion.addr()).workers(2);
    (store, companion, Arc::new(builder.start().await))
}

async fn get(envoy: &Envoy, path: &str, client: &str) -> Answer {
    envoy.send("GET", path, &[("x-api-key", client)]).await
}

#[tokio::test]
async fn a_refused_policy_charges_nothing_on_the_other() {
    for kind in [StoreKind::Memory, StoreKind::Valkey] {
        let (_store, _companion, envoy) = start(kind).await;
        for pair in Pair::all() {
            let (wide, narrow) = (pair.wide_policy(), pair.narrow_policy());
            let left = |answer: &Answer| (answer.status, answer.remaining(&wide), answer.remaining(&narrow));

            let admitted = left(&get(&envoy, &pair.narrow_path(), "one").await);
            let mut refused = Vec::new();
            for _ in 0..REFUSED {
                refused.push(left(&get(&envoy, &pair.narrow_path(), "one").await));
            }
            let after = left(&get(&envoy, &pair.wide_path(), "one").await);

            println!(
                "{kind:?}, {}: status and left of wide and narrow {admitted:?}, {REFUSED} times {:?}, then {after:?}",
                pair.name(),
                refused[0]
            );
            assert_eq!(admitted, (200, Some(WIDE - 1), Some(0)), "{kind:?}, {pair:?}: charged on both");
            assert_eq!(refused, [(429, None, Some(0)); REFUSED], "{kind:?}, {pair:?}: tells of the violated");
            assert_eq!(after, (200, Some(WIDE - 2), None), "{kind:?}, {pair:?}: refusals charged nothing");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_refusals_charge_nothing_on_the_other() {
    for kind in [StoreKind::Memory, StoreKind::Valkey] {
        let (_store, _companion, envoy) = start(kind).await;
        for pair in Pair::all() {
            let mut clients = JoinSet::new();
            for _ in 0..CLIENTS {
                let envoy = Arc::clone(&envoy);
                clients.spawn(async move { get(&envoy, &pair.narrow_path(), "many").await.status });
            }
            let statuses = clients.join_all().await;
            let admitted = statuses.iter().filter(|status| **status == 200).count();
            let refused = statuses.iter().filter(|status| **status == 429).count();
            let after = get(&envoy, &pair.wide_path(), "many").await.remaining(&pair.wide_policy());
            println!(
                "{kind:?}, {}: {admitted} admitted and {refused} refused at once, then wide has {after:?} left",
                pair.name()
            );
            assert_eq!((admitted, refused), (1, CLIENTS - 1), "{kind:?}, {pair:?}");
            assert_eq!(after, Some(WIDE - 2), "{kind:?}, {pair:?}");
        }
    }
}
