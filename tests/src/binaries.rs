//! Where the programs under test are: what `make build` and `make tools` leave in the checkout.

use std::env;
use std::path::{Path, PathBuf};

/// The root of the checkout.
fn root() -> &'static Path {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.parent().unwrap_or(package)
}

/// A file of the checkout, or the one that the environment variable names instead.
fn find(variable: &str, relative: &str, remedy: &str) -> PathBuf {
    let path = env::var_os(variable).map_or_else(|| root().join(relative), PathBuf::from);
    assert!(
        path.exists(),
        "{} is missing; run `{remedy}`, or name another file in {variable}",
        path.display()
    );
    path
}

pub(crate) fn companion() -> PathBuf {
    find("TIDEGATE_BIN", "dist/tidegate", "make build")
}

pub(crate) fn filter() -> PathBuf {
    find("TIDEGATE_WASM", "dist/tidegate.wasm", "make build")
}

pub(crate) fn crash_test_filter() -> PathBuf {
    find("TIDEGATE_CRASH_TEST_WASM", "dist/tidegate-crash-test.wasm", "make crash-test-wasm")
}

pub(crate) fn envoy() -> PathBuf {
    find("TIDEGATE_ENVOY", ".tools/bin/envoy", "make tools")
}

pub(crate) fn valkey_server() -> PathBuf {
    find("TIDEGATE_VALKEY", ".tools/bin/valkey-server", "make tools")
}

pub(crate) fn redis_server_6_2() -> PathBuf {
    find("TIDEGATE_REDIS_6_2", ".tools/bin/redis-server-6.2", "make tools")
}

/// The `redis-server` on the PATH, where there is one.
pub(crate) fn redis_server_on_path() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|folder| folder.join("redis-server")).find(|file| file.is_file())
}
