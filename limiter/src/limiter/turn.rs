//! Which shard a request is counted in.

use crate::calls::RequestId;

/// Scatters requests over shards: a pattern in the order of requests makes none of shards. (The finaliser of
/// `SplitMix64`.)
pub(crate) fn turn_of(count: u64, request: RequestId) -> u64 {
    let mut mixed = count.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ u64::from(request.0);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
