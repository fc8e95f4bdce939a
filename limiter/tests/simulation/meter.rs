//! The exact test of a promise over every window: admitted in any span T ≤ C + r · (T + slack).
//!
//! That holds for all windows if and only if a bucket of C + r · slack that is filled by what is admitted and
//! drains at r never overflows. Counted in parts of a token, so that nothing is rounded.

use limiter::quota::TokenBucket;

/// One promise to one client.
#[derive(Clone, Debug)]
pub(crate) struct Meter {
    quota: TokenBucket,
    slack_us: u64,
    level: u128,
    at_us: u64,
    /// Parts that come back in a microsecond at the fastest rate since then.
    fastest: u128,
}

impl Meter {
    /// A meter that has seen nothing. Admissions before `from_us` are not looked at.
    pub(crate) fn new(quota: TokenBucket, slack_us: u64, from_us: u64) -> Self {
        Self { quota, slack_us, level: 0, at_us: from_us, fastest: u128::from(quota.parts_per_micro()) }
    }

    /// Counts an admission; says by how many parts of a token the promise is broken.
    pub(crate) fn admit(&mut self, tokens: u64, now_us: u64) -> Result<(), u128> {
        if now_us < self.at_us {
            return Ok(());
        }
        self.drain(now_us);
        self.level += u128::from(tokens) * u128::from(self.quota.parts_per_token());
        match self.level.saturating_sub(self.most()) {
            0 => Ok(()),
            excess => Err(excess),
        }
    }

    /// Whole tokens that are left of a bucket that was charged with the admissions and nothing else.
    pub(crate) fn remaining(&mut self, now_us: u64) -> u64 {
        self.drain(now_us);
        let left = u128::from(self.quota.parts()).saturating_sub(self.level);
        u64::try_from(left / u128::from(self.quota.parts_per_token())).unwrap()
    }

    /// The limit is another one from now on; what was consumed is carried over, as far as an observer of
    /// admissions can tell: the time since the last charge may count at any of the rates since then, and what
    /// the slack let pass need not be known to the bucket.
    pub(crate) fn edit(&mut self, quota: TokenBucket, slack_us: u64) {
        let (token, micro) = (self.quota.parts_per_token(), self.quota.parts_per_micro());
        let scaled = |parts: u128| parts * u128::from(quota.parts_per_token());
        let passed = scaled(u128::from(micro) * u128::from(self.slack_us)).div_ceil(u128::from(token));
        self.level = (scaled(self.level) / u128::from(token)).saturating_sub(passed);
        let fastest = scaled(self.fastest).div_ceil(u128::from(token));
        self.fastest = fastest.max(u128::from(quota.parts_per_micro()));
        (self.quota, self.slack_us) = (quota, slack_us);
    }

    fn most(&self) -> u128 {
        u128::from(self.quota.parts()) + u128::from(self.quota.parts_per_micro()) * u128::from(self.slack_us)
    }

    fn drain(&mut self, now_us: u64) {
        let drained = self.fastest * u128::from(now_us.saturating_sub(self.at_us));
        self.level = self.level.saturating_sub(drained);
        self.at_us = self.at_us.max(now_us);
        self.fastest = u128::from(self.quota.parts_per_micro());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn the_meter_says_what_looking_at_every_window_says() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let quota = TokenBucket::new(random.between(1, 4), "7/s".parse().unwrap()).unwrap();
            let slack_us = random.pick(&[0, 100_000]);
            let mut meter = Meter::new(quota, slack_us, 0);
            let mut admitted: Vec<u64> = Vec::new();
            for _ in 0..30 {
                let now_us = admitted.last().copied().unwrap_or(0) + random.below(400_000);
                admitted.push(now_us);
                let breaks = |(earlier, from_us): (usize, &u64)| {
                    let count = (admitted.len() - earlier) as u64 * quota.parts_per_token();
                    count > quota.parts() + quota.parts_per_micro() * (now_us - from_us + slack_us)
                };
                let is_broken = admitted.iter().enumerate().any(breaks);
                assert_eq!(meter.admit(1, now_us).is_err(), is_broken, "seed {seed}");
                if is_broken {
                    break;
                }
            }
        }
    }
}
