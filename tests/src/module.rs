//! The modules that an Envoy under test can run as its filter.

use std::path::{Path, PathBuf};

use crate::binaries;

/// A module to be run as the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Module {
    /// The filter as it is shipped.
    #[default]
    Shipped,
    /// The same with one addition: it panics on a request that bears [`Module::CRASH`].
    CrashTest,
    /// A filter that takes any configuration and does nothing: what Envoy costs by itself.
    Noop,
}

impl Module {
    /// The header field that brings [`Module::CrashTest`] down.
    pub const CRASH: (&str, &str) = ("x-tidegate-crash", "1");

    /// Its bytes.
    pub fn bytes(self) -> Vec<u8> {
        match self {
            Self::Shipped => std::fs::read(binaries::filter()).expect("the module can be read"),
            Self::CrashTest => std::fs::read(binaries::crash_test_filter()).expect("the module can be read"),
            Self::Noop => NOOP.concat(),
        }
    }

    /// Its file; one that is not built lies in `folder`.
    pub(crate) fn file(self, folder: &Path) -> PathBuf {
        match self {
            Self::Shipped => binaries::filter(),
            Self::CrashTest => binaries::crash_test_filter(),
            Self::Noop => noop_file(folder),
        }
    }
}

/// The smallest module that Envoy runs. The first byte of each line below is a section's number, the second its
/// length.
#[rustfmt::skip]
const NOOP: &[&[u8]] = &[
    b"\0asm\x01\0\0\0",
    // Two types: nothing to nothing, and a number to a number.
    b"\x01\x09\x02\x60\0\0\x60\x01\x7f\x01\x7f",
    // A function of each.
    b"\x03\x03\x02\0\x01",
    // One page of memory.
    b"\x05\x03\x01\0\x01",
    // What is exported: the memory, the version of the ABI, the start, and where the host gets memory from.
    b"\x07\x4d\x04\x06memory\x02\0\x17proxy_abi_version_0_2_1\0\0\x0b_initialize\0\0\x18proxy_on_memory_allocate\0\x01",
    // The one does nothing; the other, which nobody calls, returns 0.
    b"\x0a\x09\x02\x02\0\x0b\x04\0\x41\0\x0b",
];

fn noop_file(folder: &Path) -> PathBuf {
    let file = folder.join("noop.wasm");
    std::fs::write(&file, NOOP.concat()).expect("the module can be written");
    file
}
