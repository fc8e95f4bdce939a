//! The scripts of `lua/`, built into the binary, so that companion and scripts are always of one version.

use std::sync::LazyLock;

/// Decides a batch of takes over token buckets; its header says what goes in and comes out.
pub static TOKEN_BUCKET: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("../../lua/token_bucket.lua")));

/// The text of a script and the name that stores know it by.
#[derive(Debug)]
pub struct Script {
    source: &'static str,
    sha1: String,
}

impl Script {
    /// A script by its text.
    pub fn new(source: &'static str) -> Self {
        Self { source, sha1: redis::Script::new(source).get_hash().to_owned() }
    }

    /// The Lua text.
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// The SHA-1 of the text in lower-case hexadecimal digits, as `EVALSHA` wants it.
    pub fn sha1(&self) -> &str {
        &self.sha1
    }
}
