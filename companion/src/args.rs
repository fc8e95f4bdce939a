//! The command line: all of it is parsed before anything starts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use crate::store::Location;

/// Distributed rate limiting for Envoy: the companion service and its tools.
#[derive(Debug, Parser)]
#[command(name = "tidegate", version, arg_required_else_help = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve takes over HTTP/1.1 and HTTP/2 until SIGTERM or SIGINT.
    Serve(Serve),
    /// Check a plugin configuration as the filter would, and say all that is wrong with it.
    Check {
        /// The configuration: the JSON that goes into Envoy.
        file: PathBuf,
    },
}

/// How to serve.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// The address to listen on, as `127.0.0.1:8080` or `[::]:8080`; port 0 takes a free one.
    #[arg(long, env = "TIDEGATE_LISTEN", value_name = "ADDR")]
    pub listen: SocketAddr,

    /// Where the truth is kept: `memory`, or `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`.
    #[arg(long, env = "TIDEGATE_STORE", hide_env_values = true, value_name = "STORE")]
    pub store: Location,

    /// How long to wait for the store's answer to one batch; it is not asked again.
    #[arg(
        long,
        env = "TIDEGATE_STORE_TIMEOUT",
        value_name = "SPAN",
        default_value = "30ms",
        value_parser = limiter::span::parse
    )]
    pub store_timeout: Duration,

    /// How log lines look.
    #[arg(long, env = "TIDEGATE_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,

    /// Which log lines there are: the least level.
    #[arg(long, env = "TIDEGATE_LOG_LEVEL", value_name = "LEVEL", default_value = "info")]
    pub log_level: LogLevel,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// A JSON object a line.
    Json,
}

/// The least level of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "the levels are known to everybody")]
pub enum LogLevel {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_remedy() {
        let refusal = |store: &str, timeout: &str| {
            let line = [
                "tidegate",
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--store",
                store,
                "--store-timeout",
                timeout,
            ];
            Args::try_parse_from(line).unwrap_err().to_string()
        };
        assert!(refusal("redis:/host", "30ms").contains("use memory or redis://"));
        assert!(refusal("memory", "30").contains("use a whole number and a unit"));
    }
}
