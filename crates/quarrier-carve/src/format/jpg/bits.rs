//! The bits of a scan: its bytes up to a marker, without the zeros stuffed after FF.

/// Reads bits of `bytes`. Bits after the end or a marker are zero and counted as missing, so that
/// inner loops need not check.
#[derive(Clone, Copy)]
pub(super) struct Bits<'b> {
    bytes: &'b [u8],
    /// The next byte to load.
    at: usize,
    /// The highest bit is the next one.
    buffer: u64,
    /// The number of bits in the buffer; negative after reads beyond the last bit.
    count: i32,
}

impl<'b> Bits<'b> {
    /// Makes a reader that begins at bit `bit` (0 is the highest) of the first byte.
    pub(super) fn new(bytes: &'b [u8], bit: u32) -> Self {
        let mut bits = Bits { bytes, at: 0, buffer: 0, count: 0 };
        bits.refill();
        bits.skip(bit);
        bits
    }

    /// Fills the buffer to at least 32 bits, if that many are left.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        if self.count >= 32 {
            return;
        }
        if let Some(next) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            let next = u64::from_be_bytes(*next);
            let is_ff = next & (!next).wrapping_sub(0x0101_0101_0101_0101) & 0x8080_8080_8080_8080;
            if is_ff == 0 && self.count >= 0 {
                // Bytes loaded beyond the count are loaded again, with the same bits.
                self.buffer |= next >> self.count;
                let bytes = (63 - self.count) >> 3;
                self.at += bytes as usize;
                self.count += bytes * 8;
                return;
            }
        }
        self.refill_slowly();
    }

    #[inline(never)]
    fn refill_slowly(&mut self) {
        while (0..=56).contains(&self.count) {
            let Some(&byte) = self.bytes.get(self.at) else { return };
            if byte == 0xFF {
                if self.bytes.get(self.at + 1) != Some(&0) {
                    return;
                }
                self.at += 1;
            }
            self.at += 1;
            self.buffer |= u64::from(byte) << (56 - self.count);
            self.count += 8;
        }
    }

    /// Returns the next 16 bits, which must be in the buffer.
    #[inline(always)]
    pub(super) fn peek16(&self) -> u32 {
        (self.buffer >> 48) as u32
    }

    /// Returns the next `count` bits, 1 to 16, which must be in the buffer.
    #[inline(always)]
    pub(super) fn peek(&self, count: u32) -> u32 {
        (self.buffer >> (64 - count)) as u32
    }

    /// Skips up to 31 bits.
    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) {
        self.buffer <<= count;
        self.count -= count as i32;
    }

    /// Reads up to 16 bits.
    #[inline(always)]
    pub(super) fn read(&mut self, count: u32) -> u32 {
        if count == 0 {
            return 0;
        }
        self.refill();
        let bits = self.peek(count);
        self.skip(count);
        bits
    }

    /// Returns whether bits beyond the last one were read.
    #[inline(always)]
    pub(super) fn is_overrun(&self) -> bool {
        self.count < 0
    }

    /// Returns the place of the marker at which it stopped, if any.
    pub(super) fn marker(&self) -> Option<usize> {
        let is_marker = self.bytes.get(self.at) == Some(&0xFF)
            && self.bytes.get(self.at + 1).is_some_and(|next| *next != 0);
        is_marker.then_some(self.at)
    }

    /// Returns the end of the bytes that were examined.
    pub(super) fn seen(&self) -> usize {
        self.at
    }

    /// Returns the byte with the next bit, and the index of the bit in it. Between two bytes, this
    /// is the next byte.
    pub(super) fn place(&self) -> (usize, u32) {
        let (mut at, count) = (self.at, self.count.max(0) as u32);
        for _ in 0..count.div_ceil(8) {
            at -= 1;
            if self.bytes[at] == 0 && at > 0 && self.bytes[at - 1] == 0xFF {
                at -= 1;
            }
        }
        (at, (8 - count % 8) % 8)
    }

    /// Returns the next byte without any bit read.
    pub(super) fn next_byte(&self) -> usize {
        match self.place() {
            (at, 0) => at,
            (at, _) if self.bytes[at] == 0xFF => at + 2,
            (at, _) => at + 1,
        }
    }
}
