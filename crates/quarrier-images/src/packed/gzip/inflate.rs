//! A Deflate decoder that stops at block boundaries, where decoding can resume with only the preceding
//! 32 KiB, which can be cached in a file. `miniz_oxide`, as built here, does not report block
//! boundaries.
//!
//! *RFC 1951*. The output goes into a ring; matches can refer to its last 32 KiB.

use super::{RING_BYTES, WINDOW_BYTES};

/// Maximum input for a block's header, or for a symbol with its extra bits.
pub(super) const HEADER_BYTES_MAX: usize = 1024;
const SYMBOL_BYTES_MAX: usize = 16;

const LITERAL_BITS: u32 = 11;
const DISTANCE_BITS: u32 = 9;
const LENGTH_ORDER: [usize; 19] =
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// The reason why decoding stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// More input is needed.
    Input,
    /// The ring was filled to its end.
    Output,
    /// At the start of a block.
    Block,
    /// At the end of the stream; the remaining bits of the last byte are unused.
    Stream,
}

/// A description of damage.
pub(super) type Damage = &'static str;

/// The state of a decoder between two calls.
pub(super) struct Inflate {
    /// Unused bits of the last input byte: fewer than 8.
    bits: u64,
    count: u32,
    state: State,
    is_last: bool,
    /// The number of bytes that a match can refer to.
    history: usize,
    literals: Table,
    distances: Table,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Block,
    Stored(usize),
    Codes,
    Copy { length: usize, distance: usize },
    Done,
}

/// The meaning of a code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Nothing,
    Literal,
    End,
    /// A base value, with this many extra bits.
    Number(u8),
    /// A subtable, indexed by the following bits.
    Link,
}

#[derive(Debug, Clone, Copy)]
struct Code {
    bits: u8,
    meaning: Meaning,
    value: u16,
}

const NOTHING: Code = Code { bits: 0, meaning: Meaning::Nothing, value: 0 };

/// A decoding table indexed by bits; longer codes are in subtables of equal size after it.
struct Table {
    codes: Vec<Code>,
    first_bits: u32,
    more_bits: u32,
}

/// The input, with a bit buffer.
struct Input<'i> {
    bytes: &'i [u8],
    at: usize,
    bits: u64,
    count: u32,
}

impl Input<'_> {
    /// Fills the bit buffer: at least 56 bits unless the input ends.
    fn refill(&mut self) {
        if let Some(next) = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk()) {
            self.bits |= u64::from_le_bytes(*next) << self.count;
            self.at += ((63 - self.count) / 8) as usize;
            self.count |= 56;
            return;
        }
        while self.count <= 56
            && let Some(&byte) = self.bytes.get(self.at)
        {
            self.bits |= u64::from(byte) << self.count;
            self.at += 1;
            self.count += 8;
        }
    }

    fn peek(&self, bits: u32) -> usize {
        (self.bits & ((1 << bits) - 1)) as usize
    }

    fn skip(&mut self, bits: u32) -> Result<(), Damage> {
        self.count = self.count.checked_sub(bits).ok_or("it ends inside the compressed data")?;
        self.bits >>= bits;
        Ok(())
    }

    /// Reads up to 16 bits.
    fn take(&mut self, bits: u32) -> Result<usize, Damage> {
        if self.count < bits {
            self.refill();
        }
        let value = self.peek(bits);
        self.skip(bits).map(|()| value)
    }

    /// Returns whole unused bytes to the input.
    fn give_back(&mut self) {
        self.at -= (self.count / 8) as usize;
        self.count %= 8;
        self.bits &= (1 << self.count) - 1;
    }

    /// Decodes one code.
    fn code(&mut self, table: &Table) -> Result<Code, Damage> {
        let mut code = table.codes[self.peek(table.first_bits)];
        if code.meaning == Meaning::Link {
            let further = (self.bits >> table.first_bits) as usize & ((1 << table.more_bits) - 1);
            code = table.codes[usize::from(code.value) + further];
        }
        if code.meaning == Meaning::Nothing {
            return Err("the compressed data is damaged");
        }
        self.skip(code.bits.into()).map(|()| code)
    }
}

