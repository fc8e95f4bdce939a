//! The command line: all of it is parsed before anything starts.

mod address;
mod secret;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use crate::explain::Explain;
use crate::store::Location;

pub use address::AddressError;
pub(crate) use secret::LocationParser;
pub use secret::without_passwords;

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
    /// Check configurations as the filter would, and say all that is wrong with them, and where.
    #[command(after_help = CHECK_STATUS)]
    Check(Check),
    /// Explain what a configuration makes of one request: which policies apply and why the others do not, the key, the
    /// limit and the cost, and what it is answered.
    #[command(after_help = EXPLAIN_HELP)]
    Explain(Box<Explain>),
    /// Print the JSON Schema of plugin configurations, for editors.
    Schema,
}

const EXPLAIN_HELP: &str = "\
Example:
  tidegate explain --config tidegate.json 'POST /orders?x=1' -H 'x-api-key: abc' --ip 203.0.113.7

Exit status:
  0  it is explained
  1  the configuration is not valid
  2  there is nothing to explain: a file cannot be read, the store does not answer, or the command line is wrong";

const CHECK_STATUS: &str = "\
Exit status:
  0  the configurations are valid
  1  one is not; with --format text, every error is on standard error
  2  else, there is nothing to check: a file cannot be read or has no configuration of the filter, or the
     command line is wrong";

/// What to check.
#[derive(Debug, clap::Args)]
pub struct Check {
    /// The configuration's JSON, or what it stands in: a configuration of Envoy, in YAML or JSON, or resources
    /// of Istio (`WasmPlugin`) or Envoy Gateway (`EnvoyExtensionPolicy`); `-` reads it from standard input.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// How to print what is found: for people, or one JSON document on standard output.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: CheckFormat,

    /// End with 1 where there are warnings, too.
    #[arg(long)]
    pub deny_warnings: bool,
}

/// How findings look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// For people.
    Text,
    /// For machines.
    Json,
}

/// How to serve.
#[derive(Debug, clap::Args)]
pub struct Serve {
    /// The address to listen on, as `127.0.0.1:8081` or `[::]:8081`; port 0 takes a free one.
    #[arg(long, env = "TIDEGATE_LISTEN", value_name = "ADDR", value_parser = address::parse)]
    pub listen: SocketAddr,

    /// Where the truth is kept: `memory`, or `redis://[USER[:PASSWORD]@]HOST[:PORT][/DATABASE]`, which may as
    /// well begin with `valkey://`. Everybody on the machine can read a command line; a password is better
    /// off in the environment.
    #[arg(
        long,
        env = "TIDEGATE_STORE",
        hide_env_values = true,
        value_name = "STORE",
        value_parser = LocationParser
    )]
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

    fn parse(listen: &str, store: &str, timeout: &str) -> Result<Serve, String> {
        let options = ["--listen", listen, "--store", store, "--store-timeout", timeout];
        let line = ["tidegate", "serve"].into_iter().chain(options);
        match Args::try_parse_from(line).map_err(|error| error.to_string())?.command {
            Command::Serve(serve) => Ok(serve),
            Command::Check(_) | Command::Explain(_) | Command::Schema => panic!("serve was asked for"),
        }
    }

    #[test]
    fn what_cannot_work_is_refused_with_the_remedy() {
        let refusal = |listen: &str, store: &str, timeout: &str| parse(listen, store, timeout).unwrap_err();
        assert!(refusal("127.0.0.1:0", "redis:/host", "30ms").contains("use memory or redis://"));
        assert!(refusal("127.0.0.1:0", "memory", "30").contains("use a whole number and a unit"));
        assert!(
            refusal("8081", "memory", "30ms")
                .contains(r#"use an address and a port, as in "127.0.0.1:8081""#)
        );
    }

    #[test]
    fn a_name_and_a_valkey_are_taken() {
        let serve = parse("localhost:8081", "valkey://localhost", "30ms").unwrap();
        assert_eq!((serve.listen.port(), serve.listen.ip().is_loopback()), (8081, true));
        assert_eq!(serve.store.to_string(), "redis://localhost:6379/0");
    }

    #[test]
    fn the_help_of_check_tells_its_exit_statuses() {
        let help = Args::try_parse_from(["tidegate", "check", "--help"]).unwrap_err().to_string();
        for line in
            ["  0  the configurations are valid", "  1  one is not;", "  2  else, there is nothing to check"]
        {
            assert!(help.contains(line), "{help}");
        }
    }
}
