//! `tidegate check FILE`: the filter's own judgement of a configuration, before Envoy sees it.

use std::path::Path;
use std::process::ExitCode;

/// The exit status of a configuration that Envoy would refuse.
const INVALID: u8 = 1;

/// The exit status where there is nothing to judge.
const UNREADABLE: u8 = 2;

/// Prints what is to say about the file and returns the exit status: 0 for a valid one, 1 for one with
/// errors, all of which go to standard error, 2 for a file that cannot be read.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the answer to a command line")]
pub fn run(file: &Path) -> ExitCode {
    let shown = file.display();
    let bytes = match std::fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("{shown}: {error}");
            return ExitCode::from(UNREADABLE);
        }
    };
    match plugin_config::parse(&bytes) {
        Ok(config) => {
            let count = config.policies.len();
            println!("{shown}: ok, {count} policies");
            ExitCode::SUCCESS
        }
        Err(errors) => {
            eprintln!("{errors}");
            ExitCode::from(INVALID)
        }
    }
}
