//! Decoders of LZFSE and LZVN, the compression of newer macOS disk images and of compressed files in
//! HFS+ and APFS. An LZFSE stream has blocks of literals and matches in finite-state entropy coding, LZVN
//! blocks, and uncompressed blocks.
//!
//! ```text
//!  "bvx2" header, tables │ literals ←─ │ lengths and distances ←─     both are read from their end
//!  "bvxn" header │ LZVN      "bvx-" header │ bytes      "bvx$" the end
//! ```
//!
//! All numbers are little-endian. The only allocation is for a block's literals, at most 40,000.

mod fse;
mod lzvn;
mod output;

use std::io;

use fse::{Bits, Symbols, Values};
use output::Output;

const LITERALS_MAX: usize = 40_000;
const MATCHES_MAX: usize = 10_000;
/// The numbers of decoder states, and of symbols.
const LENGTH_STATES: usize = 64;
const DISTANCE_STATES: usize = 256;
const LITERAL_STATES: usize = 1024;
const LENGTH_SYMBOLS: usize = 20;
const DISTANCE_SYMBOLS: usize = 64;
const SYMBOLS: usize = 2 * LENGTH_SYMBOLS + DISTANCE_SYMBOLS + 256;
/// Header sizes: `bvx1` with its uncompressed tables, and `bvx2` without its compressed ones.
const HEADER1_BYTES: usize = 50 + 2 * SYMBOLS;
const HEADER2_BYTES: usize = 32;

/// Extra bits of each symbol of a literal count, and of a match length.
const LITERALS_BITS: [u8; LENGTH_SYMBOLS] =
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 3, 5, 8];
const LENGTH_BITS: [u8; LENGTH_SYMBOLS] =
    [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 5, 8, 11];

/// Decompresses a whole LZFSE stream into `block`.
///
/// # Errors
/// `InvalidData` if the stream is damaged or has another length.
pub fn unpack(packed: &[u8], block: &mut [u8]) -> io::Result<()> {
    let mut out = Output::new(block);
    let mut rest = packed;
    loop {
        let magic: [u8; 4] = *rest.first_chunk().ok_or_else(cut)?;
        let bytes = u32_le(rest, 4) as usize;
        match &magic {
            b"bvx$" => return out.finish(),
            b"bvx-" => {
                let raw = part(rest, 8, bytes)?;
                out.literals(raw)?;
                rest = &rest[8 + bytes..];
            }
            b"bvxn" => {
                let packed_bytes = part(rest, 8, 4).map(|field| u32_le(field, 0))? as usize;
                let end = out.end_of(bytes)?;
                lzvn::unpack(part(rest, 12, packed_bytes)?, &mut out, end, false)?;
                rest = &rest[12 + packed_bytes..];
            }
            b"bvx1" | b"bvx2" => {
                let header =
                    if magic[3] == b'1' { Header::plain(rest) } else { Header::packed(rest) }?;
                let end = out.end_of(bytes)?;
                let literals = part(rest, header.bytes, header.literal_bytes)?;
                let matches_at = header.bytes + header.literal_bytes;
                let matches = part(rest, matches_at, header.match_bytes)?;
                let literals = header.literals(literals)?;
                header.copy(matches, &literals, &mut out)?;
                if out.filled() != end {
                    return Err(invalid("a block has another length than its header states"));
                }
                rest = &rest[matches_at + header.match_bytes..];
            }
            _ => return Err(invalid("a block has an unknown type")),
        }
    }
}

/// Decompresses bare LZVN, without a header, into `block`. The end marker may be missing.
///
/// # Errors
/// `InvalidData` if the data is damaged or has another length.
pub fn unpack_lzvn(packed: &[u8], block: &mut [u8]) -> io::Result<()> {
    let mut out = Output::new(block);
    let end = out.room();
    lzvn::unpack(packed, &mut out, end, true)
}

/// An error about damaged data.
fn invalid(why: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.into())
}

/// Defines a function that reads a little-endian `$kind` at an offset, and zero past the end.
macro_rules! number {
    ($name:ident, $kind:ty) => {
        fn $name(bytes: &[u8], at: usize) -> $kind {
            let found = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
            found.map_or(0, |found| <$kind>::from_le_bytes(*found))
        }
    };
}

number!(u16_le, u16);
number!(u32_le, u32);
number!(u64_le, u64);

fn cut() -> io::Error {
    invalid("it is truncated")
}

/// `bytes` bytes at offset `at`.
fn part(packed: &[u8], at: usize, bytes: usize) -> io::Result<&[u8]> {
    packed.get(at..).and_then(|packed| packed.get(..bytes)).ok_or_else(cut)
}

/// The header of a block with finite-state entropy coding.
struct Header {
    /// Size of the header itself.
    bytes: usize,
    literal_count: usize,
    match_count: usize,
    literal_bytes: usize,
    match_bytes: usize,
    /// The unused bits in the last byte of each stream.
    literal_lack: u32,
    match_lack: u32,
    literal_states: [u16; 4],
    /// The initial states for literal counts, lengths and distances.
    states: [u16; 3],
    frequencies: [u16; SYMBOLS],
}

