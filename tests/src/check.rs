//! `tidegate check` as a person runs it.

use std::process::Command;

use crate::binaries;

/// What `tidegate check` says of a configuration: its exit status, and what it printed.
pub fn check(configuration: &[u8]) -> (Option<i32>, String) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let file = folder.path().join("policies.json");
    std::fs::write(&file, configuration).expect("the configuration can be written");
    let output = Command::new(binaries::companion())
        .arg("check")
        .arg(&file)
        .output()
        .expect("the companion can be run");
    let printed = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&printed).into_owned())
}
