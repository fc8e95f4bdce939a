//! The companion: the binary that `make build` leaves, as a process.

use std::net::SocketAddr;
use std::process::ExitStatus;
use std::time::Duration;

use serde_json::Value;

use crate::answer::{Answer, client};
use crate::binaries;
use crate::ports::{free_port, loopback};
use crate::process::{Process, Program};
use crate::store::Store;
use crate::wait::START_DEADLINE;

/// How a companion is started.
#[derive(Debug)]
pub struct CompanionBuilder {
    port: u16,
    program: Program,
}

impl CompanionBuilder {
    /// Listens on this port instead of a free one, for a companion that comes after its Envoy.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Adds arguments after those of `serve`.
    #[must_use]
    pub fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.program = self.program.args(args);
        self
    }

    /// How long the companion waits for its store, such as `"5s"`: for tests in which nothing fails, so that
    /// a busy machine is not taken for a failure.
    #[must_use]
    pub fn store_timeout(self, timeout: &str) -> Self {
        self.args(["--store-timeout", timeout])
    }

    /// Adds a variable to the environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.program = self.program.env(name, value);
        self
    }

    /// Starts the companion and waits until it says that it is ready.
    pub async fn start(self) -> Companion {
        let mut companion = self.start_unready().await;
        companion.ready().await;
        companion
    }

    /// Starts the companion and waits only until it lives, for one whose store does not answer.
    pub async fn start_unready(self) -> Companion {
        let addr = loopback(self.port);
        let program = self.program.args(["--listen", &addr.to_string()]);
        let process = Process::start("companion", program);
        let mut companion = Companion { process, addr, client: client() };
        companion.wait_for_200("/healthz").await;
        companion
    }
}

/// A running companion.
#[derive(Debug)]
pub struct Companion {
    process: Process,
    addr: SocketAddr,
    client: reqwest::Client,
}

impl Companion {
    /// Starts a companion of this store and waits until it is ready.
    pub async fn start(store: &Store) -> Self {
        Self::builder(&store.url()).start().await
    }

    /// A companion of the store that `--store` names so.
    pub fn builder(store_url: &str) -> CompanionBuilder {
        let program = Program::new(binaries::companion()).args(["serve", "--store", store_url]);
        CompanionBuilder { port: free_port(), program }
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// All that it has printed.
    pub fn log(&self) -> String {
        self.process.log()
    }

    /// Asks it for a path.
    pub async fn get(&self, path: &str) -> Answer {
        Answer::receive(self.client.get(self.url(path))).await
    }

    /// Posts a batch to `/v1/take`; returns the status and the JSON of the answer.
    pub async fn take(&self, batch: &Value) -> (u16, Value) {
        let answer = self.post_take(batch.to_string().into_bytes()).await;
        (answer.status, answer.json())
    }

    /// Posts any bytes to `/v1/take`, as JSON.
    pub async fn post_take(&self, body: Vec<u8>) -> Answer {
        let request = self.client.post(self.url("/v1/take")).header("content-type", "application/json");
        Answer::receive(request.body(body)).await
    }

    /// Waits until it is ready to decide.
    pub async fn ready(&mut self) {
        self.wait_for_200("/readyz").await;
    }

    /// Holds it: connections stay open and nothing answers.
    pub fn stop(&self) {
        self.process.stop();
    }

    /// Lets a held companion go on.
    pub fn cont(&self) {
        self.process.cont();
    }

    /// Kills it at once.
    pub fn kill(&mut self) {
        self.process.kill();
    }

    /// Kills it if it runs, starts it on the same port and waits until it is ready.
    pub async fn restart(&mut self) {
        self.process.restart();
        self.ready().await;
    }

    /// Asks it to end (SIGTERM), without waiting for that.
    pub fn terminate(&self) {
        self.process.terminate();
    }

    /// Waits until it has ended by itself, as after [`Self::terminate`].
    pub async fn exited(&mut self, deadline: Duration) -> ExitStatus {
        self.process.exited(deadline).await
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.addr)
    }

    async fn wait_for_200(&mut self, path: &str) {
        let (client, url) = (self.client.clone(), self.url(path));
        let ok = async || {
            let answer = Answer::try_receive(client.get(&url)).await.ok()?;
            (answer.status == 200).then_some(())
        };
        self.process.ready(&format!("200 of the companion's {path}"), START_DEADLINE, ok).await;
    }
}
