//! Prints the JSON Schema, as `make schema` keeps it in the repository; or writes what a fuzzer begins with to a folder.

#[path = "../../tests/cases/mod.rs"]
mod cases;

use std::fs;
use std::io::{Error, Write};
use std::path::Path;

use config_schema::fuzzed::{choices, dictionary};

fn main() -> Result<(), Error> {
    match std::env::args_os().nth(1) {
        Some(folder) => seeds(Path::new(&folder)),
        None => std::io::stdout().write_all(config_schema::text().as_bytes()),
    }
}

/// Leaves `dictionary` there, and in `seeds/` what tests accept and refuse, and choices for the generator.
fn seeds(folder: &Path) -> Result<(), Error> {
    let seeds = folder.join("seeds");
    fs::create_dir_all(&seeds)?;
    fs::write(folder.join("dictionary"), dictionary())?;
    fs::write(seeds.join("whole"), include_bytes!("../../tests/accepted/whole.json"))?;
    for (index, case) in cases::refused().iter().enumerate() {
        fs::write(seeds.join(format!("{}-{index}", case.file)), &case.config)?;
    }
    for (index, choices) in choices().enumerate() {
        fs::write(seeds.join(format!("choices-{index}")), choices)?;
    }
    Ok(())
}
