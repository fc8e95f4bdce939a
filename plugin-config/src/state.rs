//! `state`: how much memory the proxy gives to local buckets and leases.

use crate::error::{Problem, Remedy};
use crate::report::{Report, Reported};
use crate::spot::Spot;
use crate::words::Words;

/// The slots where none are given: a few megabytes, and room for tens of thousands of clients at once.
pub const DEFAULT_SLOTS: u32 = 4096;
/// The most slots. With keys and the proxy's overhead they take less than a gibibyte.
pub const MAX_SLOTS: u32 = 1 << 19;

/// How a state is written.
const FORM: &str = "use an object such as {\"slots\": 4096}";
const SLOTS: &str = "use 1 or more, such as 4096";
const WORDS: Words = Words::new(&["slots"]);

/// The number of slots: 1 to [`MAX_SLOTS`].
pub(crate) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<u32, Reported> {
    let fields = spot.object(&WORDS, FORM, report)?;
    let spot = fields.required("slots", SLOTS, report)?;
    let slots = spot.positive_up_to(MAX_SLOTS.into(), SLOTS, report)?;
    // It fits, being in range.
    u32::try_from(slots).map_err(|_| spot.refuse(Problem::TooLarge, Remedy::AtMost(MAX_SLOTS.into()), report))
}
