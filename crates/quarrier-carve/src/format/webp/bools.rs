//! The boolean decoder of VP8, and the partition of bytes that it reads: RFC 6386, section 7.

use crate::view::View;

/// Upper bound on the bytes of a macroblock: 25 blocks of 16 numbers of 23 bits, each bit up to seven bits of
/// the partition.
const AHEAD_BYTES: usize = 10 << 10;
const BUFFER_BYTES: usize = 32 << 10;
/// Zeros after the bytes of a partition in memory: a decoder loads this many bytes at once.
const ZEROS: usize = 8;
/// The additional cost of a byte: decoding it takes as long as merely examining dozens of bytes.
const FUEL_MORE: u64 = 6;
/// Maximum bits that encoders leave after the last necessary one, usually 16 to 31.
const END_BITS: i64 = 48;

/// The bytes of one boolean decoder, a part of them in memory.
pub(super) struct Partition {
    /// The offset in the file of the bytes after the buffer.
    next: u64,
    end: u64,
    /// The buffer, followed by [`ZEROS`].
    buffer: Vec<u8>,
    state: State,
}

/// The state of a decoder.
#[derive(Clone, Copy)]
pub(super) struct State {
    /// The position in the buffer; beyond its end if the decoder has overrun the partition.
    at: usize,
    /// `count` bits from the highest on; decoding compares eight of them. More bits of the same
    /// bytes may follow.
    value: u64,
    count: i32,
    /// The range before its shift to the left by `shift`, which makes it 128 or more.
    range: u32,
    shift: u32,
}

impl Partition {
    /// Makes a partition of the bytes from `start` to `end` of the file.
    pub(super) fn new(start: u64, end: u64) -> Self {
        let (next, buffer) = (start, vec![0; ZEROS]);
        let state = State { at: 0, value: 0, count: 0, range: 255, shift: 0 };
        Partition { next, end, buffer, state }
    }

    /// Returns a decoder that has enough bytes for one macroblock. Its state must then be
    /// [kept](Partition::keep).
    #[inline(always)]
    pub(super) fn begin(&mut self, view: &mut View<'_>) -> Bools<'_> {
        if self.next < self.end && self.held() < self.state.at + AHEAD_BYTES {
            self.fill(view);
        }
        Bools { bytes: &self.buffer, state: self.state }
    }

    /// Saves the state at which the next decoder begins.
    #[inline(always)]
    pub(super) fn keep(&mut self, state: State) {
        self.state = state;
    }

    /// Returns the number of the partition's bytes in the buffer.
    fn held(&self) -> usize {
        self.buffer.len() - ZEROS
    }

    #[inline(never)]
    fn fill(&mut self, view: &mut View<'_>) {
        let over = self.state.at.saturating_sub(self.held());
        self.buffer.truncate(self.held());
        self.buffer.drain(..self.state.at - over);
        self.state.at = over;
        while self.next < self.end && self.buffer.len() < BUFFER_BYTES {
            let most = (self.end - self.next).min((BUFFER_BYTES - self.buffer.len()) as u64);
            let bytes = view.run(self.next, most as usize);
            if bytes.is_empty() {
                self.end = self.next;
            }
            self.next += bytes.len() as u64;
            self.buffer.extend_from_slice(bytes);
            let count = bytes.len() as u64;
            view.spend(FUEL_MORE * count);
        }
        self.buffer.extend_from_slice(&[0; ZEROS]);
    }

    /// Returns the decoder's offset in the file: after all bytes that it has examined.
    pub(super) fn place(&self) -> u64 {
        self.next - self.held() as u64 + self.state.at as u64
    }

    /// Returns the number of bits of the partition that the decoder has not yet needed; negative if it has
    /// used more than there are.
    pub(super) fn bits_left(&self) -> i64 {
        8 * (self.end as i64 - self.place() as i64) + i64::from(self.state.count)
    }

    /// Returns whether the decoder is at the end as encoders leave it: their flush leaves it at zero, and is
    /// four bytes or less, with perhaps one of padding.
    pub(super) fn is_used_up(&mut self, view: &mut View<'_>) -> bool {
        let mut bools = self.begin(view);
        let is_still = (0..END_BITS).all(|_| !bools.read(128));
        (0..=END_BITS).contains(&self.bits_left()) && is_still
    }
}

/// A boolean decoder over bytes in memory, the last of them [`ZEROS`], after which it reads further zeros.
#[derive(Clone, Copy)]
pub(super) struct Bools<'b> {
    bytes: &'b [u8],
    state: State,
}

