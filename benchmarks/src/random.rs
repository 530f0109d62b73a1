//! Pseudo-random numbers that are the same on every machine: a seed determines the data.

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`, which must not be 0.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        ((u128::from(self.next()) * end as u128) >> 64) as usize
    }

    /// Returns one of `items`, which must not be empty.
    pub(crate) fn pick<'i, T>(&mut self, items: &'i [T]) -> &'i T {
        &items[self.below(items.len())]
    }

    /// Returns `length_bytes` letters of `alphabet`.
    pub(crate) fn word(&mut self, alphabet: &[u8], length_bytes: usize) -> Vec<u8> {
        (0..length_bytes).map(|_| *self.pick(alphabet)).collect()
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            part.copy_from_slice(&self.next().to_le_bytes()[..part.len()]);
        }
    }
}

/// Makes distinct words of one to four syllables.
pub(crate) fn vocabulary(random: &mut Random, words: usize) -> Vec<String> {
    const STARTS: [&str; 20] = [
        "b", "c", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "z", "st", "tr",
        "pl", "sh",
    ];
    const ENDS: [&str; 9] = ["a", "e", "i", "o", "u", "ai", "er", "on", "ar"];
    let mut seen = std::collections::HashSet::new();
    let mut found = Vec::with_capacity(words);
    while found.len() < words {
        let syllables = 1 + random.below(4);
        let word: String = (0..syllables)
            .map(|_| format!("{}{}", random.pick(&STARTS), random.pick(&ENDS)))
            .collect();
        if seen.insert(word.clone()) {
            found.push(word);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_do_not_change_from_run_to_run() {
        let mut random = Random::new(1);
        assert_eq!(random.next(), 0x910A_2DEC_8902_5CC1);
        assert!((0..1000).all(|_| random.below(7) < 7));
    }
}
