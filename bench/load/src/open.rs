//! A load of a fixed rate, in an open loop: when a request is sent does not depend on when others are answered.
//!
//! Request `n` is meant for the moment `start + n / rate`, and its latency counts from there, whether it left then
//! or had to wait for a connection. A server that stands still is therefore seen by all requests that it kept
//! waiting, and not only by one on each connection (no "coordinated omission").

use std::error::Error;
use std::fmt::Write as _;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::thread::set_current_timer_slack;

use crate::http;

/// How long an answer may take before the run is given up.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between the connections' being open and the first request.
const LEAD: Duration = Duration::from_millis(20);

type Failure = Box<dyn Error + Send + Sync>;

/// What to send, and how fast.
#[derive(Debug, clap::Args)]
pub(crate) struct Open {
    /// Where Envoy listens.
    #[arg(long)]
    addr: SocketAddr,
    #[arg(long, default_value = "/")]
    path: String,
    /// How many keys there are; each request has one of them, drawn at random, in `x-api-key`.
    #[arg(long, default_value = "1")]
    keys: NonZeroU64,
    #[arg(long, default_value = "64")]
    connections: usize,
    /// Requests a second, over all connections.
    #[arg(long)]
    rate: NonZeroU64,
    #[arg(long)]
    seconds: u64,
    /// Another seed draws other keys.
    #[arg(long, default_value = "0")]
    seed: u64,
    /// A field that every answer must have.
    #[arg(long)]
    expect: Option<String>,
}

/// What the connections share.
struct Shared<'a> {
    open: &'a Open,
    period: Duration,
    next: AtomicU64,
    connected: Barrier,
    start: OnceLock<Instant>,
}

impl Open {
    /// Sends all requests and prints the latencies; any answer but 200 is an error.
    pub(crate) fn run(&self) -> Result<(), Box<dyn Error>> {
        let shared = Shared {
            open: self,
            period: Duration::from_secs(1) / u32::try_from(self.rate.get())?,
            next: AtomicU64::new(0),
            connected: Barrier::new(self.connections),
            start: OnceLock::new(),
        };
        let measured: Result<Vec<_>, Failure> = thread::scope(|scope| {
            let connections: Vec<_> =
                (0..self.connections).map(|_| scope.spawn(|| shared.connection())).collect();
            connections.into_iter().map(|one| one.join().map_err(|_| "a connection's thread died")?).collect()
        });
        let mut latencies: Vec<Duration> = measured.map_err(|error| error as Box<dyn Error>)?.concat();
        latencies.sort_unstable();
        println!("{}", report(&latencies));
        Ok(())
    }

    fn total(&self) -> u64 {
        self.rate.get().saturating_mul(self.seconds)
    }
}

impl Shared<'_> {
    /// One connection: takes the next request that nobody has taken, as often as there is one.
    fn connection(&self) -> Result<Vec<Duration>, Failure> {
        // Otherwise Linux wakes a thread up to 50 µs late, which would be in every latency.
        set_current_timer_slack(NonZeroU64::new(1))?;
        let connected = TcpStream::connect(self.open.addr);
        // Everybody arrives here, also whoever has no connection: the others would wait for ever.
        self.connected.wait();
        let start = *self.start.get_or_init(|| Instant::now() + LEAD);
        let mut stream = connected?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut reader = BufReader::new(stream.try_clone()?);
        let (mut request, mut head, mut body) = (String::new(), Vec::new(), Vec::new());
        let mut latencies = Vec::new();
        loop {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.open.total() {
                return Ok(latencies);
            }
            self.write_request(number, &mut request)?;
            let meant_for = start + self.period * u32::try_from(number)?;
            thread::sleep(meant_for.saturating_duration_since(Instant::now()));
            stream.write_all(request.as_bytes())?;
            if !http::read_head(&mut reader, &mut head)? {
                return Err("Envoy closed a connection".into());
            }
            let head = str::from_utf8(&head)?;
            http::read_body(&mut reader, head, &mut body)?;
            latencies.push(meant_for.elapsed());
            self.check(head)?;
        }
    }

    fn write_request(&self, number: u64, request: &mut String) -> Result<(), Failure> {
        let Open { addr, path, keys, seed, .. } = self.open;
        let key = mixed(seed.wrapping_add(number)) % keys.get();
        request.clear();
        write!(request, "GET {path} HTTP/1.1\r\nhost: {addr}\r\nx-api-key: key-{key:06}\r\n\r\n")?;
        Ok(())
    }

    fn check(&self, head: &str) -> Result<(), Failure> {
        if http::status(head) != Some(200) {
            return Err(format!("an answer is not 200:\n{head}").into());
        }
        match &self.open.expect {
            Some(name) if http::field(head, name).is_none() => {
                Err(format!("an answer has no {name}:\n{head}").into())
            }
            _ => Ok(()),
        }
    }
}

/// The finalizer of `SplitMix64` (Steele, Lea and Flood, 2014): consecutive numbers come out as if drawn at random.
fn mixed(number: u64) -> u64 {
    let mixed = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The nearest-rank percentiles of sorted latencies, in microseconds.
fn report(latencies: &[Duration]) -> String {
    let micros = |latency: Option<&Duration>| latency.copied().unwrap_or_default().as_secs_f64() * 1e6;
    let percentile = |percent: usize| micros(latencies.get((latencies.len() * percent).div_ceil(100) - 1));
    format!(
        r#"{{"requests":{},"p50_us":{:.1},"p95_us":{:.1},"p99_us":{:.1},"max_us":{:.1}}}"#,
        latencies.len(),
        percentile(50),
        percentile(95),
        percentile(99),
        micros(latencies.last()),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_those_of_the_nearest_rank() {
        let latencies: Vec<_> = (1..=200).map(Duration::from_micros).collect();
        let expected = r#"{"requests":200,"p50_us":100.0,"p95_us":190.0,"p99_us":198.0,"max_us":200.0}"#;
        assert_eq!(report(&latencies), expected);
    }
}
