//! `tidegate check FILE`: the filter's own judgement of a configuration, before Envoy sees it.

use std::io::Read;
use std::path::Path;
use std::process::ExitCode;

use plugin_config::{Errors, Problem};

/// The exit status of a configuration that Envoy would refuse.
const INVALID: u8 = 1;

/// The exit status where there is nothing to judge.
const UNREADABLE: u8 = 2;

/// The name of standard input.
const STANDARD_INPUT: &str = "-";

/// What to say of Envoy's configuration instead of the filter's.
const YAML: &str = "this looks like YAML; check the JSON alone that stands in it under configuration.value";

/// Prints what is to say about the file and returns the exit status: 0 for a valid one, 1 for one with
/// errors, all of which go to standard error, 2 for a file that cannot be read.
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the answer to a command line")]
pub fn run(file: &Path) -> ExitCode {
    let shown = file.display();
    let bytes = match read(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            eprintln!("{shown}: {error}");
            return ExitCode::from(UNREADABLE);
        }
    };
    match plugin_config::parse(&bytes) {
        Ok(config) => {
            let count = config.policies.len();
            println!("{shown}: ok, {count} {}", if count == 1 { "policy" } else { "policies" });
            ExitCode::SUCCESS
        }
        Err(errors) => {
            if is_yaml(&bytes, &errors) {
                eprintln!("{shown}: {YAML}");
            } else {
                eprintln!("{errors}");
            }
            ExitCode::from(INVALID)
        }
    }
}

/// At most one byte more than a configuration may have: what never ends is refused for its size.
fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = plugin_config::MAX_BYTES as u64 + 1;
    if file == Path::new(STANDARD_INPUT) {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(file)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

/// Whether what is not JSON is a mapping of YAML, such as Envoy's own configuration: its first line that says
/// something has a key and a colon, and no JSON begins so.
fn is_yaml(bytes: &[u8], errors: &Errors) -> bool {
    let is_json = !errors.iter().any(|error| matches!(error.problem, Problem::NotJson { .. }));
    let Ok(text) = core::str::from_utf8(bytes) else { return false };
    let says_nothing = |line: &&str| line.is_empty() || line.starts_with('#') || *line == "---";
    let first = text.lines().map(str::trim).find(|line| !says_nothing(line)).unwrap_or_default();
    let first = first.trim_start_matches("- ");
    let key = first.split_once(':').map_or("", |(key, _)| key);
    !is_json && key.starts_with(|char: char| char.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn looks_like_yaml(text: &str) -> bool {
        plugin_config::parse(text.as_bytes()).is_err_and(|errors| is_yaml(text.as_bytes(), &errors))
    }

    #[test]
    fn yaml_is_told_from_json_with_an_error() {
        for text in
            ["# Envoy\n\nadmin:\n  address:\n", "---\nname: x", "- name: x", "companion: { cluster: a }"]
        {
            assert!(looks_like_yaml(text), "{text}");
        }
        for text in
            ["", "not JSON", "{\"policies\": [}", "{\n  policies: []\n}", "[1: 2]", "\"a: b\"", "{}", ": x"]
        {
            assert!(!looks_like_yaml(text), "{text}");
        }
    }
}
