//! Prefix codes of lossless WebP, and the bits from which they are read: RFC 9649, section 3.7.

use super::Fault;
use crate::view::View;

const BUFFER_BYTES: usize = 16 << 10;
/// Maximum number of bytes that old encoders leave at the end, which are zero in all known files.
const END_BYTES: u64 = 4;
/// Maximum length of a code in bits.
const LENGTH_MAX: usize = 15;
/// Codes of up to this many bits are decoded by table lookup.
const LOOK_BITS: usize = 8;
/// The order of code lengths in the stream.
const LENGTHS_ORDER: [usize; 19] =
    [17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

/// Reads bits of a range of a file, the lowest of each byte first; after the end it reads zeros.
pub(super) struct Bits<'v, 's> {
    pub(super) view: &'v mut View<'s>,
    /// The offset in the file of the bytes after the buffer.
    next: u64,
    end: u64,
    buffer: Vec<u8>,
    at: usize,
    value: u64,
    count: u32,
}

impl<'v, 's> Bits<'v, 's> {
    /// Reads bits of the bytes from `start` to `end`.
    pub(super) fn new(view: &'v mut View<'s>, start: u64, end: u64) -> Self {
        Bits { view, next: start, end, buffer: Vec::new(), at: 0, value: 0, count: 0 }
    }

    /// Fills the buffer to at least 56 bits.
    #[inline(always)]
    fn refill(&mut self) {
        if let Some(next) = self.buffer.get(self.at..).and_then(|rest| rest.first_chunk::<8>()) {
            // Bytes loaded beyond the count are loaded again, with the same bits.
            self.value |= u64::from_le_bytes(*next) << self.count;
            let bytes = (63 - self.count) >> 3;
            self.at += bytes as usize;
            self.count += bytes * 8;
        } else {
            self.refill_slowly();
        }
    }

    #[inline(never)]
    fn refill_slowly(&mut self) {
        if self.next < self.end {
            self.buffer.drain(..self.at);
            self.at = 0;
            while self.next < self.end && self.buffer.len() < BUFFER_BYTES {
                let most = (self.end - self.next).min((BUFFER_BYTES - self.buffer.len()) as u64);
                let bytes = self.view.run(self.next, most as usize);
                if bytes.is_empty() {
                    self.end = self.next;
                }
                self.next += bytes.len() as u64;
                self.buffer.extend_from_slice(bytes);
            }
        }
        while self.count < 56 {
            let byte = self.buffer.get(self.at).copied().unwrap_or(0);
            self.value |= u64::from(byte) << self.count;
            self.at += 1;
            self.count += 8;
        }
    }

    /// Reads a number of `count` bits, up to 24.
    #[inline]
    pub(super) fn read(&mut self, count: u32) -> u32 {
        if self.count < count {
            self.refill();
        }
        let bits = self.value & ((1 << count) - 1);
        self.skip(count);
        bits as u32
    }

    #[inline(always)]
    fn skip(&mut self, count: u32) {
        self.value >>= count;
        self.count -= count;
    }

    /// Returns the end of the byte with the last bit in the file; beyond the end after an overrun.
    pub(super) fn place(&self) -> u64 {
        self.next - self.buffer.len() as u64 + self.at as u64 - u64::from(self.count / 8)
    }

    /// Whether bits beyond the last one were read.
    pub(super) fn is_overrun(&self) -> bool {
        self.place() > self.end
    }

    /// Whether the bits end near the last byte, and the rest is zero.
    pub(super) fn is_used_up(&mut self) -> bool {
        let Some(bytes) = self.end.checked_sub(self.place()) else { return false };
        let rest = self.count % 8;
        bytes <= END_BYTES && self.read(rest) == 0 && (0..bytes).all(|_| self.read(8) == 0)
    }

    /// Makes an error at this place.
    pub(super) fn fault(&self, reason: &'static str) -> Fault {
        Fault::new(self.place(), reason)
    }
}

/// A prefix code.
pub(super) struct Code {
    /// By the next bits: the symbol, and its length in the lower four bits; 0 for longer codes.
    look: Box<[u16]>,
    /// The number of bits that index `look`.
    look_bits: u32,
    /// The number of codes of each length.
    counts: [u16; LENGTH_MAX + 1],
    /// Sorted by length, then by value.
    symbols: Box<[u16]>,
}

impl Code {
    /// Reads the code of an alphabet.
    pub(super) fn read(bits: &mut Bits<'_, '_>, alphabet: usize) -> Result<Code, Fault> {
        let mut lengths = vec![0; alphabet];
        if bits.read(1) == 1 {
            let count = bits.read(1) + 1;
            let wide = if bits.read(1) == 1 { 8 } else { 1 };
            for symbol in [Some(wide), (count == 2).then_some(8)].into_iter().flatten() {
                let symbol = bits.read(symbol) as usize;
                *lengths.get_mut(symbol).ok_or_else(|| bits.fault("no such symbol"))? = 1;
            }
        } else {
            let mut of_lengths = [0; LENGTHS_ORDER.len()];
            for place in LENGTHS_ORDER.into_iter().take(4 + bits.read(4) as usize) {
                of_lengths[place] = bits.read(3) as u8;
            }
            let code = Code::new(&of_lengths).ok_or_else(|| bits.fault("no prefix code"))?;
            code.read_lengths(bits, &mut lengths)?;
        }
        Code::new(&lengths).ok_or_else(|| bits.fault("no prefix code"))
    }

    /// Reads the code lengths of another code.
    fn read_lengths(&self, bits: &mut Bits<'_, '_>, lengths: &mut [u8]) -> Result<(), Fault> {
        let mut symbols_max = lengths.len();
        if bits.read(1) == 1 {
            let wide = 2 + 2 * bits.read(3);
            symbols_max = 2 + bits.read(wide) as usize;
            if symbols_max > lengths.len() {
                return Err(bits.fault("more symbols than there are"));
            }
        }
        let (mut at, mut last) = (0, 8);
        for _ in 0..symbols_max {
            if at == lengths.len() {
                break;
            }
            let (length, times) = match self.symbol(bits) {
                16 => (last, 3 + bits.read(2)),
                17 => (0, 3 + bits.read(3)),
                18 => (0, 11 + bits.read(7)),
                length => (length as u8, 1),
            };
            let repeated = lengths.get_mut(at..at + times as usize);
            repeated.ok_or_else(|| bits.fault("more symbols than there are"))?.fill(length);
            at += times as usize;
            if length != 0 {
                last = length;
            }
        }
        Ok(())
    }

    /// Makes the code with these lengths of symbols; `None` if no symbol has a code.
    fn new(lengths: &[u8]) -> Option<Code> {
        let mut counts = [0u16; LENGTH_MAX + 1];
        lengths.iter().for_each(|length| counts[usize::from(*length)] += 1);
        counts[0] = 0;
        let mut starts = [0; LENGTH_MAX + 2];
        for length in 1..=LENGTH_MAX {
            starts[length + 1] = starts[length] + usize::from(counts[length]);
        }
        let mut symbols = vec![0; starts[LENGTH_MAX + 1]].into_boxed_slice();
        let mut places = starts;
        for (symbol, length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            symbols[places[usize::from(*length)]] = symbol as u16;
            places[usize::from(*length)] += 1;
        }
        if let [only] = *symbols {
            let look = vec![only << 4].into_boxed_slice();
            return Some(Code { look, look_bits: 0, counts, symbols });
        }
        let used =
            (1..).zip(&counts[1..]).map(|(length, count)| u32::from(*count) << (15 - length));
        if used.sum::<u32>() != 1 << LENGTH_MAX {
            return None;
        }
        let longest = (1..=LENGTH_MAX).rev().find(|length| counts[*length] > 0)?;
        let look_bits = longest.min(LOOK_BITS);
        let mut look = vec![0; 1 << look_bits].into_boxed_slice();
        let mut code = 0usize;
        for length in 1..=look_bits {
            for symbol in &symbols[starts[length]..starts[length + 1]] {
                let reversed = code.reverse_bits() >> (usize::BITS as usize - length);
                for place in (reversed..look.len()).step_by(1 << length) {
                    look[place] = symbol << 4 | length as u16;
                }
                code += 1;
            }
            code <<= 1;
        }
        Some(Code { look, look_bits: look_bits as u32, counts, symbols })
    }

    /// Reads a symbol.
    #[inline(always)]
    pub(super) fn symbol(&self, bits: &mut Bits<'_, '_>) -> u32 {
        if bits.count < LENGTH_MAX as u32 {
            bits.refill();
        }
        let entry = self.look[bits.value as usize & ((1 << self.look_bits) - 1)];
        if entry & 15 == 0 && self.look_bits > 0 {
            return self.long_symbol(bits);
        }
        bits.skip(u32::from(entry & 15));
        u32::from(entry >> 4)
    }

    #[inline(never)]
    fn long_symbol(&self, bits: &mut Bits<'_, '_>) -> u32 {
        let (mut code, mut first, mut skipped) = (0usize, 0usize, 0usize);
        for length in 1..=LENGTH_MAX {
            let count = usize::from(self.counts[length]);
            code |= (bits.value >> (length - 1)) as usize & 1;
            if code - first < count {
                bits.skip(length as u32);
                return u32::from(self.symbols[skipped + code - first]);
            }
            skipped += count;
            first = (first + count) << 1;
            code <<= 1;
        }
        // Unreachable: a code is complete, so each string of 15 bits begins with a codeword.
        0
    }

    /// Whether it has only one symbol, which takes no bits.
    pub(super) fn is_silent(&self) -> bool {
        self.look_bits == 0
    }
}
