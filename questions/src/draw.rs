//! Reproducible random numbers.

/// A random number generator: Steele and Vigna's splitmix64.
#[derive(Debug, Clone)]
pub struct Draw(u64);

impl Draw {
    /// Creates a generator from a seed.
    pub fn new(seed: u64) -> Self {
        Draw(seed)
    }

    /// Returns 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.bits() % bound as u64) as usize
    }

    /// Returns a number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let span = (i128::from(high) - i128::from(low) + 1) as u128;
        (i128::from(low) + (u128::from(self.bits()) % span) as i128) as i64
    }

    /// Returns true with a probability of `percent` in 100.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns an element of `all`, which must not be empty.
    pub fn of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }

    /// Returns a number from `low` to `high`, log-uniformly distributed.
    pub fn magnitude(&mut self, low: usize, high: usize) -> usize {
        let share = self.bits() as f64 / u64::MAX as f64;
        let (low, high) = ((low as f64).ln(), (high as f64).ln());
        (low + share * (high - low)).exp().round() as usize
    }
}
