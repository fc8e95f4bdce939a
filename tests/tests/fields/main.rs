//! The fields that tell clients how they stand, on the wire, in all families, by token buckets of both
//! sync modes. The vectors are those of `limiter/src/fields/vectors.rs` as far as a token bucket shows them.

mod vectors;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use harness::{Answer, Companion, Envoy, plugin};
use serde_json::{Value, json};

use vectors::Limit::{Blocked, Bucket};
use vectors::{VECTORS, Vector};

/// Two configurations hold all families: `draft-11` and `draft-06` share a field's name.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Families {
    /// With the reset of `x-ratelimit` in seconds from now.
    Draft11,
    /// With the reset of `x-ratelimit` in seconds since 1970.
    Draft06,
}

fn configuration(sync: &str, families: Families) -> Value {
    let policies = VECTORS.iter().flat_map(|vector| {
        vector.policies.iter().map(|(name, limit, cost)| {
            let limit = match limit {
                Bucket(capacity, rate) => json!({ "token_bucket": { "capacity": capacity, "rate": rate } }),
                Blocked => json!("blocked"),
            };
            json!({
                "name": name,
                "match": { "path": { "exact": vector.path } },
                "key": [{ "header": "x-client" }],
                "limit": limit,
                "cost": cost,
                "sync": sync,
            })
        })
    });
    let unlimited =
        json!({ "name": "free", "match": { "path": { "exact": "/vector-16" } }, "limit": "unlimited" });
    let mut configuration = plugin(policies.chain([unlimited]).collect());
    configuration["headers"] = match families {
        Families::Draft11 => json!(["draft-11", "x-ratelimit"]),
        Families::Draft06 => json!(["draft-06", { "x-ratelimit": { "reset": "epoch" } }]),
    };
    configuration
}

#[tokio::test]
async fn every_family_tells_the_vectors_in_both_sync_modes() {
    let companion = Companion::builder("memory").store_timeout("5s").start().await;
    for sync in ["local", "exact"] {
        for families in [Families::Draft11, Families::Draft06] {
            let configuration = configuration(sync, families);
            let envoy = Envoy::builder().filter(&configuration).companion(companion.addr()).start().await;
            println!("{sync}, {}", configuration["headers"]);
            for vector in &VECTORS {
                assert_vector(&envoy, vector, families).await;
            }
            let unlimited = envoy.get("/vector-16").await;
            println!("  /vector-16: {:?}", fields(&unlimited));
            assert_eq!((unlimited.status, fields(&unlimited).len()), (200, 0), "unlimited leaves no trace");
        }
    }
}

