//! Randomness that a seed gives again: `SplitMix64` (Steele, Lea, Flood 2014).

/// A stream of numbers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is at least 1.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.next()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap()
    }

    /// An index below `bound`, which is at least 1.
    pub(crate) fn index(&mut self, bound: usize) -> usize {
        usize::try_from(self.below(bound as u64)).unwrap()
    }

    /// A number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(crate) fn chance(&mut self, per_mille: u64) -> bool {
        self.below(1_000) < per_mille
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }
}

/// How often each of several is drawn.
pub(crate) struct Skew {
    /// Sums of the weights up to and with each.
    sums: Vec<u64>,
}

impl Skew {
    pub(crate) fn even(count: usize) -> Self {
        Self::weighted(count, |_| 1)
    }

    /// The first one most often, the nth one an nth as often.
    pub(crate) fn zipf(count: usize) -> Self {
        Self::weighted(count, |rank| 1_000_000 / rank)
    }

    fn weighted(count: usize, weight: impl Fn(u64) -> u64) -> Self {
        let sums = (1..=count as u64).scan(0, |sum, rank| {
            *sum += weight(rank);
            Some(*sum)
        });
        Self { sums: sums.collect() }
    }

    pub(crate) fn draw(&self, random: &mut Random) -> usize {
        let drawn = random.below(*self.sums.last().unwrap());
        self.sums.partition_point(|sum| *sum <= drawn)
    }
}
