//! Runs every file in `tests/cases/` as a test of its own, and sees to it that the whole plugin configuration is
//! in them.

mod case;
mod compare;
mod coverage;
mod meta;
mod run;
mod token;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let mut files = Vec::new();
    find(&folder, &mut files);
    files.sort();
    let mut trials = meta::trials(&files);
    for file in files {
        let name = file.strip_prefix(&folder).unwrap_or(&file).with_extension("");
        let name = name.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("::");
        trials.push(Trial::test(name, move || test(&file)));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// All case files in a folder and those within.
fn find(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder of the cases can be read") {
        let path = entry.expect("an entry can be read").path();
        if path.is_dir() {
            find(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            files.push(path);
        }
    }
}

fn test(file: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(file)?;
    let sections = case::read(&text)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let failures = runtime.block_on(run::run(&sections));
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n\n").into()) }
}
