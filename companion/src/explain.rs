//! `tidegate explain`: what a configuration makes of one request, and how its buckets stand in a store.

mod now;
mod request;
mod text;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use limiter::explain::{Explanation, answer_now, explain};
use serde::Serialize;

use crate::check;
use crate::store::{Location, Store};

pub use now::Now;
pub use request::{DescribedError, Field, MetadataEntry, Target};

/// The exit status where there is nothing to explain.
const UNREADABLE: u8 = 2;

/// What is to be explained.
#[derive(Debug, clap::Args)]
pub struct Explain {
    /// The request, as `POST /orders?x=1`; without a method it is a GET.
    #[arg(value_name = "REQUEST")]
    pub request: Target,

    /// The configuration, as `tidegate check` takes it.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,

    /// A header field of the request, as `x-api-key: abc`; once for each.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    pub headers: Vec<Field>,

    /// The client's address, as Envoy trusts it.
    #[arg(long, value_name = "ADDR", default_value = "203.0.113.7")]
    pub ip: std::net::IpAddr,

    /// The host, with or without a port; that of a `Host` field unless said.
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,

    /// Envoy's name of the route.
    #[arg(long, value_name = "NAME", default_value = "")]
    pub route: String,

    /// A claim of a verified token, as `payload.sub=42`, or `["payload", "a.b"]=42`; once for each.
    #[arg(long = "claim", value_name = "CLAIM")]
    pub claims: Vec<MetadataEntry>,

    /// What a filter before has noted, as `namespace.key=value`, or `["a.b", "key"]=value`; once for each.
    #[arg(long = "metadata", value_name = "ENTRY")]
    pub metadata: Vec<MetadataEntry>,

    /// What the route says, in the same form.
    #[arg(long = "route-metadata", value_name = "ENTRY")]
    pub route_metadata: Vec<MetadataEntry>,

    /// Look at the buckets in this store, and charge nothing; as `tidegate serve` takes it.
    #[arg(
        long,
        env = "TIDEGATE_STORE",
        hide_env_values = true,
        value_name = "STORE",
        value_parser = crate::args::LocationParser
    )]
    pub store: Option<Location>,

    /// How the explanation looks.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
}

/// How an explanation looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

/// All that is told.
#[derive(Debug, Serialize)]
struct Told {
    #[serde(flatten)]
    explanation: Explanation,
    /// How the buckets stand, by the policies' indices; nothing where no store was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    store: Option<Vec<Option<Now>>>,
}

/// How long to wait for the store.
const STORE_TIMEOUT: Duration = Duration::from_secs(3);

/// Prints the explanation and returns the exit status: 0 where there is one, 1 for a configuration that is not valid, 2
/// where there is nothing to explain or the store does not answer.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the answer to a command line")]
pub fn run(args: &Explain) -> ExitCode {
    let config = match check::configuration(&args.config) {
        Ok(config) => config,
        Err(status) => return status,
    };
    let request = args.given();
    let mut explanation = explain(&config.policies, &config.families, &request);
    let store = match args.store.as_ref().map(|location| ask(location, &explanation)).transpose() {
        Ok(store) => store,
        Err(error) => {
            eprintln!("the store does not tell: {error}");
            return ExitCode::from(UNREADABLE);
        }
    };
    if let Some(now) = &store {
        let full_us: Vec<Option<u64>> = now.iter().map(|now| now.map(|now| now.full_us)).collect();
        explanation.answer = answer_now(&config.policies, &config.families, &request, &full_us);
    }
    let told = Told { explanation, store };
    match args.format {
        Format::Text => print!("{}", text::shown(&told.explanation, told.store.as_deref())),
        Format::Json => match serde_json::to_string_pretty(&told) {
            Ok(json) => println!("{json}"),
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(UNREADABLE);
            }
        },
    }
    ExitCode::SUCCESS
}

fn ask(location: &Location, explanation: &Explanation) -> Result<Vec<Option<Now>>, String> {
    if *location == Location::Memory {
        return Err(
            "what a companion keeps in its memory is seen by nobody else; use the URL of a store".to_owned()
        );
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let store = Store::start(location, STORE_TIMEOUT).map_err(|error| error.to_string())?;
        now::ask(&store, explanation, STORE_TIMEOUT).await
    })
}
