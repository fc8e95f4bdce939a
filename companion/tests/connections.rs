//! Connections and bodies that do not end, and how they leave room for others.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a panic is a test's report")]

use std::net::SocketAddr;
use std::time::Duration;

use companion::http;
use companion::server::{self, Limits};
use companion::store::Store;
use companion::store::memory::{Clock, MemoryStore};
use limiter::wire::MAX_BODY_BYTES;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

const PATIENT: Duration = Duration::from_secs(5);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Serves until the runtime ends.
async fn start(limits: Limits, max_keys: usize) -> SocketAddr {
    let store = MemoryStore::start_for(max_keys, Clock::system(), PATIENT).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let routes = http::routes(Store::Memory(store));
    tokio::spawn(server::serve_within(limits, listener, routes, std::future::pending()));
    address
}

async fn connect(address: SocketAddr, sent: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(sent).await.unwrap();
    stream
}

/// Waits for the other end to close.
async fn until_closed(stream: &mut TcpStream) {
    // An end with a reset is one too.
    let _ = timeout(PATIENT, stream.read_to_end(&mut vec![])).await.unwrap();
}

/// The answer to a request on a connection that stays open.
async fn exchange(stream: &mut TcpStream, request: &[u8]) -> String {
    stream.write_all(request).await.unwrap();
    let mut answer = vec![0; 4096];
    let length = timeout(PATIENT, stream.read(&mut answer)).await.unwrap().unwrap();
    String::from_utf8(answer[..length].to_vec()).unwrap()
}

async fn take(address: SocketAddr, key: &str) -> String {
    let limit = r#"{"token_bucket":{"capacity":10,"rate":"10/d"}}"#;
    let body = format!(r#"{{"takes":[{{"charges":[{{"key":"rl:{{{key}}}:p","limit":{limit}}}]}}]}}"#);
    let head = format!("POST /v1/take HTTP/1.1\r\nhost: a\r\ncontent-length: {}\r\n\r\n", body.len());
    exchange(&mut connect(address, b"").await, (head + &body).as_bytes()).await
}

#[tokio::test]
async fn a_connection_without_a_whole_beginning_is_closed_and_a_silent_one_with_it_is_not() {
    let limits = Limits { opening_timeout: Duration::from_millis(200), ..Limits::default() };
    let address = start(limits, 10).await;
    // The preface, empty settings: what a proxy sends long before its first request.
    let mut second = connect(address, &[PREFACE, b"\0\0\0\x04\0\0\0\0\0"].concat()).await;
    let mut first = connect(address, b"").await;
    let request = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n";
    assert!(exchange(&mut first, request).await.starts_with("HTTP/1.1 200"));
    for sent in [b"".as_slice(), b"P", b"PRI * HT", &PREFACE[..23], b"GET /healthz HTTP/1.1\r\n"] {
        until_closed(&mut connect(address, sent).await).await;
    }
    // A second has gone by. The two others are older than those that were closed, and live.
    assert!(exchange(&mut first, request).await.starts_with("HTTP/1.1 200"));
    second.write_all(b"\0\0\x08\x06\0\0\0\0\0tidegate").await.unwrap();
    let mut read = Vec::new();
    while !read.windows(8).any(|window| window == b"tidegate") {
        assert_ne!(timeout(PATIENT, second.read_buf(&mut read)).await.unwrap().unwrap(), 0, "closed");
    }
}

#[tokio::test]
async fn silent_connections_give_their_places_to_those_who_wait() {
    let limits = Limits { max_connections: 2, opening_timeout: Duration::from_millis(200) };
    let address = start(limits, 10).await;
    let _silent = [connect(address, b"").await, connect(address, b"PRI").await];
    assert!(take(address, "1").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn long_bodies_that_do_not_end_are_refused_and_a_short_take_is_not() {
    let address = start(Limits::default(), 10).await;
    let mut bodies = JoinSet::new();
    for _ in 0..40 {
        bodies.spawn(async move {
            let head =
                format!("POST /v1/take HTTP/1.1\r\nhost: a\r\ncontent-length: {MAX_BODY_BYTES}\r\n\r\n");
            let mut stream = connect(address, head.as_bytes()).await;
            let _ = stream.write_all(&vec![b' '; MAX_BODY_BYTES - 1]).await;
            let mut answer = String::new();
            let _ = timeout(Duration::from_secs(2), stream.read_to_string(&mut answer)).await;
            answer
        });
    }
    while let Some(answer) = bodies.join_next().await {
        if answer.unwrap().contains("\"overloaded\"") {
            // The others are still under way.
            assert!(take(address, "1").await.starts_with("HTTP/1.1 200"));
            return;
        }
    }
    panic!("nobody was refused");
}

#[tokio::test]
async fn a_full_memory_store_is_ready_and_decides_for_the_keys_that_it_has() {
    let address = start(Limits::default(), 2).await;
    for key in ["1", "2"] {
        assert!(take(address, key).await.starts_with("HTTP/1.1 200"));
    }
    assert!(take(address, "3").await.contains("\"store_unavailable\""));
    assert!(take(address, "1").await.contains("\"remaining\":8"));
    let request = b"GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n";
    let answer = exchange(&mut connect(address, b"").await, request).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains(r#"{"status":"ready","store":"full"}"#), "{answer}");
}