impl Bools<'_> {
    /// Returns its state.
    #[inline(always)]
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// Decodes a bit that is 0 with a probability of `probability` in 256.
    ///
    /// Each bit depends on the range that the previous one leaves. To shorten this chain, the code multiplies
    /// the unshifted range and shifts the product, while it computes the shift.
    ///
    /// The code for a 0 and for a 1 is written twice, and differently: otherwise the compiler merges it
    /// without a branch, and each bit waits for the one before. A table that maps each bit of a block, with
    /// nothing to predict but the end of the block, took as long as the branches when tried, because a bit
    /// then waits for the lookup, and takes fifty instructions.
    #[inline(always)]
    pub(super) fn read(&mut self, probability: u8) -> bool {
        let split = self.split(probability);
        if self.state.value >> 56 >= u64::from(split) {
            let range = (self.state.range << self.state.shift) - split;
            let shift = range.leading_zeros() - 24;
            self.state.value = (self.state.value - (u64::from(split) << 56)) << shift;
            self.state.count -= shift as i32;
            (self.state.range, self.state.shift) = (range, shift);
            true
        } else {
            let shift = (split as u8).leading_zeros();
            self.state.value <<= shift;
            self.state.count = self.state.count.wrapping_sub(shift as i32);
            (self.state.range, self.state.shift) = (split, shift);
            false
        }
    }

    /// Returns the split of the range: values below it are a 0.
    #[inline(always)]
    fn split(&mut self, probability: u8) -> u32 {
        if self.state.count < 8 {
            self.load();
        }
        // The split is `1 + ((range << shift) - 1) * probability / 256`.
        let (probability, shift) = (u32::from(probability), self.state.shift);
        (self.state.range * probability + ((256 - probability) >> shift)) >> (8 - shift)
    }

    /// Skips a bit whose value is not needed: without a branch, which would often be mispredicted.
    #[inline(always)]
    pub(super) fn skip(&mut self, probability: u8) {
        let split = self.split(probability);
        let set = u32::from(self.state.value >> 56 >= u64::from(split)).wrapping_neg();
        let range = (self.state.range << self.state.shift) - split;
        self.state.range = (range & set) | (split & !set);
        self.state.shift = self.state.range.leading_zeros() - 24;
        let value = self.state.value.wrapping_sub(u64::from(split & set) << 56);
        self.state.value = value << self.state.shift;
        self.state.count -= self.state.shift as i32;
    }

    /// Skips a bit that is equally likely 0 or 1.
    #[inline(always)]
    pub(super) fn skip_even(&mut self) {
        self.skip(128);
    }

    /// Decodes a number of `count` bits, the highest first.
    pub(super) fn number(&mut self, count: u32) -> u32 {
        (0..count).fold(0, |number, _| number << 1 | u32::from(self.read(128)))
    }

    /// Decodes a flag.
    pub(super) fn flag(&mut self) -> bool {
        self.read(128)
    }

    /// Skips an optional number of `count` bits, which a flag precedes.
    pub(super) fn skip_optional(&mut self, count: u32) {
        if self.flag() {
            self.number(count);
        }
    }

    /// Loads seven bytes. It calls no function, so the whole decoder stays in registers.
    #[inline(always)]
    fn load(&mut self) {
        let from = self.state.at.min(self.bytes.len().saturating_sub(ZEROS));
        let next = self.bytes.get(from..).and_then(|rest| rest.first_chunk::<ZEROS>());
        self.state.value |= next.map_or(0, |next| u64::from_be_bytes(*next)) >> self.state.count;
        self.state.at += 7;
        self.state.count += 56;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use quarrier_core::source::Memory;

    use super::*;
    use crate::view::Extent;

    /// Follows RFC 6386 literally, a bit at a time.
    struct Plain<'b> {
        bytes: &'b [u8],
        value: u32,
        range: u32,
        shifted: u32,
    }

    impl<'b> Plain<'b> {
        fn new(bytes: &'b [u8]) -> Self {
            let mut plain = Plain { bytes, value: 0, range: 255, shifted: 0 };
            plain.value = plain.next() << 8;
            plain.value |= plain.next();
            plain
        }

        fn next(&mut self) -> u32 {
            let Some((first, rest)) = self.bytes.split_first() else { return 0 };
            self.bytes = rest;
            u32::from(*first)
        }

        fn read(&mut self, probability: u8) -> bool {
            let split = 1 + (((self.range - 1) * u32::from(probability)) >> 8);
            let is_set = self.value >= split << 8;
            if is_set {
                self.range -= split;
                self.value -= split << 8;
            } else {
                self.range = split;
            }
            while self.range < 128 {
                (self.value, self.range, self.shifted) =
                    (self.value << 1, self.range << 1, self.shifted + 1);
                if self.shifted.is_multiple_of(8) {
                    self.value |= self.next();
                }
            }
            is_set
        }
    }

    proptest! {
        #[test]
        fn bits_are_those_of_the_standard(
            // No encoder begins with 255: the first range ends before it.
            first in 0..255u8,
            rest in proptest::collection::vec(any::<u8>(), 0..400),
            probabilities in proptest::collection::vec((any::<u8>(), 0..4u8), 0..6000),
        ) {
            let bytes = [&[first][..], &rest].concat();
            let length = bytes.len() as u64;
            let source = Memory::new("sample", bytes.clone());
            let mut view = View::of(&source, &[Extent { offset: 0, length }]);
            let mut partition = Partition::new(0, length);
            let mut plain = Plain::new(&bytes);
            for some in probabilities.chunks(100) {
                let mut bools = partition.begin(&mut view);
                for (probability, how) in some {
                    match how {
                        0 => {
                            bools.skip(*probability);
                            plain.read(*probability);
                        }
                        1 => {
                            bools.skip_even();
                            plain.read(128);
                        }
                        _ => prop_assert_eq!(bools.read(*probability), plain.read(*probability)),
                    }
                }
                let state = bools.state();
                partition.keep(state);
                prop_assert_eq!(partition.bits_left(), 8 * length as i64 - i64::from(plain.shifted));
            }
        }
    }
}