impl Default for Inflate {
    fn default() -> Self {
        let table = || Table { codes: Vec::new(), first_bits: 0, more_bits: 0 };
        let (literals, distances) = (table(), table());
        let state = State::Block;
        Inflate { bits: 0, count: 0, state, is_last: false, history: 0, literals, distances }
    }
}

impl Inflate {
    /// Starts at a block; `count` bits of the previous byte belong to it, and the ring has `history`
    /// bytes. All three are zero at the start of a stream.
    pub(super) fn begin(&mut self, history: usize, bits: u8, count: u8) {
        (self.bits, self.count) = (bits.into(), count.into());
        (self.history, self.state, self.is_last) = (history, State::Block, false);
    }

    /// At a block: the bits of the previous byte that belong to it, and their number.
    pub(super) fn block_bits(&self) -> Option<(u8, u8)> {
        let is_block = matches!(self.state, State::Block) && !self.is_last;
        is_block.then_some((self.bits as u8, self.count as u8))
    }

    /// Decodes into `ring` from `at` up to its end. `is_all` means that no more input follows;
    /// otherwise there must be at least [`HEADER_BYTES_MAX`] bytes. Returns the reason for stopping,
    /// and the numbers of bytes read and written.
    ///
    /// # Errors
    /// If the data is damaged or truncated.
    pub(super) fn decode(
        &mut self,
        bytes: &[u8],
        is_all: bool,
        ring: &mut [u8; RING_BYTES],
        at: usize,
    ) -> Result<(Stop, usize, usize), Damage> {
        let mut input = Input { bytes, at: 0, bits: self.bits, count: self.count };
        let mut out = at;
        let stop = loop {
            let stop = match self.state {
                State::Block if self.is_last => {
                    input.give_back();
                    (input.bits, input.count, self.state) = (0, 0, State::Done);
                    Some(Stop::Stream)
                }
                State::Block if out > at => Some(Stop::Block),
                State::Block => {
                    if !is_all && bytes.len() - input.at < HEADER_BYTES_MAX {
                        Some(Stop::Input)
                    } else {
                        self.header(&mut input)?;
                        None
                    }
                }
                State::Stored(left) => self.stored(&mut input, left, is_all, ring, &mut out)?,
                State::Codes => self.codes(&mut input, is_all, ring, (at, &mut out))?,
                State::Copy { length, distance } => self.copy(length, distance, ring, &mut out),
                State::Done => Some(Stop::Stream),
            };
            if let Some(stop) = stop {
                break stop;
            }
        };
        input.give_back();
        (self.bits, self.count) = (input.bits, input.count);
        self.history = (self.history + out - at).min(WINDOW_BYTES);
        Ok((stop, input.at, out - at))
    }

    fn header(&mut self, input: &mut Input<'_>) -> Result<(), Damage> {
        input.refill();
        self.is_last = input.take(1)? == 1;
        match input.take(2)? {
            0 => {
                input.give_back();
                (input.bits, input.count) = (0, 0);
                let (length, complement) = (input.take(16)?, input.take(16)?);
                if length != !complement & 0xFFFF {
                    return Err("a stored block is damaged");
                }
                input.give_back();
                self.state = State::Stored(length);
                return Ok(());
            }
            1 => {
                let length = |symbol: usize| match symbol {
                    0..144 | 280.. => 8,
                    144..256 => 9,
                    _ => 7,
                };
                let lengths: [u8; 288] = std::array::from_fn(length);
                self.literals.build(&lengths, (LITERAL_BITS, true), literal)?;
                self.distances.build(&[5; 32], (DISTANCE_BITS, true), distance)?;
            }
            2 => self.tables(input)?,
            _ => return Err("a block has an unknown type"),
        }
        self.state = State::Codes;
        Ok(())
    }