impl Header {
    /// Parses a header with uncompressed frequency tables.
    fn plain(bytes: &[u8]) -> io::Result<Header> {
        let head = part(bytes, 0, HEADER1_BYTES)?;
        let field = |at| u32_le(head, at) as usize;
        // Stored as a number from -7 to 0.
        let lack = |at| 0u32.wrapping_sub(u32_le(head, at));
        let mut frequencies = [0; SYMBOLS];
        frequencies.iter_mut().enumerate().for_each(|(n, f)| *f = u16_le(head, 50 + 2 * n));
        Header {
            bytes: HEADER1_BYTES,
            literal_count: field(12),
            match_count: field(16),
            literal_bytes: field(20),
            match_bytes: field(24),
            literal_lack: lack(28),
            match_lack: lack(40),
            literal_states: [32, 34, 36, 38].map(|at| u16_le(head, at)),
            states: [44, 46, 48].map(|at| u16_le(head, at)),
            frequencies,
        }
        .checked()
    }

    /// Parses a header with compressed frequency tables.
    fn packed(bytes: &[u8]) -> io::Result<Header> {
        let head = part(bytes, 0, HEADER2_BYTES)?;
        let words = [8, 16, 24].map(|at| u64_le(head, at));
        let field =
            |word: usize, at: u32, bits: u32| (words[word] >> at & ((1 << bits) - 1)) as usize;
        let state = |word, at| field(word, at, 10) as u16;
        let header_bytes = field(2, 0, 32);
        let tables = header_bytes.checked_sub(HEADER2_BYTES).ok_or_else(cut)?;
        Header {
            bytes: header_bytes,
            literal_count: field(0, 0, 20),
            match_count: field(0, 40, 20),
            literal_bytes: field(0, 20, 20),
            match_bytes: field(1, 40, 20),
            literal_lack: 7u32.wrapping_sub(field(0, 60, 3) as u32),
            match_lack: 7u32.wrapping_sub(field(1, 60, 3) as u32),
            literal_states: [state(1, 0), state(1, 10), state(1, 20), state(1, 30)],
            states: [state(2, 32), state(2, 42), state(2, 52)],
            frequencies: fse::frequencies(part(bytes, HEADER2_BYTES, tables)?)?,
        }
        .checked()
    }

    fn checked(self) -> io::Result<Header> {
        let [literals, length, distance] = self.states;
        let is_right = self.literal_count <= LITERALS_MAX
            && self.literal_count.is_multiple_of(4)
            && self.match_count <= MATCHES_MAX
            && self.literal_lack < 8
            && self.match_lack < 8
            && self.literal_states.iter().all(|&state| usize::from(state) < LITERAL_STATES)
            && usize::from(literals.max(length)) < LENGTH_STATES
            && usize::from(distance) < DISTANCE_STATES;
        match is_right {
            true => Ok(self),
            false => Err(invalid("the header of a block has impossible values")),
        }
    }

    /// Decodes the literals of the block, with four interleaved states.
    fn literals(&self, packed: &[u8]) -> io::Result<Vec<u8>> {
        let frequencies = &self.frequencies[2 * LENGTH_SYMBOLS + DISTANCE_SYMBOLS..];
        let symbols = Symbols::new(frequencies, LITERAL_STATES)?;
        let mut bits = Bits::new(packed, self.literal_lack)?;
        let mut states = self.literal_states;
        let mut literals = Vec::with_capacity(self.literal_count);
        while literals.len() < self.literal_count {
            for state in &mut states {
                literals.push(symbols.next(state, &mut bits)?);
            }
        }
        Ok(literals)
    }

    /// Decodes the block's output: literals and matches.
    fn copy(&self, packed: &[u8], mut literals: &[u8], out: &mut Output<'_>) -> io::Result<()> {
        let distance_bits: [u8; DISTANCE_SYMBOLS] = std::array::from_fn(|n| (n / 4) as u8);
        let (counts, rest) = self.frequencies.split_at(LENGTH_SYMBOLS);
        let (lengths, rest) = rest.split_at(LENGTH_SYMBOLS);
        let counts = Values::new(counts, LENGTH_STATES, &LITERALS_BITS)?;
        let lengths = Values::new(lengths, LENGTH_STATES, &LENGTH_BITS)?;
        let distances = Values::new(&rest[..DISTANCE_SYMBOLS], DISTANCE_STATES, &distance_bits)?;
        let mut bits = Bits::new(packed, self.match_lack)?;
        let [mut count_state, mut length_state, mut distance_state] = self.states;
        let mut distance = 0;
        for _ in 0..self.match_count {
            let count = counts.next(&mut count_state, &mut bits)?;
            let length = lengths.next(&mut length_state, &mut bits)?;
            match distances.next(&mut distance_state, &mut bits)? {
                // Zero repeats the previous distance.
                0 => {}
                new => distance = new,
            }
            let Some((now, later)) = literals.split_at_checked(count) else {
                return Err(invalid("a block has fewer literals than it uses"));
            };
            out.literals(now)?;
            out.copy(distance, length)?;
            literals = later;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
