//! The way down for tests of what a VM's death leaves behind. What is shipped is built without it.

use crate::host::{self, Map};

/// The header field of a request that is to be the VM's last.
const HEADER: &str = "x-tidegate-crash";

/// Panics where the effective context's request asks for it.
pub(crate) fn crash_if_asked() {
    assert!(host::header(Map::Request, HEADER).is_none(), "a request with {HEADER} has come");
}
