//! `tidegate check FILE…`: the filter's own judgement of configurations, before Envoy sees them.
//!
//! The filter's parser finds what is wrong and says its path. Here the configurations are found in the files
//! that people have, and paths become lines and columns of those.

mod ended;
mod find;
mod finding;
mod istio;
mod json;
mod judge;
mod lines;
mod locate;
mod machine;
#[cfg(test)]
mod mutations;
mod origin;
mod text;
mod tree;
mod yaml;

use std::io::{Read, Write};
use std::path::Path;
use std::process::ExitCode;

use plugin_config::Config;

use crate::args::{Check, CheckFormat};
use finding::Severity;
use judge::Judgement;
use lines::Lines;

/// The exit status of a configuration that Envoy would refuse.
const INVALID: u8 = 1;

/// The exit status where there is nothing to judge.
const NOTHING: u8 = 2;

/// The name of standard input.
const STANDARD_INPUT: &str = "-";

/// The most bytes of a file: configurations of Envoy may be large.
pub const MAX_FILE_BYTES: usize = 16 << 20;

/// What to say of a file without a configuration of ours.
const NONE: &str = "no configuration of the Tidegate filter in it; check the JSON with \"policies\" itself, \
                    Envoy's configuration with the filter, or a WasmPlugin of Istio";

/// What was found in a file.
struct Checked {
    name: String,
    text: String,
    /// Or why there is nothing to judge.
    judgement: Result<Judgement, String>,
}

/// Prints what is to say about the files and returns the exit status: 0 for valid ones, 1 where one has errors,
/// 2 where there is nothing to check in one.
pub fn run(args: &Check) -> ExitCode {
    let mut document = machine::Document::default();
    let (mut invalid, mut nothing) = (false, false);
    for file in &args.files {
        let checked = check(file);
        let (errors, warnings) = checked.count();
        invalid |= errors > 0 || (args.deny_warnings && warnings > 0);
        nothing |= checked.judgement.is_err();
        match args.format {
            CheckFormat::Text => checked.print(),
            CheckFormat::Json => {
                document.errors += errors;
                document.warnings += warnings;
                document.files.push(checked.for_machines());
            }
        }
    }
    if args.format == CheckFormat::Json {
        say(&mut std::io::stdout(), &serde_json::to_string_pretty(&document).unwrap_or_default());
    }
    match (invalid, nothing) {
        (true, _) => ExitCode::from(INVALID),
        (false, true) => ExitCode::from(NOTHING),
        (false, false) => ExitCode::SUCCESS,
    }
}

/// The one configuration of a file, as another command of this program needs it; else what is to say is printed.
pub(crate) fn configuration(file: &Path) -> Result<Config, ExitCode> {
    let mut checked = check(file);
    if checked.count().0 == 0
        && let Ok(judgement) = &mut checked.judgement
    {
        if let (1, Some(config)) = (judgement.configurations, judgement.valid.pop()) {
            return Ok(config);
        }
        checked.judgement =
            Err("several configurations in it; put the one that is meant into a file".to_owned());
    }
    checked.print();
    Err(ExitCode::from(if checked.judgement.is_ok() { INVALID } else { NOTHING }))
}

fn check(file: &Path) -> Checked {
    let name = file.display().to_string();
    let bytes = match read(file) {
        Ok(bytes) => bytes,
        Err(error) => return Checked { name, text: String::new(), judgement: Err(error.to_string()) },
    };
    match String::from_utf8(bytes) {
        Ok(text) => {
            let judgement = judge::text(&text).ok_or_else(|| NONE.to_owned());
            Checked { name, text, judgement }
        }
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
            Checked { name, text, judgement: Ok(judge::bytes(error.as_bytes(), valid)) }
        }
    }
}

/// At most [`MAX_FILE_BYTES`]: what never ends is refused.
fn read(file: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = MAX_FILE_BYTES as u64 + 1;
    if file == Path::new(STANDARD_INPUT) {
        std::io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        std::fs::File::open(file)?.take(limit).read_to_end(&mut bytes)?;
    }
    if bytes.len() > MAX_FILE_BYTES {
        let words = format!("more than {MAX_FILE_BYTES} bytes; check the configuration alone");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, words));
    }
    Ok(bytes)
}

impl Checked {
    /// The errors and the warnings.
    fn count(&self) -> (usize, usize) {
        let Ok(judgement) = &self.judgement else { return (0, 0) };
        let is_error = |severity| severity == Severity::Error;
        let errors = judgement.findings.iter().filter(|finding| is_error(finding.severity)).count();
        (errors + judgement.left_out, judgement.findings.len() - errors)
    }

    fn for_machines(&self) -> machine::File {
        match &self.judgement {
            Ok(judgement) => machine::File::new(&self.name, judgement, &Lines::new(&self.text)),
            Err(reason) => machine::File::unchecked(&self.name, reason),
        }
    }

    /// Prints for people, findings on standard error and in colour where that is a terminal.
    fn print(&self) {
        let name = &self.name;
        let judgement = match &self.judgement {
            Ok(judgement) => judgement,
            Err(reason) => return say(&mut std::io::stderr(), &format!("{name}: {reason}")),
        };
        let mut errors = anstream::stderr();
        let lines = Lines::new(&self.text);
        for finding in &judgement.findings {
            say(&mut errors, &format!("{}\n", text::render(finding, name, &lines)));
        }
        let several =
            (judgement.configurations > 1).then(|| counted(judgement.configurations, "configuration"));
        let mut rest = several.map_or(String::new(), |count| format!(" in {count}"));
        let (count, warnings) = self.count();
        if warnings > 0 {
            rest = format!(", {}{rest}", counted(warnings, "warning"));
        }
        if judgement.left_out > 0 {
            rest = format!("{rest}, of which {} are shown", count - judgement.left_out);
        }
        if count > 0 {
            say(&mut errors, &format!("{name}: {}{rest}", counted(count, "error")));
        } else {
            let policies = judgement.policies();
            let things = if policies == 1 { "policy" } else { "policies" };
            say(&mut std::io::stdout(), &format!("{name}: ok, {policies} {things}{rest}"));
        }
    }
}

/// Prints a line. Whoever reads no further has seen enough, and is told all by the exit status.
fn say(stream: &mut dyn Write, line: &str) {
    let _ = writeln!(stream, "{line}");
}

fn counted(count: usize, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}
