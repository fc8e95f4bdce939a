//! What the companion may answer when it is broken, or is something else: the request is decided by
//! `on_failure` in time, and the next one as usual.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use harness::{Envoy, FakeAnswer, FakeCompanion, Overhead};
use serde_json::{Value, json};

use crate::expected::{CAPACITY, Seen, TIMEOUT, config, longest_wait};

/// What an answer's request becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Becomes {
    /// What `on_failure` says.
    Failure,
    /// What the companion said.
    Decided(Seen),
}

/// What marks an answer as the companion's.
pub(crate) const MARKER: (&str, &str) = ("x-tidegate-companion", "v1");

/// What [`good`] says is left.
const LEFT: u64 = 7;

/// An answer that admits every take of the question.
pub(crate) fn good(question: &[u8]) -> FakeAnswer {
    FakeAnswer::http(200, &[MARKER], good_body(question))
}

/// The body of [`good`].
pub(crate) fn good_body(question: &[u8]) -> Vec<u8> {
    let question: Value = serde_json::from_slice(question).expect("the filter asks in JSON");
    let takes: Vec<Value> =
        question["takes"].as_array().expect("a batch of takes").iter().map(admit).collect();
    json!({ "takes": takes }).to_string().into_bytes()
}

fn admit(take: &Value) -> Value {
    let charges = take["charges"].as_array().expect("a take has charges");
    let standing = json!({ "remaining": LEFT, "wait_us": 0, "full_us": 1_000_000 });
    json!({ "admitted": true, "charges": vec![standing; charges.len()] })
}

/// An answer with this JSON.
fn json_of(body: &str) -> FakeAnswer {
    FakeAnswer::http(200, &[MARKER], body)
}

