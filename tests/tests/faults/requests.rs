//! What clients may send: each request is counted in the bucket that its identity says, in this proxy and
//! in the store alike, and nothing that a client writes opens a second one.

use harness::{Answer, Companion, Envoy};
use serde_json::{Value, json};

use crate::expected::{CAPACITY, companion_in_memory};

/// The same policy twice: counted here and in the store.
fn config(scope: &[&str]) -> Value {
    let policy = |name: &str, sync: &str| {
        let mut key = vec![json!({ "header": "x-api-key" })];
        key.extend(scope.iter().map(|part| json!(part)));
        json!({
            "name": name,
            "key": key,
            "limit": { "token_bucket": { "capacity": CAPACITY, "rate": "1/d" } },
            "sync": sync,
        })
    };
    json!({
        "companion": { "cluster": "tidegate", "timeout": "2s" },
        "policies": [policy("here", "local"), policy("store", "exact")],
    })
}

struct Limited {
    envoy: Envoy,
    // Ends with the Envoy that asks it.
    _companion: Companion,
}

impl Limited {
    async fn start(scope: &[&str]) -> Self {
        let companion = companion_in_memory().await;
        let envoy = Envoy::builder().filter(&config(scope)).companion(companion.addr()).start().await;
        Self { envoy, _companion: companion }
    }

    /// Sends a request with these lines after its first; returns which of its bucket's requests it was.
    async fn nth(&self, lines: &[u8]) -> u64 {
        nth(&self.send(b"GET / HTTP/1.1", lines).await)
    }

    async fn send(&self, first: &[u8], lines: &[u8]) -> Answer {
        let request = [first, b"\r\nhost: a\r\nconnection: close\r\n", lines, b"\r\n"].concat();
        self.envoy.send_raw(&request).await
    }
}

/// Which request of its bucket was answered so: 1 for the first. Both policies must agree.
fn nth(answer: &Answer) -> u64 {
    assert_eq!(answer.status, 200, "{answer:?}");
    let field = answer.header("ratelimit").unwrap_or_else(|| panic!("not limited: {answer:?}"));
    CAPACITY - left_of_both(&field)
}

/// The tokens left of a `RateLimit` field; both policies must have the same.
fn left_of_both(field: &str) -> u64 {
    let left = |name: &str| {
        let (_, item) = field.split_once(&format!("\"{name}\"")).unwrap_or_else(|| panic!("{name}: {field}"));
        crate::expected::left(item.split(',').next().unwrap_or_default())
    };
    assert_eq!(left("here"), left("store"), "{field}");
    left("here")
}

#[tokio::test]
async fn who_sends_no_single_key_is_anonymous_however_the_values_vary() {
    let limited = Limited::start(&[]).await;
    let anonymous: [&[u8]; 13] = [
        b"",
        b"x-api-key:\r\n",
        b"x-api-key: \t \r\n",
        b"x-api-key:\r\nx-api-key:\r\n",
        b"x-api-key: one\r\nx-api-key: two\r\n",
        b"x-api-key: two\r\nx-api-key: one\r\n",
        b"x-api-key: three\r\nx-api-key: four\r\n",
        b"X-Api-Key: one\r\nx-API-key: two\r\nx-api-key: three\r\n",
        b"x-api-key: one\r\nx-api-key:\r\n",
        b"x-api-key:\r\nx-api-key: one\r\n",
        b"x-api-key: one\r\nx-api-key: one\r\nx-api-key: two\r\n",
        b"x-api-key: \xff\r\nx-api-key: \xfe\r\n",
        b"x-api-key: one\r\nx-other: a\r\nx-api-key: one, two\r\n",
    ];
    for (sent, lines) in anonymous.into_iter().enumerate() {
        assert_eq!(limited.nth(lines).await, sent as u64 + 1, "{} is not anonymous", shown(lines));
    }
    println!("{} forms of no single key share one bucket", anonymous.len());
    limited.envoy.assert_no_vm_crash().await;
}

