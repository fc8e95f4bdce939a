//! The binary `tidegate`: configure, build, serve, drain.

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use clap::Parser;
use companion::args::{Args, Command, Serve, without_passwords};
use companion::store::Store;
use companion::{check, explain, http, log, server};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The exit status of what could not begin, as of a wrong command line.
const CANNOT_START: u8 = 2;

fn main() -> ExitCode {
    match Args::try_parse() {
        Ok(Args { command: Command::Check(check) }) => check::run(&check),
        Ok(Args { command: Command::Schema }) => schema(),
        Ok(Args { command: Command::Explain(args) }) => explain::run(&args),
        Ok(Args { command: Command::Serve(serve) }) => run(&serve),
        Err(error) => wrong(&error),
    }
}

/// Prints the JSON Schema.
fn schema() -> ExitCode {
    match std::io::stdout().write_all(plugin_config::SCHEMA.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        // Who reads no further has what it wanted.
        Err(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Tells of a wrong command line as clap does, without passwords.
#[expect(clippy::print_stderr, reason = "the answer to a command line")]
fn wrong(error: &clap::Error) -> ExitCode {
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let message = error.to_string();
    let shown = without_passwords(&message, arguments.skip(1));
    if shown == message {
        error.exit();
    }
    eprint!("{shown}");
    ExitCode::from(CANNOT_START)
}

fn run(args: &Serve) -> ExitCode {
    log::start(args.log_format, args.log_level);
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return cannot_start("no threads to serve with", &error),
    };
    runtime.block_on(serve(args))
}

async fn serve(args: &Serve) -> ExitCode {
    let signals = signal(SignalKind::terminate()).and_then(|end| Ok((end, signal(SignalKind::interrupt())?)));
    let signals = match signals {
        Ok(signals) => signals,
        Err(error) => return cannot_start("signals cannot be received", &error),
    };
    let listener = match TcpListener::bind(args.listen).await {
        Ok(listener) => listener,
        Err(error) => {
            let what = format!("cannot listen on {}; {}", args.listen, remedy(error.kind()));
            return cannot_start(&what, &error);
        }
    };
    let store = match Store::start(&args.store, args.store_timeout) {
        Ok(store) => store,
        Err(error) => return cannot_start("the store cannot be started", &error),
    };
    // With port 0 this line is the only place that says where.
    let address = listener.local_addr().unwrap_or(args.listen);
    tracing::info!(%address, store = %args.store, store_timeout = ?args.store_timeout, "listening");
    server::serve(listener, http::routes(store), asked_to_end(signals)).await;
    tracing::info!("ended");
    ExitCode::SUCCESS
}

async fn asked_to_end((mut terminate, mut interrupt): (Signal, Signal)) {
    let name = tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    };
    tracing::info!(signal = name, "draining");
}

/// What to do about an address that cannot be listened on.
const fn remedy(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::AddrInUse => "end what listens there already, or use another port",
        ErrorKind::AddrNotAvailable => "use an address of this machine, or 0.0.0.0 for all of them",
        ErrorKind::PermissionDenied => "use a port of 1024 or above",
        _ => "use another address",
    }
}

fn cannot_start(what: &str, error: &std::io::Error) -> ExitCode {
    tracing::error!(%error, "{what}");
    ExitCode::from(CANNOT_START)
}
