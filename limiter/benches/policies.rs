//! What policies that do not apply cost a request: two that do, alone and among fifty. Fifty may take twice the time.
//!
//! `make bench-core` runs it; what is read from the proxy is `tests/few_of_many.rs`'s.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "not the core")]

#[path = "../tests/gateway/mod.rs"]
mod gateway;

use std::hint::black_box;
use std::path::Path;

use criterion::Criterion;
use limiter::policies::Policies;
use limiter::request::demands;

/// The most that fifty policies may take, of what two take.
const MOST: f64 = 2.0;

fn main() {
    let results = Path::new(env!("CARGO_TARGET_TMPDIR")).join("criterion");
    let mut criterion = Criterion::default().output_directory(&results).configure_from_args();
    let mut measure = |name: &str, policies: &Policies| {
        let mut request = gateway::request();
        criterion.bench_function(name, |bench| {
            bench.iter(|| demands(policies, black_box(&mut request), 0).map(black_box).count());
        });
        let estimates = std::fs::read_to_string(results.join(name).join("new/estimates.json"));
        // Where it is only tried, as by `cargo test`, nothing is measured.
        let estimates: Option<serde_json::Value> =
            estimates.ok().and_then(|text| serde_json::from_str(&text).ok());
        estimates.and_then(|estimates| estimates.pointer("/median/point_estimate")?.as_f64())
    };
    let few = measure("two-policies", &gateway::two());
    let many = measure("two-of-fifty-policies", &gateway::fifty());
    let (Some(few), Some(many)) = (few, many) else { return };
    let ratio = many / few;
    println!(
        "two policies: {few:.0} ns; the same two of fifty: {many:.0} ns; ratio: {ratio:.2}, at most {MOST}"
    );
    assert!(ratio <= MOST, "policies that do not apply cost too much");
}
