//! The two ends of a benchmarked Envoy: `open` sends requests at a fixed rate and measures latencies, `upstream`
//! answers what Envoy forwards. Both use a thread for each connection and nothing but the standard library's
//! sockets: no runtime's timer, of a millisecond, stands between a request and its moment.

mod http;
mod open;
mod upstream;

use std::process::ExitCode;

use clap::Parser;

/// Load for benchmarks.
#[derive(Debug, Parser)]
#[command(name = "bench-load")]
enum Command {
    /// Send requests at a fixed rate, and print their latencies as JSON.
    Open(open::Open),
    /// Answer all requests with 200, on a free port of 127.0.0.1 that is printed.
    Upstream,
}

fn main() -> ExitCode {
    let result = match Command::parse() {
        Command::Open(open) => open.run(),
        Command::Upstream => upstream::run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench-load: {error}");
            ExitCode::FAILURE
        }
    }
}
