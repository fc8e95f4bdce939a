//! More requests than a worker lets wait: the rest is decided at once, and nothing grows without a bound.

use std::time::Duration;

use harness::{Envoy, FakeAnswer, FakeCompanion, until};
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::expected::config;

/// The most requests that wait in one worker.
const MAX_WAITING: usize = 4096;

/// How many more come.
const BEYOND: usize = 100;

const DEADLINE: Duration = Duration::from_secs(9);

/// Lets this process, and those that it starts, hold as many connections as the machine allows: what is
/// allowed without asking is often 1024.
pub(crate) fn allow_many_connections() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("a process may raise its limit to its maximum");
}

#[tokio::test]
async fn requests_beyond_those_that_may_wait_are_failures_at_once() {
    allow_many_connections();
    let fake = FakeCompanion::start(|_| FakeAnswer::silence()).await;
    // As long as it may be: nothing else must decide a request while the crowd gathers.
    let config = config(Duration::from_secs(10));
    let envoy = Envoy::builder()
        .filter(&config)
        .companion(fake.addr())
        .http1_to_companion()
        .stream_idle_timeout("60s")
        .start()
        .await;

    let mut clients = Vec::new();
    for _ in 0..MAX_WAITING + BEYOND {
        let mut client = TcpStream::connect(envoy.addr()).await.expect("Envoy accepts");
        client.write_all(b"GET /open HTTP/1.1\r\nhost: a\r\n\r\n").await.expect("Envoy reads");
        clients.push(client);
    }
    let metric = async || envoy.counter("wasmcustom.tidegate.policy.open.unprotected").await;
    let beyond = async || (metric().await == BEYOND as u64).then_some(());
    until("those who do not wait", DEADLINE, beyond).await;
    let active = async || envoy.counter("http.ingress.downstream_rq_active").await;
    assert_eq!(active().await, MAX_WAITING as u64);
    println!("{MAX_WAITING} wait, {BEYOND} were let through at once");

    drop(clients);
    until("the end of all", DEADLINE, async || (active().await == 0).then_some(())).await;
    assert_eq!(metric().await, BEYOND as u64, "nobody who left was decided");
    envoy.assert_no_vm_crash().await;
}
