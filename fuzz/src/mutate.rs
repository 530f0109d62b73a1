//! Makes inputs, and minimises failing ones.

use quarrier_fuzz::Target;

/// Pseudo-random numbers: SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
pub(crate) struct Random(u64);

impl Random {
    /// Makes the generator for one input.
    pub(crate) fn new(seed: u64, input: u64) -> Self {
        let mut random = Random(seed);
        let start = random.next() ^ input;
        Random(start)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`; 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

const RANDOM_BYTES_MAX: usize = 1000;

/// Random bytes, or a mutated seed.
pub(crate) fn input(target: &Target, random: &mut Random) -> Vec<u8> {
    let mut input = match target.seeds.get(random.below(2 * target.seeds.len())) {
        Some(seed) => seed.to_vec(),
        None => {
            let most = [100, 300, RANDOM_BYTES_MAX][random.below(3)];
            let count = random.below(most);
            random.bytes(count)
        }
    };
    for _ in 0..random.below(12) {
        mutate(&mut input, target, random);
    }
    input
}

fn mutate(input: &mut Vec<u8>, target: &Target, random: &mut Random) {
    let at = random.below(input.len() + 1);
    let end = (at + 1 + random.below(20)).min(input.len());
    match random.below(8) {
        0..=2 => {
            let word = target.words[random.below(target.words.len())];
            input.splice(at..at, word.iter().copied());
        }
        3 => {
            let count = 1 + random.below(40);
            let some = random.bytes(count);
            input.splice(at..at, some);
        }
        4 => drop(input.drain(at..end)),
        5 => {
            let copy = input[at..end].to_vec();
            let to = random.below(input.len() + 1);
            input.splice(to..to, copy);
        }
        6 => {
            let byte = [0, 0xFF, b'a', random.next() as u8][random.below(4)];
            input[at..end].fill(byte);
        }
        _ => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
    }
}

/// Returns a smaller input that still `fails`: removes some bytes, replaces others by zeros.
pub(crate) fn smaller(mut input: Vec<u8>, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    loop {
        let before = input.clone();
        let mut size = input.len().next_power_of_two();
        while size > 0 {
            let mut at = 0;
            while at < input.len() {
                let end = (at + size).min(input.len());
                let mut without = input.clone();
                without.drain(at..end);
                let mut zeroed = input.clone();
                zeroed[at..end].fill(0);
                if fails(&without) {
                    input = without;
                } else {
                    if zeroed != input && fails(&zeroed) {
                        input = zeroed;
                    }
                    at = end;
                }
            }
            size /= 2;
        }
        if input == before {
            return input;
        }
    }
}
