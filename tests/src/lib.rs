//! The harness of the end-to-end tests: it starts real Envoys, companions and stores on free
//! ports, breaks them on purpose and ends them by process id.
//!
//! What lives here says how to run things and how to look at them; what Tidegate should do is
//! said by the tests in `tests/tests/`. Three rules hold throughout:
//!
//! - A failing test panics. Every process of a panicking test prints the end of its log, and its
//!   folder is kept.
//! - Nothing sleeps for a fixed time in the hope that something has happened: [`until`] polls
//!   with a deadline.
//! - What was started is ended when its value is dropped, by id, so tests run side by side and
//!   beside anything else on the machine.
//!
//! ```no_run
//! # use harness::{Companion, Envoy, Store, StoreKind};
//! # use serde_json::json;
//! # async fn example() {
//! let store = Store::start(StoreKind::Valkey).await;
//! let companion = Companion::start(&store).await;
//! let envoy = Envoy::builder()
//!     .filter(&json!({ "companion": { "cluster": "tidegate" }, "policies": [] }))
//!     .companion(companion.addr())
//!     .start()
//!     .await;
//! store.stop();
//! let answer = envoy.get("/").await;
//! assert_eq!(answer.status, 200);
//! store.cont();
//! # }
//! ```

mod answer;
mod binaries;
mod check;
mod companion;
mod envoy;
mod fake_companion;
mod flood;
mod load;
mod logs;
mod meter;
mod module;
mod plugin;
mod ports;
mod process;
mod raw;
mod resp;
mod store;
mod upstream;
mod wait;

pub use answer::{Answer, client, client_of_http2};
pub use check::{check, check_lines};
pub use companion::{Companion, CompanionBuilder};
pub use envoy::{
    CompanionAt, Delivery, Envoy, EnvoyBuilder, Listener, Memory, Overhead, Refused, Timed, slowest,
};
pub use fake_companion::{FakeAnswer, FakeCompanion};
pub use flood::{Flooded, flood};
pub use load::{Shot, load};
pub use meter::{fullest_span, slowest_shot_s};
pub use module::Module;
pub use plugin::plugin;
pub use ports::{free_port, refusing_addr};
pub use process::{Process, Program};
pub use raw::raw_request;
pub use resp::{Reply, Resp};
pub use store::{Store, StoreKind};
pub use upstream::{Seen, Upstream};
pub use wait::until;
