//! Finite state entropy: a bit stream read from its end, and decoder tables.

use std::io;

use super::{SYMBOLS, cut, invalid, u64_le};

/// A bit stream read backwards.
pub(super) struct Bits<'p> {
    packed: &'p [u8],
    /// Bits left.
    left: usize,
}

impl<'p> Bits<'p> {
    /// A stream whose last byte has `lack` unused high bits.
    pub(super) fn new(packed: &'p [u8], lack: u32) -> io::Result<Self> {
        let left = (packed.len() * 8).checked_sub(lack as usize).ok_or_else(cut)?;
        Ok(Bits { packed, left })
    }

    /// Reads `count` bits, at most 32.
    fn pull(&mut self, count: u32) -> io::Result<usize> {
        self.left = self.left.checked_sub(count as usize).ok_or_else(cut)?;
        let (byte, shift) = (self.left / 8, self.left % 8);
        let window = match self.packed.get(byte..byte + 8) {
            Some(window) => u64_le(window, 0),
            None => {
                let mut last = [0; 8];
                let rest = self.packed.get(byte..).unwrap_or_default();
                last[..rest.len()].copy_from_slice(rest);
                u64::from_le_bytes(last)
            }
        };
        Ok((window >> shift & ((1 << count) - 1)) as usize)
    }
}

/// A decoder state: the number of bits to read, and the base of the next state.
#[derive(Clone, Copy)]
struct State {
    bits: u32,
    next: u16,
}

/// Fills a decoder table: each symbol gets as many contiguous states as its frequency.
///
/// # Errors
/// If the frequencies do not fill the states.
fn fill(frequencies: &[u16], states: usize, mut take: impl FnMut(usize, State)) -> io::Result<()> {
    let sum: usize = frequencies.iter().map(|&frequency| usize::from(frequency)).sum();
    if sum != states {
        return Err(invalid("a table of frequencies is damaged"));
    }
    for (symbol, &frequency) in frequencies.iter().enumerate().filter(|(_, f)| **f > 0) {
        let frequency = usize::from(frequency);
        // The shift that scales the frequency into the range from the number of states to below twice
        // that.
        let shift = states.ilog2() - frequency.ilog2();
        let with_more = ((2 * states) >> shift) - frequency;
        for index in 0..frequency {
            let state = match index.checked_sub(with_more) {
                None => {
                    State { bits: shift, next: (((frequency + index) << shift) - states) as u16 }
                }
                Some(index) => State { bits: shift - 1, next: (index << (shift - 1)) as u16 },
            };
            take(symbol, state);
        }
    }
    Ok(())
}

/// A decoder of bytes.
pub(super) struct Symbols(Vec<(State, u8)>);

impl Symbols {
    /// # Errors
    /// If the frequencies do not fill the states.
    pub(super) fn new(frequencies: &[u16], states: usize) -> io::Result<Self> {
        let mut all = Vec::with_capacity(states);
        fill(frequencies, states, |symbol, state| all.push((state, symbol as u8)))?;
        Ok(Symbols(all))
    }

    /// Decodes the next byte.
    pub(super) fn next(&self, state: &mut u16, bits: &mut Bits<'_>) -> io::Result<u8> {
        let (State { bits: count, next }, symbol) = self.0[usize::from(*state)];
        *state = next + bits.pull(count)? as u16;
        Ok(symbol)
    }
}

/// A decoder of numbers: each symbol is the base of a range, and extra bits select a number in it.
pub(super) struct Values(Vec<(State, u32, usize)>);

impl Values {
    /// # Errors
    /// If the frequencies do not fill the states.
    pub(super) fn new(frequencies: &[u16], states: usize, more_bits: &[u8]) -> io::Result<Self> {
        let bases = more_bits.iter().scan(0, |next, &bits| {
            let base = *next;
            *next += 1usize << bits;
            Some(base)
        });
        let symbols: Vec<(u32, usize)> =
            more_bits.iter().map(|&bits| u32::from(bits)).zip(bases).collect();
        let mut all = Vec::with_capacity(states);
        fill(frequencies, states, |symbol, state| {
            let (more, base) = symbols[symbol];
            all.push((state, more, base));
        })?;
        Ok(Values(all))
    }

    /// Decodes the next number.
    pub(super) fn next(&self, state: &mut u16, bits: &mut Bits<'_>) -> io::Result<usize> {
        let (State { bits: count, next }, more, base) = self.0[usize::from(*state)];
        // The state's bits come first, and are the higher ones.
        let both = bits.pull(count + more)?;
        *state = next + (both >> more) as u16;
        Ok(base + (both & ((1 << more) - 1)))
    }
}

/// Reads the frequencies of all symbols, in codes of 2 to 14 bits. All are 0 if there are no bytes.
///
/// # Errors
/// If they do not end with the bytes.
pub(super) fn frequencies(bytes: &[u8]) -> io::Result<[u16; SYMBOLS]> {
    let mut frequencies = [0; SYMBOLS];
    if bytes.is_empty() {
        return Ok(frequencies);
    }
    let damaged = || invalid("a table of frequencies is damaged");
    let (mut bits, mut count, mut rest) = (0u32, 0, bytes);
    for frequency in &mut frequencies {
        while let Some((&byte, later)) = rest.split_first().filter(|_| count <= 24) {
            bits |= u32::from(byte) << count;
            count += 8;
            rest = later;
        }
        let (value, used) = match bits & 0b11111 {
            low if low & 0b1 == 0 => ((low >> 1 & 1), 2),
            low if low & 0b11 == 0b01 => (2 + (low >> 2 & 1), 3),
            low if low & 0b111 == 0b011 => (4 + (low >> 3), 5),
            low if low & 0b1111 == 0b0111 => (8 + (bits >> 4 & 0xF), 8),
            _ => (24 + (bits >> 4 & 0x3FF), 14),
        };
        if used > count {
            return Err(damaged());
        }
        *frequency = value as u16;
        bits >>= used;
        count -= used;
    }
    match rest.is_empty() && count < 8 {
        true => Ok(frequencies),
        false => Err(damaged()),
    }
}
