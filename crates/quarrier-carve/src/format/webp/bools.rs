//! The boolean decoder of VP8, and a partition of bytes that it reads: RFC 6386, section 7.

use crate::view::View;

/// What one macroblock takes at most is less: 25 blocks of 16 numbers of 23 bits, each bit up to
/// seven bits of the partition.
const AHEAD_BYTES: usize = 10 << 10;
const BUFFER_BYTES: usize = 32 << 10;
/// What encoders leave behind the last bit that is needed, at most: 16 to 31 bits as a rule.
const END_BITS: i64 = 48;

/// Bytes that one boolean decoder reads, a piece of them in memory.
pub(super) struct Partition {
    /// Where in the file the bytes behind the buffer lie.
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Where the decoder stands in the buffer; beyond it where it has overrun the partition.
    at: usize,
    value: u64,
    range: u32,
    bits: i32,
}

impl Partition {
    /// The bytes from `start` to `end` of the file.
    pub(super) fn new(start: u64, end: u64) -> Self {
        let (next, buffer) = (start, Vec::new());
        Partition { next, end, buffer, at: 0, value: 0, range: 254, bits: -8 }
    }

    /// Calls `read` with a decoder that has all it can ask for in one macroblock.
    pub(super) fn with<T>(
        &mut self,
        view: &mut View<'_>,
        read: impl FnOnce(&mut Bools<'_>) -> T,
    ) -> T {
        if self.next < self.end && self.buffer.len() - self.at < AHEAD_BYTES {
            self.fill(view);
        }
        let Partition { at, value, range, bits, .. } = *self;
        let mut bools = Bools { bytes: &self.buffer, at, value, range, bits };
        let read = read(&mut bools);
        (self.at, self.value) = (bools.at, bools.value);
        (self.range, self.bits) = (bools.range, bools.bits);
        read
    }

    #[inline(never)]
    fn fill(&mut self, view: &mut View<'_>) {
        self.buffer.drain(..self.at);
        self.at = 0;
        while self.next < self.end && self.buffer.len() < BUFFER_BYTES {
            let most = (self.end - self.next).min((BUFFER_BYTES - self.buffer.len()) as u64);
            let bytes = view.run(self.next, most as usize);
            if bytes.is_empty() {
                self.end = self.next;
            }
            self.next += bytes.len() as u64;
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Where in the file the decoder stands: behind all that it has looked at.
    pub(super) fn place(&self) -> u64 {
        self.next - self.buffer.len() as u64 + self.at as u64
    }

    /// Bits of the partition that the decoder has not yet needed; negative where it has used more
    /// than there are.
    pub(super) fn bits_left(&self) -> i64 {
        8 * (self.end as i64 - self.place() as i64) + i64::from(self.bits) + 8
    }

    /// Whether the decoder has come to the end as encoders end: what they flush leaves it at zero,
    /// and is four bytes or less, with perhaps one of padding.
    pub(super) fn is_used_up(&mut self, view: &mut View<'_>) -> bool {
        (0..=END_BITS).contains(&self.bits_left())
            && self.with(view, |bools| (0..END_BITS).all(|_| !bools.read(128)))
    }
}

/// A boolean decoder over bytes in memory; behind them it reads zeros.
pub(super) struct Bools<'b> {
    bytes: &'b [u8],
    at: usize,
    /// The eight bits that are compared, above `bits` bits yet to be used.
    value: u64,
    bits: i32,
    /// Less one.
    range: u32,
}

impl Bools<'_> {
    /// A bit that is 0 with a probability of `probability` in 256.
    #[inline(always)]
    pub(super) fn read(&mut self, probability: u8) -> bool {
        if self.bits < 0 {
            self.load();
        }
        let split = (self.range * u32::from(probability)) >> 8;
        let bit = (self.value >> self.bits) as u32 > split;
        let range = if bit {
            self.value -= u64::from(split + 1) << self.bits;
            self.range - split
        } else {
            split + 1
        };
        let shift = range.leading_zeros() - 24;
        self.bits -= shift as i32;
        self.range = (range << shift) - 1;
        bit
    }

    /// Steps over a bit that decides nothing: without a branch, which would often be guessed wrong.
    #[inline(always)]
    pub(super) fn skip(&mut self, probability: u8) {
        if self.bits < 0 {
            self.load();
        }
        let split = (self.range * u32::from(probability)) >> 8;
        let is_set = u32::from((self.value >> self.bits) as u32 > split);
        let set = is_set.wrapping_neg();
        self.value -= u64::from((split + 1) & set) << self.bits;
        let range = ((self.range - split) & set) | ((split + 1) & !set);
        let shift = range.leading_zeros() - 24;
        self.bits -= shift as i32;
        self.range = (range << shift) - 1;
    }

    /// Steps over a bit that is as often 0 as 1.
    #[inline(always)]
    pub(super) fn skip_even(&mut self) {
        if self.bits < 0 {
            self.load();
        }
        let split = self.range >> 1;
        let is_set = u32::from((self.value >> self.bits) as u32 > split);
        let set = is_set.wrapping_neg();
        self.value -= u64::from((split + 1) & set) << self.bits;
        self.bits -= 1;
        self.range = self.range.wrapping_add(set) | 1;
    }

    /// A number of `count` bits, the highest first.
    pub(super) fn number(&mut self, count: u32) -> u32 {
        (0..count).fold(0, |number, _| number << 1 | u32::from(self.read(128)))
    }

    /// Whether a flag is set.
    pub(super) fn flag(&mut self) -> bool {
        self.read(128)
    }

    /// Steps over a number of `count` bits that may be left out, with a flag before it.
    pub(super) fn skip_optional(&mut self, count: u32) {
        if self.flag() {
            self.number(count);
        }
    }

    #[inline(always)]
    fn load(&mut self) {
        if let Some(next) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            let next = u64::from_be_bytes(*next) >> 8;
            self.value = self.value << 56 | next;
            self.at += 7;
            self.bits += 56;
        } else {
            self.load_byte();
        }
    }

    #[inline(never)]
    fn load_byte(&mut self) {
        let byte = self.bytes.get(self.at).copied().unwrap_or(0);
        self.value = self.value << 8 | u64::from(byte);
        self.at += 1;
        self.bits += 8;
    }
}
