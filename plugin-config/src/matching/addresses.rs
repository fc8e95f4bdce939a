//! `cidrs`: addresses of clients, and blocks of them.

use limiter::matching::{Cidr, CidrError};

use crate::entries;
use crate::error::{Problem, Remedy};
use crate::report::{Report, Reported};
use crate::spot::Spot;

/// The most blocks of one policy.
pub const MAX_CIDRS: usize = 64;

const FORM: &str =
    "use a list such as [\"10.0.0.0/8\", \"2001:db8::/32\"], or leave it out to match every address";
const BLOCK: &str = "use a block such as \"10.0.0.0/8\", or an address";

pub(super) fn read(spot: &Spot<'_>, report: &mut Report) -> Result<Vec<Cidr>, Reported> {
    let spots = spot.filled_list(MAX_CIDRS, "cidrs", FORM, report)?;
    entries::all_different(&spots, report, block)
}

fn block(spot: &Spot<'_>, report: &mut Report) -> Result<Cidr, Reported> {
    let (problem, remedy) = match spot.text(BLOCK, report)?.parse() {
        Ok(block) => return Ok(block),
        Err(CidrError::Malformed) => (Problem::NotABlock, Remedy::Do(BLOCK)),
        Err(CidrError::TooManyBits { most: 32 }) => {
            (Problem::OutOfRange, Remedy::Do("use a length of 32 bits or less"))
        }
        Err(CidrError::TooManyBits { .. }) => {
            (Problem::OutOfRange, Remedy::Do("use a length of 128 bits or less"))
        }
        Err(CidrError::HostBits { block }) => (Problem::HostBits, Remedy::Write(block.to_string())),
    };
    Err(spot.refuse(problem, remedy, report))
}
