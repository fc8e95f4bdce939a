//! However a client spells a request or itself, it meets the bucket that it is to meet.

mod clients;
mod hosts;
mod paths;

use harness::{Answer, Envoy};
use serde_json::{Value, json};

/// A bucket of one request an hour for each value of `x-client`, in the proxy.
pub(crate) fn once(name: &str, matcher: &Value, key: &Value) -> Value {
    let mut policy = json!({
        "name": name,
        "key": key,
        "limit": { "token_bucket": { "capacity": 1, "rate": "1/h" } },
        "sync": "local",
    });
    if !matcher.is_null() {
        policy["match"] = matcher.clone();
    }
    policy
}

/// One listener, and the clients that have come to it.
pub(crate) struct Door<'a> {
    envoy: &'a Envoy,
    listener: usize,
    clients: u32,
}

impl<'a> Door<'a> {
    pub(crate) fn new(envoy: &'a Envoy, listener: usize) -> Self {
        Self { envoy, listener, clients: 0 }
    }

    /// Sends a target to the byte, with header lines as they stand.
    pub(crate) async fn send(&self, target: &str, lines: &[&str]) -> Answer {
        let has_host = lines.iter().any(|line| line.starts_with("host:"));
        let head = [format!("GET {target} HTTP/1.1")];
        let lines = lines.iter().copied().chain((!has_host).then_some("host: a.test"));
        let end = ["connection: close", "", ""];
        let request =
            head.iter().map(String::as_str).chain(lines).chain(end).collect::<Vec<_>>().join("\r\n");
        self.envoy.send_raw_to(self.listener, request.as_bytes()).await
    }

    /// Whether two requests of a new client meet in a bucket: the second is refused, whichever comes first.
    pub(crate) async fn meet(
        &mut self,
        first: (&str, &[&str]),
        second: (&str, &[&str]),
    ) -> Result<(), String> {
        for (one, other) in [(first, second), (second, first)] {
            self.clients += 1;
            let client = format!("x-client: {}", self.clients);
            let statuses = [
                self.send(one.0, &[one.1, &[&client]].concat()).await.status,
                self.send(other.0, &[other.1, &[&client]].concat()).await.status,
            ];
            if statuses != [200, 429] {
                return Err(format!("{statuses:?} for {one:?}, then {other:?}"));
            }
        }
        Ok(())
    }
}

/// Tells all rows that did not hold at once.
pub(crate) fn assert_all(rows: Vec<Result<(), String>>) {
    let (count, failures): (usize, Vec<String>) =
        (rows.len(), rows.into_iter().filter_map(Result::err).collect());
    println!("{count} rows");
    assert!(failures.is_empty(), "{} of {count}:\n{}", failures.len(), failures.join("\n"));
}
