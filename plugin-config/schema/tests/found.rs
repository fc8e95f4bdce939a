//! What the fuzzer has found, and must not find again: `found/*`, its inputs as they were.

use std::fs;
use std::path::Path;

use config_schema::fuzzed::{both, check, choices};

#[test]
fn what_was_found_stays_mended() {
    let (judge, terrain) = both().unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/found");
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        check(&fs::read(&path).unwrap(), &judge, &terrain)
            .unwrap_or_else(|reason| panic!("{}: {reason}", path.display()));
    }
}

#[test]
fn choices_lead_somewhere() {
    let (judge, terrain) = both().unwrap();
    for input in choices() {
        check(&input, &judge, &terrain).unwrap();
    }
}
