//! What the started processes print: kept in a folder each, shown and left when the test fails.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// How many lines of a log a failing test shows; all of it is in the folder that stays.
const TAIL_LINES: usize = 40;

/// The folder of one process, with its log. Dropping it removes it, except in a panic.
#[derive(Debug)]
pub(crate) struct Logs {
    name: String,
    folder: TempDir,
}

impl Logs {
    pub(crate) fn new(name: &str) -> Self {
        let folder = tempfile::Builder::new()
            .prefix(&format!("tidegate-{name}-"))
            .tempdir()
            .expect("a temporary folder can be made");
        Self { name: name.to_owned(), folder }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The log, opened to append: a restarted process goes on in the same file.
    pub(crate) fn open(&self) -> File {
        OpenOptions::new().create(true).append(true).open(self.path()).expect("the log can be opened")
    }

    pub(crate) fn text(&self) -> String {
        let bytes = std::fs::read(self.path()).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("output.log")
    }

    fn tail(&self) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.folder.disable_cleanup(true);
            eprintln!("---- {}, all of it in {}\n{}", self.name, self.folder.path().display(), self.tail());
        }
    }
}