    /// Reads the code tables of a block.
    fn tables(&mut self, input: &mut Input<'_>) -> Result<(), Damage> {
        let damaged = "the codes of a block are damaged";
        let (literals, distances) = (input.take(5)? + 257, input.take(5)? + 1);
        let count = input.take(4)? + 4;
        if literals > 286 || distances > 30 {
            return Err(damaged);
        }
        let mut lengths = [0; 19];
        for &place in &LENGTH_ORDER[..count] {
            lengths[place] = input.take(3)? as u8;
        }
        let plain = |symbol: usize| (Meaning::Number(0), symbol as u16);
        self.literals.build(&lengths, (7, false), plain)?;
        let mut all = [0u8; 286 + 30];
        let mut filled = 0;
        while filled < literals + distances {
            input.refill();
            let (value, times) = match input.code(&self.literals)?.value {
                16 => {
                    let last = filled.checked_sub(1).ok_or(damaged)?;
                    (all[last], 3 + input.take(2)?)
                }
                17 => (0, 3 + input.take(3)?),
                18 => (0, 11 + input.take(7)?),
                length => (length as u8, 1),
            };
            let end = filled + times;
            if end > literals + distances {
                return Err(damaged);
            }
            all[filled..end].fill(value);
            filled = end;
        }
        if all[256] == 0 {
            return Err(damaged);
        }
        self.literals.build(&all[..literals], (LITERAL_BITS, true), literal)?;
        let distances = &all[literals..literals + distances];
        self.distances.build(distances, (DISTANCE_BITS, true), distance)
    }

    fn stored(
        &mut self,
        input: &mut Input<'_>,
        left: usize,
        is_all: bool,
        ring: &mut [u8; RING_BYTES],
        out: &mut usize,
    ) -> Result<Option<Stop>, Damage> {
        let bytes = &input.bytes[input.at..];
        let count = left.min(bytes.len()).min(RING_BYTES - *out);
        ring[*out..*out + count].copy_from_slice(&bytes[..count]);
        input.at += count;
        *out += count;
        self.state = if count == left { State::Block } else { State::Stored(left - count) };
        match () {
            () if count == left => Ok(None),
            () if *out == RING_BYTES => Ok(Some(Stop::Output)),
            () if is_all => Err("it ends inside the compressed data"),
            () => Ok(Some(Stop::Input)),
        }
    }

    fn codes(
        &mut self,
        input: &mut Input<'_>,
        is_all: bool,
        ring: &mut [u8; RING_BYTES],
        (at, out): (usize, &mut usize),
    ) -> Result<Option<Stop>, Damage> {
        loop {
            if *out == RING_BYTES {
                return Ok(Some(Stop::Output));
            }
            if !is_all && input.bytes.len() - input.at < SYMBOL_BYTES_MAX {
                return Ok(Some(Stop::Input));
            }
            // A symbol with all its extra bits takes at most 48 bits.
            input.refill();
            let code = input.code(&self.literals)?;
            let more = match code.meaning {
                Meaning::Literal => {
                    ring[*out] = code.value as u8;
                    *out += 1;
                    continue;
                }
                Meaning::End => {
                    self.state = State::Block;
                    return Ok(None);
                }
                Meaning::Number(more) => more,
                Meaning::Nothing | Meaning::Link => return Err("the compressed data is damaged"),
            };
            let length = usize::from(code.value) + input.take(more.into())?;
            let code = input.code(&self.distances)?;
            let Meaning::Number(more) = code.meaning else {
                return Err("the compressed data is damaged");
            };
            let distance = usize::from(code.value) + input.take(more.into())?;
            if distance > self.history + (*out - at) {
                return Err("it copies from before its start");
            }
            if let Some(stop) = self.copy(length, distance, ring, out) {
                return Ok(Some(stop));
            }
        }
    }

