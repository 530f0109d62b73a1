//! A kernel that only reads: an upper bound on the speed of all others.

use super::{Chunk, Emitter, Kernel, Need};

/// Sums all bytes of the source and does nothing else.
#[derive(Debug, Clone, Copy, Default)]
pub struct Touch;

impl Kernel for Touch {
    type Output = u64;

    fn need(&self) -> Need {
        Need { skip_zeros: true, ..Need::default() }
    }

    fn work(&self, chunk: &Chunk<'_>, emit: &mut Emitter<'_, u64>) {
        *emit.output() = emit.output().wrapping_add(sum(chunk.owned()));
    }
}

/// Sums bytes in four independent lanes of 16-bit halves, so that the additions never limit the
/// rate. A half holds 255 additions of two bytes.
fn sum(bytes: &[u8]) -> u64 {
    const HALVES: u64 = 0x00FF_00FF_00FF_00FF;
    let mut total = 0u64;
    let blocks = bytes.chunks_exact(32 * 127);
    let rest = blocks.remainder();
    for block in blocks {
        let mut lanes = [0u64; 4];
        for words in block.chunks_exact(32) {
            for (lane, word) in lanes.iter_mut().zip(words.as_chunks::<8>().0) {
                let word = u64::from_le_bytes(*word);
                *lane += (word & HALVES) + (word >> 8 & HALVES);
            }
        }
        for lane in lanes {
            total += (0..4).map(|half| lane >> (16 * half) & 0xFFFF).sum::<u64>();
        }
    }
    total + rest.iter().map(|&byte| u64::from(byte)).sum::<u64>()
}

#[cfg(test)]
mod tests {
    use super::sum;

    #[test]
    fn the_sum_is_that_of_all_bytes() {
        for length in [0, 1, 31, 32, 4063, 4064, 4065, 100_003] {
            let bytes: Vec<u8> = (0..length).map(|i: usize| (i * 7 % 256) as u8 | 0x80).collect();
            let expected: u64 = bytes.iter().map(|&b| u64::from(b)).sum();
            assert_eq!(sum(&bytes), expected);
            assert_eq!(sum(&vec![0xFF; length]), 255 * length as u64);
        }
    }
}