#[tokio::test]
async fn one_key_is_one_bucket_however_it_is_written_and_two_keys_are_two() {
    let limited = Limited::start(&[]).await;
    let long = |last: char| format!("x-api-key: {}{last}\r\n", "k".repeat(60_000)).into_bytes();
    // The forms of each identity.
    let identities: Vec<Vec<Vec<u8>>> = vec![
        vec![
            b"x-api-key: k\r\n".into(),
            b"x-api-key:k\r\n".into(),
            b"X-API-KEY: \t k \t \r\n".into(),
            b"x-api-key: k\r\nx-api-key: k\r\n".into(),
            b"x-api-key: k\r\nx-other: a\r\nx-api-key: \tk\r\nx-api-key:k \r\n".into(),
        ],
        vec![b"x-api-key: K\r\n".into()],
        vec![b"x-api-key: k,k\r\n".into(), b"x-api-key: k,k\r\nx-api-key: k,k\r\n".into()],
        vec![b"x-api-key: k, l\r\n".into()],
        vec![b"x-api-key: ,\r\n".into()],
        vec![b"x-api-key: *\r\n".into()],
        vec![b"x-api-key: k l\r\n".into()],
        vec![b"x-api-key: \xff\xfe\r\n".into(), b"x-api-key: \xff\xfe\r\nx-api-key: \xff\xfe\r\n".into()],
        vec![b"x-api-key: \xff\xfd\r\n".into()],
        vec![b"x-api-key: %FF%FE\r\n".into()],
        // What stands for bytes that are not UTF-8 where they are read as text.
        vec!["x-api-key: \u{fffd}\u{fffd}\r\n".into()],
        vec![b"x-api-key: }:store\r\n".into()],
        vec![long('a'), long('a')],
        vec![long('b')],
        vec![[b"x-api-key: other\r\n".as_slice(), b"x-other: ", &[b'x'; 60_000], b"\r\n"].concat()],
    ];
    for forms in &identities {
        for (sent, lines) in forms.iter().enumerate() {
            assert_eq!(limited.nth(lines).await, sent as u64 + 1, "{} is counted elsewhere", shown(lines));
        }
    }
    println!("{} identities have a bucket each", identities.len());
    limited.envoy.assert_no_vm_crash().await;
}

#[tokio::test]
async fn unusual_paths_and_methods_are_counted_or_refused_by_envoy() {
    let limited = Limited::start(&["method", "path"]).await;
    let long = |last: &str| format!("GET /{}{last} HTTP/1.1", "p".repeat(60_000)).into_bytes();
    let counted: [Vec<u8>; 8] = [
        long("a"),
        long("b"),
        b"OPTIONS / HTTP/1.1".into(),
        b"PROPFIND / HTTP/1.1".into(),
        b"GET /%zz%2 HTTP/1.1".into(),
        b"GET /%fF%f HTTP/1.1".into(),
        b"GET http://a/absolute?x HTTP/1.1".into(),
        b"GET /a;b=c:d*{}|^`\" HTTP/1.1".into(),
    ];
    for first in &counted {
        let answer = limited.send(first, b"x-api-key: k\r\n").await;
        assert_eq!(nth(&answer), 1, "{}", shown(first));
    }
    // Whether these come as far as the filter is Envoy's to say.
    let doubtful: [&[u8]; 10] = [
        b"OPTIONS * HTTP/1.1",
        b"CONNECT a:80 HTTP/1.1",
        b"BREW /pot HTTP/1.1",
        b"get / HTTP/1.1",
        b"GET /?x=\xff HTTP/1.1",
        b"GET /\xff\xfe HTTP/1.1",
        b"GET /%ff%00%0a HTTP/1.1",
        b"GET /\x7f HTTP/1.1",
        b"GET /\x01 HTTP/1.1",
        b"GET / HTTP/1.0",
    ];
    for first in doubtful {
        let answer = limited.send(first, b"x-api-key: k\r\n").await;
        match answer.header("ratelimit") {
            Some(field) => assert_eq!(left_of_both(&field), CAPACITY - 1, "{}", shown(first)),
            None => assert!((400..500).contains(&answer.status), "{}: {answer:?}", shown(first)),
        }
        println!("{}: {} {:?}", shown(first), answer.status, answer.header("ratelimit"));
    }
    println!("{} forms are counted", counted.len());
    limited.envoy.assert_no_vm_crash().await;
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).escape_debug().to_string()
}