    /// Copies `length` bytes, or as many as fit.
    fn copy(
        &mut self,
        length: usize,
        distance: usize,
        ring: &mut [u8; RING_BYTES],
        out: &mut usize,
    ) -> Option<Stop> {
        let count = length.min(RING_BYTES - *out);
        let from = (*out + RING_BYTES - distance) % RING_BYTES;
        if from + count <= RING_BYTES && (distance >= count || from > *out) {
            ring.copy_within(from..from + count, *out);
        } else {
            for index in 0..count {
                ring[*out + index] = ring[(from + index) % RING_BYTES];
            }
        }
        *out += count;
        self.state = State::Codes;
        (count < length).then(|| {
            self.state = State::Copy { length: length - count, distance };
            Stop::Output
        })
    }
}

impl Table {
    /// Builds a table from code lengths; `meaning` interprets each symbol. The code must be complete,
    /// except that a single code may stand alone.
    fn build(
        &mut self,
        lengths: &[u8],
        (first_bits_max, may_be_one): (u32, bool),
        meaning: fn(usize) -> (Meaning, u16),
    ) -> Result<(), Damage> {
        let mut counts = [0u32; 16];
        lengths.iter().for_each(|&length| counts[usize::from(length & 15)] += 1);
        counts[0] = 0;
        let (mut next, mut code, mut used) = ([0u32; 16], 0, 0);
        for (length, count) in counts.iter().enumerate().skip(1) {
            code <<= 1;
            next[length] = code;
            code += count;
            used += count << (15 - length);
        }
        let longest = counts.iter().rposition(|&count| count > 0).unwrap_or(0);
        let is_one = longest == 1 && may_be_one;
        if used > 1 << 15 || (used < 1 << 15 && longest > 0 && !is_one) {
            return Err("the codes of a block are damaged");
        }
        let longest = longest.max(1) as u32;
        self.first_bits = first_bits_max.min(longest);
        self.more_bits = longest - self.first_bits;
        let first = 1usize << self.first_bits;
        self.codes.clear();
        self.codes.resize(first, NOTHING);
        for (symbol, &length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let code = next[usize::from(length)];
            next[usize::from(length)] += 1;
            let reversed = (code.reverse_bits() >> (32 - u32::from(length))) as usize;
            let (meaning, value) = meaning(symbol);
            let new = Code { bits: length, meaning, value };
            let (mut at, step, end) = match u32::from(length).checked_sub(self.first_bits) {
                None | Some(0) => (reversed, 1usize << length, first),
                Some(more) => {
                    let start = self.part(reversed & (first - 1));
                    let at = start + (reversed >> self.first_bits);
                    (at, 1 << more, start + (1 << self.more_bits))
                }
            };
            while at < end {
                self.codes[at] = new;
                at += step;
            }
        }
        Ok(())
    }

    /// The subtable for longer codes with this prefix; adds it if missing.
    fn part(&mut self, beginning: usize) -> usize {
        let link = self.codes[beginning];
        if link.meaning == Meaning::Link {
            return usize::from(link.value);
        }
        let start = self.codes.len();
        self.codes.resize(start + (1 << self.more_bits), NOTHING);
        // At most 300 subtables of up to 64 codes, so the index fits.
        self.codes[beginning] = Code { bits: 0, meaning: Meaning::Link, value: start as u16 };
        start
    }
}

/// The meaning of a literal or length symbol.
fn literal(symbol: usize) -> (Meaning, u16) {
    match symbol {
        0..256 => (Meaning::Literal, symbol as u16),
        256 => (Meaning::End, 0),
        257..265 => (Meaning::Number(0), symbol as u16 - 254),
        285 => (Meaning::Number(0), 258),
        265..285 => {
            let more = (symbol - 261) / 4;
            (Meaning::Number(more as u8), (3 + ((4 + (symbol - 257) % 4) << more)) as u16)
        }
        _ => (Meaning::Nothing, 0),
    }
}

/// The meaning of a distance symbol.
fn distance(symbol: usize) -> (Meaning, u16) {
    match symbol {
        0..4 => (Meaning::Number(0), symbol as u16 + 1),
        4..30 => {
            let more = (symbol - 2) / 2;
            (Meaning::Number(more as u8), (1 + ((2 + symbol % 2) << more)) as u16)
        }
        _ => (Meaning::Nothing, 0),
    }
}
