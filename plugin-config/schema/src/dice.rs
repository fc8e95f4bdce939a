//! Where chance comes from: a seed, or the bytes of a fuzzer.

/// Chance that can be had again.
#[derive(Debug)]
pub enum Dice<'a> {
    /// `SplitMix64`, from a seed.
    Seed(u64),
    /// Bytes, and zeros after them.
    Bytes(&'a [u8]),
}

impl Dice<'_> {
    /// A number below `sides`; 0 where there are none.
    pub fn roll(&mut self, sides: usize) -> usize {
        let number = match self {
            Self::Seed(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = *state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
            // Most choices are among a few: a byte each lets a fuzzer change one without moving the others.
            Self::Bytes(bytes) if sides <= 256 => u64::from(take(bytes)),
            Self::Bytes(bytes) => (0..8).fold(0, |number, _| number << 8 | u64::from(take(bytes))),
        };
        // A remainder is below `sides`, which came from that type.
        usize::try_from(number.checked_rem(sides as u64).unwrap_or(0)).unwrap_or(0)
    }

    /// True once in `times`.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.roll(times) + 1 == times
    }

    /// One of these.
    pub fn one_of<'b, T>(&mut self, items: &'b [T]) -> Option<&'b T> {
        items.get(self.roll(items.len()))
    }
}

fn take(bytes: &mut &[u8]) -> u8 {
    let Some((first, rest)) = bytes.split_first() else { return 0 };
    *bytes = rest;
    *first
}
