//! The server behind Envoy, in the test's own process: it answers as told and remembers what it saw.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A request that reached the upstream.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// The header fields.
    pub headers: HeaderMap,
}

/// A running upstream. Dropping it ends it.
#[derive(Debug)]
pub struct Upstream {
    addr: SocketAddr,
    shared: Arc<Shared>,
    server: JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    answers: Mutex<HashMap<String, (StatusCode, HeaderMap)>>,
    seen: Mutex<Vec<Seen>>,
}

impl Upstream {
    /// Starts an upstream that answers 200 to everything.
    pub async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a loopback port is free");
        let addr = listener.local_addr().expect("a listener has an address");
        let shared = Arc::<Shared>::default();
        let router = Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let server = tokio::spawn(async move {
            // It serves until the task is aborted; an error would show in what the test gets.
            let _ = axum::serve(listener, router).await;
        });
        Self { addr, shared, server }
    }

    /// From now on answers this path (without a query) with this status and these fields.
    pub fn answer(&self, path: &str, status: u16, headers: &[(&str, &str)]) {
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (*name, value.as_bytes())).collect();
        self.answer_bytes(path, status, &headers);
    }

    /// The same with fields whose values need not be text.
    pub fn answer_bytes(&self, path: &str, status: u16, headers: &[(&str, &[u8])]) {
        let status = StatusCode::from_u16(status).expect("a valid status");
        let mut fields = HeaderMap::new();
        for (name, value) in headers {
            let name: HeaderName = name.parse().expect("a valid field name");
            fields.append(name, HeaderValue::from_bytes(value).expect("a valid field value"));
        }
        lock(&self.shared.answers).insert(path.to_owned(), (status, fields));
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// How many requests have come through.
    pub fn count(&self) -> usize {
        lock(&self.shared.seen).len()
    }

    /// The requests that have come through, in their order.
    pub fn seen(&self) -> Vec<Seen> {
        lock(&self.shared.seen).clone()
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn answer(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    lock(&shared.seen).push(Seen {
        method: request.method().to_string(),
        path: request.uri().to_string(),
        headers: request.headers().clone(),
    });
    let told = lock(&shared.answers).get(&path).cloned();
    let (status, headers) = told.unwrap_or_default();
    (status, headers, "upstream\n").into_response()
}

/// A panic of one test must not hide behind a poisoned lock.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
