//! The stores that hold the truth: memory inside the companion, Valkey, and Redis of two ages.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use crate::binaries;
use crate::ports::{free_port, loopback};
use crate::process::{Process, Program};
use crate::resp::{Reply, Resp};
use crate::wait::START_DEADLINE;

/// The stores that a behaviour must be the same over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// The companion's own keyspace; there is no process beside it.
    Memory,
    /// Valkey, from `.tools/`.
    Valkey,
    /// Redis 6.2, from `.tools/`.
    Redis62,
    /// The `redis-server` that the PATH has.
    RedisOnPath,
}

impl StoreKind {
    fn program(self) -> Option<PathBuf> {
        match self {
            Self::Memory => None,
            Self::Valkey => Some(binaries::valkey_server()),
            Self::Redis62 => Some(binaries::redis_server_6_2()),
            Self::RedisOnPath => binaries::redis_server_on_path(),
        }
    }
}

/// A store that a companion can use.
#[derive(Debug)]
pub struct Store {
    kind: StoreKind,
    server: Option<Server>,
}

#[derive(Debug)]
struct Server {
    process: Process,
    addr: SocketAddr,
}

impl Store {
    /// The kinds that can be started here: all but what this machine cannot have.
    pub fn all() -> Vec<StoreKind> {
        let mut kinds = vec![StoreKind::Memory];
        kinds.extend(Self::servers());
        kinds
    }

    /// The kinds that have a process of their own, which can be stopped, killed and asked.
    pub fn servers() -> Vec<StoreKind> {
        let mut kinds = vec![StoreKind::Valkey];
        // Redis 6.2 is packaged for this architecture alone; a missing file is an error there.
        if cfg!(target_arch = "x86_64") {
            kinds.push(StoreKind::Redis62);
        }
        if binaries::redis_server_on_path().is_some() {
            kinds.push(StoreKind::RedisOnPath);
        }
        kinds
    }

    /// Starts an empty store on a free port and waits until it answers.
    pub async fn start(kind: StoreKind) -> Self {
        let server = match kind.program() {
            Some(path) => Some(Server::start(kind, path).await),
            None => None,
        };
        Self { kind, server }
    }

    /// Which store this is.
    pub fn kind(&self) -> StoreKind {
        self.kind
    }

    /// The value of the companion's `--store`.
    pub fn url(&self) -> String {
        match &self.server {
            Some(server) => format!("redis://{}", server.addr),
            None => "memory".to_owned(),
        }
    }

    /// The address of a store that is a process.
    pub fn addr(&self) -> SocketAddr {
        self.server().addr
    }

    /// Holds the store: connections stay open and nothing answers.
    pub fn stop(&self) {
        self.server().process.stop();
    }

    /// Lets a held store go on.
    pub fn cont(&self) {
        self.server().process.cont();
    }

    /// Kills the store; what it held is lost.
    pub fn kill(&mut self) {
        self.server_mut().process.kill();
    }

    /// Kills the store if it runs and starts it on the same port, empty.
    pub async fn restart(&mut self) {
        let server = self.server_mut();
        server.process.restart();
        server.answer().await;
    }

    /// Runs one command on a connection of its own.
    pub async fn command<B: AsRef<[u8]>>(&self, words: &[B]) -> Reply {
        let mut resp = Resp::connect(self.addr()).await.expect("the store accepts connections");
        resp.command(words).await.expect("the store replies")
    }

    /// How often the store has run each command since its start or the last `CONFIG RESETSTAT`,
    /// by name in lower case, with `|` before a subcommand: `config|resetstat`.
    pub async fn command_calls(&self) -> BTreeMap<String, u64> {
        let text = self.command(&["INFO", "commandstats"]).await.text();
        text.lines().filter_map(parse_calls).collect()
    }

    fn server(&self) -> &Server {
        self.server.as_ref().expect("the memory store has no process of its own; use Store::servers()")
    }

    fn server_mut(&mut self) -> &mut Server {
        self.server.as_mut().expect("the memory store has no process of its own; use Store::servers()")
    }
}

impl Server {
    async fn start(kind: StoreKind, path: PathBuf) -> Self {
        let port = free_port();
        let program = Program::new(path).args(["--port", &port.to_string(), "--bind", "127.0.0.1"]).args([
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        let name = format!("{kind:?}").to_lowercase();
        let mut server = Self { process: Process::start(&name, program), addr: loopback(port) };
        server.answer().await;
        server
    }

    async fn answer(&mut self) {
        let addr = self.addr;
        let pong = async || {
            let mut resp = Resp::connect(addr).await.ok()?;
            let reply = resp.command(&["PING"]).await.ok()?;
            (reply == Reply::Simple("PONG".to_owned())).then_some(())
        };
        self.process.ready("the store's first answer", START_DEADLINE, pong).await;
    }
}

/// One line such as `cmdstat_evalsha:calls=3,usec=57,usec_per_call=19.00`.
fn parse_calls(line: &str) -> Option<(String, u64)> {
    let (name, statistics) = line.trim_end().strip_prefix("cmdstat_")?.split_once(':')?;
    let calls = statistics.split(',').find_map(|item| item.strip_prefix("calls="))?;
    Some((name.to_owned(), calls.parse().ok()?))
}