/// Vectors 8 and 9 as they are written: a bucket that holds 3, and a cost that never fits, which only a
/// caller of the companion can ask for.
#[tokio::test]
async fn a_bucket_is_the_same_through_envoy_and_through_the_companion() {
    let companion = Companion::builder("memory").store_timeout("5s").start().await;
    let limit = json!({ "token_bucket": { "capacity": 10, "rate": "10/m" } });
    let policy = json!({
        "name": "ops", "key": [{ "header": "x-client" }], "limit": limit, "cost": 5, "sync": "exact",
    });
    let envoy = Envoy::builder().filter(&plugin(json!([policy]))).companion(companion.addr()).start().await;
    let take = |key: &str, cost: u64| json!({ "takes": [{ "charges": [{ "key": key, "limit": limit, "cost": cost }] }] });

    let begun = Instant::now();
    assert_eq!(companion.take(&take("rl:{42}:ops", 7)).await.1["takes"][0]["admitted"], true);
    let answer = envoy.send("GET", "/", &[("x-client", "42")]).await;
    let elapsed = begun.elapsed();
    println!("{} {:?}", answer.status, fields(&answer));
    assert_eq!(answer.status, 429);
    assert_eq!(answer.header("ratelimit-policy").as_deref(), Some(r#""ops";q=10;w=60"#));
    assert_state(&answer.header("ratelimit").expect("the state is told"), r#""ops";r=3;t=12"#, elapsed);
    assert_seconds(number(&answer, "retry-after"), Some(12), elapsed);

    let (status, reply) = companion.take(&take("rl:{43}:ops", 20)).await;
    println!("{status} {reply}");
    let never = json!({ "admitted": false, "charges": [{ "remaining": 10, "full_us": 0 }] });
    assert_eq!((status, &reply["takes"][0]), (200, &never));
}

async fn assert_vector(envoy: &Envoy, vector: &Vector, families: Families) {
    let begun = Instant::now();
    // The companion outlives the Envoys, so each has clients of its own.
    let client = [("x-client", if families == Families::Draft11 { "a" } else { "b" })];
    for _ in 1..vector.requests {
        assert_eq!(envoy.send("GET", vector.path, &client).await.status, 200, "{}", vector.path);
    }
    let asked = unix_now();
    let answer = envoy.send("GET", vector.path, &client).await;
    let (answered, elapsed) = (unix_now(), begun.elapsed());
    println!("  {}: {} {:?}", vector.path, answer.status, fields(&answer));

    assert_eq!(answer.status, vector.status, "{}", vector.path);
    assert_triple(&answer, "x-ratelimit", vector);
    if families == Families::Draft11 {
        assert_eq!(answer.header("ratelimit-policy").as_deref(), Some(vector.policy));
        assert_state(&answer.header("ratelimit").expect("the state is told"), vector.state, elapsed);
        assert_seconds(number(&answer, "x-ratelimit-reset"), vector.triple.2, elapsed);
    } else {
        assert_eq!(answer.header("ratelimit-policy").as_deref(), Some(vector.plain_policy));
        assert_eq!(answer.header("ratelimit"), None, "draft 06 has no such field");
        assert_triple(&answer, "ratelimit", vector);
        assert_seconds(number(&answer, "ratelimit-reset"), vector.triple.2, elapsed);
        let reset = number(&answer, "x-ratelimit-reset");
        assert_eq!(reset.is_some(), vector.triple.2.is_some());
        if let (Some(reset), Some(wait_s)) = (reset, vector.triple.2) {
            let wait = Duration::from_secs(wait_s);
            // A bucket that is told in whole seconds may fill up to one earlier.
            let earliest = (asked + wait).saturating_sub(elapsed + Duration::from_secs(1)).as_secs();
            let latest = (answered + wait).as_secs() + 1;
            assert!((earliest..=latest).contains(&reset), "{earliest} <= {reset} <= {latest}");
        }
    }
    assert_seconds(number(&answer, "retry-after"), vector.retry_after, elapsed);
}

fn assert_triple(answer: &Answer, family: &str, vector: &Vector) {
    let (limit, remaining, _) = vector.triple;
    assert_eq!(number(answer, &format!("{family}-limit")), Some(limit), "{}", vector.path);
    assert_eq!(number(answer, &format!("{family}-remaining")), Some(remaining), "{}", vector.path);
}

/// The field in all but its times, and the times as far as this machine is fast.
fn assert_state(actual: &str, expected: &str, elapsed: Duration) {
    let (actual_rest, actual_times) = times(actual);
    let (expected_rest, expected_times) = times(expected);
    assert_eq!(actual_rest, expected_rest);
    for (actual, expected) in actual_times.into_iter().zip(expected_times) {
        assert_seconds(Some(actual), Some(expected), elapsed);
    }
}

/// Takes the `;t=` parameters out of a field; in their places stay the words.
fn times(field: &str) -> (String, Vec<u64>) {
    let (mut rest, mut times) = (String::new(), Vec::new());
    for (index, part) in field.split(";t=").enumerate() {
        let digits = part.find(|char: char| !char.is_ascii_digit()).unwrap_or(part.len());
        if index > 0 {
            times.push(part[..digits].parse().expect("a time is a number"));
            rest.push_str(";t=");
        }
        rest.push_str(if index > 0 { &part[digits..] } else { part });
    }
    (rest, times)
}

/// Whole seconds, rounded up, of what is left of `expected` after at most `elapsed`.
fn assert_seconds(actual: Option<u64>, expected: Option<u64>, elapsed: Duration) {
    let least = expected.map(|expected| expected.saturating_sub(elapsed.as_secs()).max(1));
    assert!(actual >= least && actual <= expected, "{least:?} <= {actual:?} <= {expected:?}");
}

/// A field that is one number.
fn number(answer: &Answer, name: &str) -> Option<u64> {
    answer.header(name).map(|value| value.parse().unwrap_or_else(|_| panic!("{name} is {value}")))
}

/// All fields that tell of limits.
fn fields(answer: &Answer) -> Vec<String> {
    let told = answer
        .headers
        .iter()
        .filter(|(name, _)| name.as_str().contains("ratelimit") || name.as_str() == "retry-after");
    told.map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))).collect()
}

fn unix_now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970")
}
