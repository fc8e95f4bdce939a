//! Envoy, as a process: how it is started and what can be asked of it.

mod admin;
mod bootstrap;
mod builder;
mod listener;
mod reload;
mod timed;

use std::net::SocketAddr;

pub use admin::Memory;
pub use bootstrap::CompanionAt;
pub use builder::EnvoyBuilder;
pub use listener::Listener;
pub use reload::{Delivery, Refused};
pub use timed::{Overhead, Timed, slowest};

use crate::answer::Answer;
use crate::process::Process;
use crate::raw::raw_request;

/// A running Envoy, mostly with one listener.
#[derive(Debug)]
pub struct Envoy {
    process: Process,
    source: reload::Source,
    admin: SocketAddr,
    listeners: Vec<SocketAddr>,
    client: reqwest::Client,
}

impl Envoy {
    /// An Envoy without the filter and without a companion, whose routes answer 200 themselves.
    pub fn builder() -> EnvoyBuilder {
        EnvoyBuilder::default()
    }

    /// Where clients connect.
    pub fn addr(&self) -> SocketAddr {
        self.addr_of(0)
    }

    /// The same for the listener that was added as the n-th beside the first, counted from 1.
    pub fn addr_of(&self, listener: usize) -> SocketAddr {
        self.listeners[listener]
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr())
    }

    /// Gets a path.
    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[]).await
    }

    /// Sends a request without a body.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.try_send(method, path, headers).await.expect("Envoy answers")
    }

    /// Sends a request without a body; `Err` where Envoy does not answer, or not in time.
    pub async fn try_send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
    ) -> reqwest::Result<Answer> {
        let method = method.parse().expect("a method is a token");
        let mut request = self.client.request(method, self.url(path));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        Answer::try_receive(request).await
    }

    /// Sends the bytes of one request that need not be valid. `connection: close` is for the caller to say.
    pub async fn send_raw(&self, request: &[u8]) -> Answer {
        self.send_raw_to(0, request).await
    }

    /// The same to a listener; see [`Envoy::addr_of`].
    pub async fn send_raw_to(&self, listener: usize, request: &[u8]) -> Answer {
        Answer::parse(&raw_request(self.addr_of(listener), request).await)
    }

    /// All that Envoy has printed, the filter's log included.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// The access log: for each request `%RESPONSE_CODE% %RESPONSE_CODE_DETAILS%`. Envoy writes it
    /// a moment after the answer, so look at it through [`until`](crate::until).
    pub fn access_log(&self) -> Vec<String> {
        self.access_log_of(0)
    }

    /// The same of a listener; see [`Envoy::addr_of`].
    pub fn access_log_of(&self, listener: usize) -> Vec<String> {
        let path = self.process.folder().join(bootstrap::access_log(listener));
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Holds Envoy: connections stay open and nothing is forwarded.
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Lets a held Envoy go on.
    pub fn cont(&self) {
        self.process.cont();
    }

    /// Kills Envoy at once.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    fn new(process: Process, source: reload::Source, admin: SocketAddr, listeners: Vec<SocketAddr>) -> Self {
        let client = source.client();
        Self { process, source, admin, listeners, client }
    }
}
