//! Whatever stands in a configuration: the parser does not panic, tells every error well, agrees with the schema, and
//! what it accepts can be asked about any request.
//!
//! Input that begins with a zero byte, as no JSON does, makes the choices of the generator; all other is the
//! configuration itself. `make fuzz` builds and runs this with coverage; what it finds goes to `tests/found/` of the
//! schema's crate.

#![no_main]
#![expect(clippy::panic, reason = "how a fuzzer is told")]

use std::sync::LazyLock;

use config_schema::judge::Judge;
use config_schema::terrain::Terrain;
use libfuzzer_sys::fuzz_target;

static BOTH: LazyLock<(Judge, Terrain)> =
    LazyLock::new(|| config_schema::fuzzed::both().unwrap_or_else(|reason| panic!("{reason}")));

fuzz_target!(|input: &[u8]| {
    let (judge, terrain) = &*BOTH;
    if let Err(reason) = config_schema::fuzzed::check(input, judge, terrain) {
        panic!("{reason}");
    }
});
