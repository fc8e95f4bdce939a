//! Real servers: started on a free port, killed, stopped, asked, and ended with their test.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use companion::store::{Location, Store};
use rustix::process::{Pid, Signal, kill_process};

/// Generous, so that a busy machine fails no test that is not about the timeout.
pub(crate) const PATIENT: Duration = Duration::from_secs(5);

/// Waits for a store to be ready; returns how long that took.
pub(crate) async fn until_ready(store: &Store) -> Duration {
    let begun = Instant::now();
    while store.ready().await.is_err() {
        assert!(begun.elapsed() < PATIENT, "{:?}", store.ready().await);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    begun.elapsed()
}

/// A running server.
pub(crate) struct Server {
    binary: PathBuf,
    pub(crate) port: u16,
    folder: tempfile::TempDir,
    child: Child,
}

impl Server {
    pub(crate) fn start(binary: &Path) -> Self {
        let port = free_port();
        let folder = tempfile::tempdir().unwrap();
        let child = Self::spawn(binary, port, folder.path());
        let server = Self { binary: binary.to_owned(), port, folder, child };
        server.wait();
        server
    }

    fn spawn(binary: &Path, port: u16, folder: &Path) -> Child {
        Command::new(binary)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    pub(crate) fn restart(&mut self) {
        self.kill();
        self.child = Self::spawn(&self.binary, self.port, self.folder.path());
        self.wait();
    }

    fn wait(&self) {
        let begun = Instant::now();
        while self.try_command::<String>(&["PING"]).is_err() {
            assert!(begun.elapsed() < PATIENT, "the server does not start");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    pub(crate) fn store(&self, timeout: Duration) -> Store {
        let location: Location = format!("redis://127.0.0.1:{}", self.port).parse().unwrap();
        Store::start(&location, timeout).unwrap()
    }

    /// The store of a user who may do what the rules say.
    pub(crate) fn store_of(&self, rules: &[&str]) -> Store {
        let _: () = self.command(&[&["ACL", "SETUSER", "limited", "reset", "on", ">p"], rules].concat());
        let location: Location = format!("redis://limited:p@127.0.0.1:{}", self.port).parse().unwrap();
        Store::start(&location, PATIENT).unwrap()
    }

    pub(crate) async fn ready_store(&self, timeout: Duration) -> Store {
        let store = self.store(timeout);
        until_ready(&store).await;
        store
    }

    pub(crate) fn command<T: redis::FromRedisValue>(&self, words: &[&str]) -> T {
        self.try_command(words).unwrap()
    }

    fn try_command<T: redis::FromRedisValue>(&self, words: &[&str]) -> redis::RedisResult<T> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port))?;
        let mut connection = client.get_connection_with_timeout(PATIENT)?;
        let mut command = redis::cmd(words[0]);
        command.arg(&words[1..]);
        command.query(&mut connection)
    }

    /// How often each command was run since the last reset of the statistics, which this is.
    pub(crate) fn calls(&self) -> BTreeMap<String, u64> {
        let text: String = self.command(&["INFO", "commandstats"]);
        let _: () = self.command(&["CONFIG", "RESETSTAT"]);
        let line = |line: &str| {
            let (name, rest) = line.strip_prefix("cmdstat_")?.split_once(":calls=")?;
            Some((name.to_owned(), rest.split(',').next()?.parse().ok()?))
        };
        text.lines().filter_map(line).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A port below those of outgoing connections, so that nobody takes it while its server restarts.
fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(16);
    loop {
        let step = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(10_000 + step % 2_000).unwrap();
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// The servers that there are.
pub(crate) fn binaries() -> Vec<PathBuf> {
    let tools = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.tools/bin");
    let found: Vec<_> = ["valkey-server", "redis-server-6.2"]
        .iter()
        .map(|name| tools.join(name))
        .filter(|path| path.exists())
        .collect();
    if found.is_empty() {
        println!("skipped: no server in .tools/bin; `make tools` fetches them");
    }
    found
}
