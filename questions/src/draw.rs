//! Random numbers that a seed repeats.

/// A stream of random numbers: Steele and Vigna's splitmix64.
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Draw(seed)
    }

    /// Any 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    /// A number from `low` to `high`, both possible.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = (i128::from(high) - i128::from(low) + 1) as u128;
        (i128::from(low) + (u128::from(self.bits()) % span) as i128) as i64
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `all`, which are not none.
    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// A number from `low` to `high` whose logarithm is evenly distributed.
    pub fn magnitude(&mut self, low: usize, high: usize) -> usize {
        let share = self.bits() as f64 / u64::MAX as f64;
        let (low, high) = ((low as f64).ln(), (high as f64).ln());
        (low + share * (high - low)).exp().round() as usize
    }
}