/// An answer that admits a single take whose one charge has these fields.
fn charge(fields: &str) -> FakeAnswer {
    json_of(&format!(r#"{{"takes":[{{"admitted":true,"charges":[{{{fields}}}]}}]}}"#))
}

/// Every answer by what is wrong with it, for a question of one take with one charge.
fn bad_answers() -> Vec<(&'static str, FakeAnswer, Becomes)> {
    let good_json = r#"{"takes":[{"admitted":true,"charges":[{"remaining":7,"wait_us":0,"full_us":1}]}]}"#;
    let whole = || json_of(good_json);
    let with = |status, headers: &[(&str, &str)]| FakeAnswer::http(status, headers, good_json);
    let large = [vec![b' '; 10_000_000], good_json.as_bytes().to_vec()].concat();
    let nested = "[".repeat(100_000);
    let deep = format!(r#""deep":{}{}"#, "[".repeat(50_000), "]".repeat(50_000));
    let failures = [
        // Not an answer at all.
        ("nothing, closed", FakeAnswer::close()),
        ("nothing, open", FakeAnswer::silence()),
        ("not HTTP", FakeAnswer::bytes(b"\x00\xffnot HTTP\r\n\r\n".to_vec())),
        ("late", whole().late_by(TIMEOUT + Duration::from_millis(100))),
        ("cut in the headers", whole().cut_short_by(good_json.len() + 20)),
        ("cut in the body", whole().cut_short_by(good_json.len() / 2)),
        (
            "a body that does not end",
            FakeAnswer::http_of_length(200, &[MARKER], good_json, good_json.len() + 1),
        ),
        ("a header of 100 kB", with(200, &[MARKER, ("x-large", &"x".repeat(100_000))])),
        ("a bad chunk", FakeAnswer::bytes("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n")),
        // Not the companion's.
        ("no marker", with(200, &[])),
        ("an empty marker", with(200, &[(MARKER.0, "")])),
        ("another version", with(200, &[(MARKER.0, "v2")])),
        ("status 500", with(500, &[MARKER])),
        ("status 429", with(429, &[MARKER])),
        ("status 302", with(302, &[MARKER, ("location", "/")])),
        ("status 204", FakeAnswer::bytes("HTTP/1.1 204 None\r\nx-tidegate-companion: v1\r\n\r\n")),
        // Not a reply.
        ("an empty body", json_of("")),
        ("garbage", json_of("\u{1}\u{7f}{{{")),
        ("not UTF-8", FakeAnswer::http(200, &[MARKER], b"\xff\xfe{}")),
        ("not UTF-8 in a text", FakeAnswer::http(200, &[MARKER], b"{\"takes\":[{\"error\":\"\xff\"}]}")),
        ("10 MB of a good answer", FakeAnswer::http(200, &[MARKER], large)),
        ("10 MB of garbage", FakeAnswer::http(200, &[MARKER], vec![b'['; 10_000_000])),
        ("two replies in one body", json_of(&good_json.repeat(2))),
        ("nested 100,000 deep", json_of(&nested)),
        ("nested in a take", json_of(&good_json.replace("\"admitted\"", &format!("{deep},\"admitted\"")))),
        ("null", json_of("null")),
        ("a list", json_of("[]")),
        ("no takes", json_of("{}")),
        ("takes of a wrong type", json_of(r#"{"takes":{"0":true}}"#)),
        // Of the wrong length.
        ("too few takes", json_of(r#"{"takes":[]}"#)),
        ("too many takes", json_of(r#"{"takes":[{"error":"a"},{"error":"b"}]}"#)),
        ("too few charges", json_of(r#"{"takes":[{"admitted":true,"charges":[]}]}"#)),
        (
            "too many charges",
            charge(r#""remaining":1,"wait_us":0,"full_us":1},{"remaining":1,"wait_us":0,"full_us":1"#),
        ),
        // Of the wrong types, and out of range.
        ("a verdict that is a text", json_of(&good_json.replace("true", "\"true\""))),
        ("a number that is a text", charge(r#""remaining":"7","wait_us":0,"full_us":1"#)),
        ("a number that is none", charge(r#""remaining":true,"wait_us":0,"full_us":1"#)),
        ("a fraction", charge(r#""remaining":1.5,"wait_us":0,"full_us":1"#)),
        ("below zero", charge(r#""remaining":-1,"wait_us":0,"full_us":1"#)),
        ("2^64", charge(r#""remaining":18446744073709551616,"wait_us":0,"full_us":1"#)),
        ("1e400", charge(r#""remaining":1,"wait_us":0,"full_us":1e400"#)),
        ("a number that is missing", charge(r#""remaining":1,"wait_us":0"#)),
        ("a number that comes twice", charge(r#""remaining":1,"remaining":2,"wait_us":0,"full_us":1"#)),
        ("a take that failed", json_of(r#"{"takes":[{"error":"the store is away"}]}"#)),
    ];
    let greatest = u64::MAX;
    let refusal = json_of(&format!(
        r#"{{"takes":[{{"admitted":false,"charges":[{{"remaining":0,"wait_us":{greatest},"full_us":{greatest}}}]}}]}}"#
    ));
    let usual = Seen::Admitted { left: LEFT };
    let decided = [
        ("good", whole(), usual),
        ("double", whole().twice(), usual),
        (
            "fields that are not known",
            json_of(&good_json.replace("{\"r", "{\"new\":[{}],\"r")),
            Seen::Admitted { left: LEFT },
        ),
        (
            "the greatest numbers",
            charge(&format!(r#""remaining":{greatest},"wait_us":0,"full_us":{greatest}"#)),
            Seen::Admitted { left: CAPACITY },
        ),
        ("the longest wait", refusal, Seen::Refused),
    ];
    let failures = failures.into_iter().map(|(name, answer)| (name, answer, Becomes::Failure));
    let decided = decided.into_iter().map(|(name, answer, seen)| (name, answer, Becomes::Decided(seen)));
    failures.chain(decided).collect()
}

#[tokio::test]
async fn a_bad_answer_is_a_failure_and_the_next_request_is_decided_as_usual() {
    let next: Arc<Mutex<Option<FakeAnswer>>> = Arc::default();
    let fake = FakeCompanion::start({
        let next = Arc::clone(&next);
        move |question| next.lock().expect("not poisoned").take().unwrap_or_else(|| good(question))
    })
    .await;
    let envoy =
        Envoy::builder().filter(&config(TIMEOUT)).companion(fake.addr()).http1_to_companion().start().await;
    let overhead = Overhead::watch(&envoy, "/free");
    let bad_answers = bad_answers();

    for (name, bad, becomes) in &bad_answers {
        for path in ["/open", "/closed"] {
            *next.lock().expect("not poisoned") = Some(bad.clone());
            let timed = envoy.get_timed(path, &[]).await;
            let seen = Seen::of(&timed.answer);
            let expected = match becomes {
                Becomes::Failure => Seen::failure(path),
                Becomes::Decided(seen) => *seen,
            };
            assert_eq!(seen, expected, "{name} at {path}: {:?}", timed.answer);
            let longest = longest_wait(TIMEOUT, &overhead);
            assert!(timed.took <= longest, "{name} at {path}: {:?} > {longest:?}", timed.took);
            println!("{name} at {path}: {seen:?} in {:?}", timed.took);

            assert!(next.lock().expect("not poisoned").is_none(), "{name} was not asked for");
            let after = Seen::of(&envoy.get(path).await);
            assert_eq!(after, Seen::Admitted { left: LEFT }, "after {name} at {path}");
        }
    }
    println!("{} answers; overhead up to {:?}", bad_answers.len(), overhead.slowest());
    envoy.assert_no_vm_crash().await;
}
