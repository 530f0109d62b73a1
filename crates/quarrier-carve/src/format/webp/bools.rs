//! The boolean decoder of VP8, and a partition of bytes that it reads: RFC 6386, section 7.

use crate::view::View;

/// What one macroblock takes at most is less: 25 blocks of 16 numbers of 23 bits, each bit up to
/// seven bits of the partition.
const AHEAD_BYTES: usize = 10 << 10;
const BUFFER_BYTES: usize = 32 << 10;
/// Zeros behind the bytes of a partition in memory: a decoder takes so many bytes at once.
const ZEROS: usize = 8;
/// What a byte costs beyond itself: it takes as long as dozens of bytes that are only looked at.
const FUEL_MORE: u64 = 6;
/// What encoders leave behind the last bit that is needed, at most: 16 to 31 bits as a rule.
const END_BITS: i64 = 48;

/// Bytes that one boolean decoder reads, a piece of them in memory.
pub(super) struct Partition {
    /// Where in the file the bytes behind the buffer lie.
    next: u64,
    end: u64,
    /// [`ZEROS`] follow.
    buffer: Vec<u8>,
    state: State,
}

/// Where a decoder stands.
#[derive(Clone, Copy)]
pub(super) struct State {
    /// In the buffer; beyond it where it has overrun the partition.
    at: usize,
    /// The eight bits that are compared, above `bits` bits yet to be used.
    value: u64,
    bits: i32,
    /// Less one.
    range: u32,
}

impl Partition {
    /// The bytes from `start` to `end` of the file.
    pub(super) fn new(start: u64, end: u64) -> Self {
        let (next, buffer) = (start, vec![0; ZEROS]);
        let state = State { at: 0, value: 0, range: 254, bits: -8 };
        Partition { next, end, buffer, state }
    }

    /// A decoder that has all it can ask for in one macroblock. Where it stands then is to be
    /// [kept](Partition::keep).
    #[inline(always)]
    pub(super) fn begin(&mut self, view: &mut View<'_>) -> Bools<'_> {
        if self.next < self.end && self.held() < self.state.at + AHEAD_BYTES {
            self.fill(view);
        }
        Bools { bytes: &self.buffer, state: self.state }
    }

    /// The next decoder begins where another one stands.
    #[inline(always)]
    pub(super) fn keep(&mut self, state: State) {
        self.state = state;
    }

    /// Bytes of the partition in the buffer.
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

    /// Where in the file the decoder stands: behind all that it has looked at.
    pub(super) fn place(&self) -> u64 {
        self.next - self.held() as u64 + self.state.at as u64
    }

    /// Bits of the partition that the decoder has not yet needed; negative where it has used more
    /// than there are.
    pub(super) fn bits_left(&self) -> i64 {
        8 * (self.end as i64 - self.place() as i64) + i64::from(self.state.bits) + 8
    }

    /// Whether the decoder has come to the end as encoders end: what they flush leaves it at zero,
    /// and is four bytes or less, with perhaps one of padding.
    pub(super) fn is_used_up(&mut self, view: &mut View<'_>) -> bool {
        let mut bools = self.begin(view);
        let is_still = (0..END_BITS).all(|_| !bools.read(128));
        (0..=END_BITS).contains(&self.bits_left()) && is_still
    }
}

/// A boolean decoder over bytes in memory, the last of them [`ZEROS`]; behind them it reads more.
#[derive(Clone, Copy)]
pub(super) struct Bools<'b> {
    bytes: &'b [u8],
    state: State,
}

impl Bools<'_> {
    /// Where it stands.
    #[inline(always)]
    pub(super) fn state(&self) -> State {
        self.state
    }

    /// A bit that is 0 with a probability of `probability` in 256.
    ///
    /// What is done for a 0 and for a 1 is written down twice, and not alike: else it is made one
    /// without a branch, where each bit waits for the one before.
    #[inline(always)]
    pub(super) fn read(&mut self, probability: u8) -> bool {
        if self.state.bits < 0 {
            self.load();
        }
        let split = (self.state.range * u32::from(probability)) >> 8;
        if (self.state.value >> self.state.bits) as u32 > split {
            self.state.value -= u64::from(split + 1) << self.state.bits;
            let range = self.state.range - split;
            let shift = range.leading_zeros() - 24;
            self.state.bits -= shift as i32;
            self.state.range = (range << shift) - 1;
            true
        } else {
            // Below 255, so that one more fits a byte.
            let shift = (split as u8 + 1).leading_zeros();
            self.state.bits = self.state.bits.wrapping_sub(shift as i32);
            self.state.range = (split << shift) + ((1 << shift) - 1);
            false
        }
    }

    /// Steps over a bit that decides nothing: without a branch, which would often be guessed wrong.
    #[inline(always)]
    pub(super) fn skip(&mut self, probability: u8) {
        if self.state.bits < 0 {
            self.load();
        }
        let split = (self.state.range * u32::from(probability)) >> 8;
        let is_set = u32::from((self.state.value >> self.state.bits) as u32 > split);
        let set = is_set.wrapping_neg();
        self.state.value -= u64::from((split + 1) & set) << self.state.bits;
        let range = ((self.state.range - split) & set) | ((split + 1) & !set);
        let shift = range.leading_zeros() - 24;
        self.state.bits -= shift as i32;
        self.state.range = (range << shift) - 1;
    }

    /// Steps over a bit that is as often 0 as 1.
    #[inline(always)]
    pub(super) fn skip_even(&mut self) {
        if self.state.bits < 0 {
            self.load();
        }
        let split = self.state.range >> 1;
        let is_set = u32::from((self.state.value >> self.state.bits) as u32 > split);
        let set = is_set.wrapping_neg();
        self.state.value -= u64::from((split + 1) & set) << self.state.bits;
        self.state.bits -= 1;
        self.state.range = self.state.range.wrapping_add(set) | 1;
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

    /// Takes seven bytes. No call is left in this, so that all of a decoder stays in registers.
    #[inline(always)]
    fn load(&mut self) {
        let from = self.state.at.min(self.bytes.len().saturating_sub(ZEROS));
        let next = self.bytes.get(from..).and_then(|rest| rest.first_chunk::<ZEROS>());
        let next = next.map_or(0, |next| u64::from_be_bytes(*next));
        self.state.value = self.state.value << 56 | next >> 8;
        self.state.at += 7;
        self.state.bits += 56;
    }
}
