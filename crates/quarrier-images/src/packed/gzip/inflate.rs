//! A Deflate decoder that can stop anywhere and resume from a small [`Snapshot`]. It stops at block
//! boundaries, where decoding can resume with only the preceding 32 KiB, which can be cached in a file.
//!
//! *RFC 1951*. The output goes into a ring; matches can refer to its last 32 KiB. Most symbols are decoded
//! by [`Inflate::fast`], which checks once for several symbols that input and room suffice. The last ones
//! before either ends are decoded by [`Inflate::codes`].

use super::codes::{
    Code, DAMAGED, DISTANCE_BITS, DISTANCES, Damage, LITERAL_BITS, LITERALS, Table, distance,
    literal,
};
use super::{RING_BYTES, WINDOW_BYTES};

/// Maximum input for a block's header, or for a symbol with its extra bits.
pub(super) const HEADER_BYTES_MAX: usize = 1024;
const SYMBOL_BYTES_MAX: usize = 16;
/// Maximum input that a round of the fast decoder reads ahead, and the room that it needs: two literals,
/// a match of 258 bytes, and the rest of the last chunk copied.
const FAST_INPUT_BYTES: usize = 16;
const FAST_OUTPUT_BYTES: usize = 2 + 258 + CHUNK_BYTES;
/// Matches are copied in chunks of this size.
const CHUNK_BYTES: usize = 16;

/// Maximum numbers of literal and length symbols, and of distance symbols.
const SYMBOLS_MAX: (usize, usize) = (288, 32);
const LENGTH_ORDER: [usize; 19] =
    [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// The reason why decoding stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// More input is needed.
    Input,
    /// The output reached its end.
    Output,
    /// At the start of a block.
    Block,
    /// At the end of the stream; the remaining bits of the last byte are unused.
    Stream,
    /// The data is damaged or truncated.
    Damage(Damage),
}

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
    lengths: Lengths,
}

/// The code lengths of a block, from which its tables can be built again.
#[derive(Debug, Clone)]
struct Lengths {
    all: [u8; SYMBOLS_MAX.0 + SYMBOLS_MAX.1],
    literals: usize,
    distances: usize,
}

/// The state of a decoder anywhere in a stream. In addition, it needs the preceding 32 KiB.
#[derive(Debug, Clone)]
pub(super) struct Snapshot {
    bits: u64,
    count: u32,
    state: State,
    is_last: bool,
    history: usize,
    lengths: Lengths,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Block,
    Stored(usize),
    Codes,
    Copy { length: usize, distance: usize },
    Done,
}

/// The input, with a bit buffer.
struct Input<'i> {
    bytes: &'i [u8],
    at: usize,
    bits: u64,
    count: u32,
}

/// The output: `ring` from `at` to `end`, of which the part before `out` is written.
struct Output<'o> {
    ring: &'o mut [u8; RING_BYTES],
    at: usize,
    out: usize,
    end: usize,
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

    /// Decodes one code; its value includes the extra bits.
    fn code(&mut self, table: &Table) -> Result<(Code, usize), Damage> {
        let code = table.code(self.bits);
        if code == Code::NOTHING {
            return Err(DAMAGED);
        }
        let value = code.number_in(self.bits);
        self.skip(code.all_bits()).map(|()| (code, value))
    }
}

impl Default for Inflate {
    fn default() -> Self {
        let lengths =
            Lengths { all: [0; SYMBOLS_MAX.0 + SYMBOLS_MAX.1], literals: 0, distances: 0 };
        Inflate {
            bits: 0,
            count: 0,
            state: State::Block,
            is_last: false,
            history: 0,
            literals: Table::default(),
            distances: Table::default(),
            lengths,
        }
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

    /// The present state.
    pub(super) fn snapshot(&self) -> Snapshot {
        Snapshot {
            bits: self.bits,
            count: self.count,
            state: self.state,
            is_last: self.is_last,
            history: self.history,
            lengths: self.lengths.clone(),
        }
    }

    /// Resumes at a snapshot.
    ///
    /// # Errors
    /// If it is not one of a valid stream.
    pub(super) fn resume(&mut self, snapshot: &Snapshot) -> Result<(), Damage> {
        (self.bits, self.count) = (snapshot.bits, snapshot.count);
        (self.state, self.is_last) = (snapshot.state, snapshot.is_last);
        self.history = snapshot.history;
        self.lengths.clone_from(&snapshot.lengths);
        match self.state {
            State::Codes | State::Copy { .. } => self.build(),
            State::Block | State::Stored(_) | State::Done => {
                // The tables are of another place.
                self.lengths.literals = 0;
                Ok(())
            }
        }
    }

    /// Decodes into `ring` from `at` up to `end`, and may overwrite bytes after it. `is_all` means that no
    /// more input follows; otherwise there must be at least [`HEADER_BYTES_MAX`] bytes. Returns the
    /// reason for stopping, and the numbers of bytes read and written.
    pub(super) fn decode(
        &mut self,
        bytes: &[u8],
        is_all: bool,
        ring: &mut [u8; RING_BYTES],
        (at, end): (usize, usize),
    ) -> (Stop, usize, usize) {
        let mut input = Input { bytes, at: 0, bits: self.bits, count: self.count };
        let mut output = Output { ring, at, out: at, end: end.min(RING_BYTES) };
        let stop = loop {
            match self.step(&mut input, is_all, &mut output) {
                Ok(None) => {}
                Ok(Some(stop)) => break stop,
                Err(why) => break Stop::Damage(why),
            }
        };
        input.give_back();
        (self.bits, self.count) = (input.bits, input.count);
        let written = output.out - at;
        self.history = (self.history + written).min(WINDOW_BYTES);
        (stop, input.at, written)
    }

    fn step(
        &mut self,
        input: &mut Input<'_>,
        is_all: bool,
        output: &mut Output<'_>,
    ) -> Result<Option<Stop>, Damage> {
        match self.state {
            State::Block if self.is_last => {
                input.give_back();
                (input.bits, input.count, self.state) = (0, 0, State::Done);
                Ok(Some(Stop::Stream))
            }
            State::Block if output.out > output.at => Ok(Some(Stop::Block)),
            State::Block if !is_all && input.bytes.len() - input.at < HEADER_BYTES_MAX => {
                Ok(Some(Stop::Input))
            }
            State::Block => self.header(input).map(|()| None),
            State::Stored(left) => self.stored(input, left, is_all, output),
            State::Codes => self.codes(input, is_all, output),
            State::Copy { length, distance } => Ok(self.copy(length, distance, output)),
            State::Done => Ok(Some(Stop::Stream)),
        }
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
            // The tables are still there.
            1 if self.lengths.literals == SYMBOLS_MAX.0 => {}
            1 => {
                let length = |symbol: usize| match symbol {
                    0..144 | 280..288 => 8,
                    144..256 => 9,
                    256..280 => 7,
                    _ => 5,
                };
                let all = std::array::from_fn(length);
                self.lengths = Lengths { all, literals: SYMBOLS_MAX.0, distances: SYMBOLS_MAX.1 };
                self.build()?;
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
        let plain = |symbol: usize| Code::number(symbol, 0);
        self.lengths.literals = 0;
        self.literals.build(&lengths, (7, false), plain)?;
        let mut all = [0u8; SYMBOLS_MAX.0 + SYMBOLS_MAX.1];
        let mut filled = 0;
        while filled < literals + distances {
            input.refill();
            let (value, times) = match input.code(&self.literals)?.1 {
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
        self.lengths = Lengths { all, literals, distances };
        self.build()
    }

    /// Builds the tables of a block.
    fn build(&mut self) -> Result<(), Damage> {
        let Lengths { all, literals, distances } = &self.lengths;
        let (literals, distances) = all[..literals + distances].split_at(*literals);
        self.literals.build(literals, (LITERAL_BITS, true), literal)?;
        self.distances.build(distances, (DISTANCE_BITS, true), distance)
    }

    fn stored(
        &mut self,
        input: &mut Input<'_>,
        left: usize,
        is_all: bool,
        output: &mut Output<'_>,
    ) -> Result<Option<Stop>, Damage> {
        let bytes = &input.bytes[input.at..];
        let count = left.min(bytes.len()).min(output.end - output.out);
        output.ring[output.out..output.out + count].copy_from_slice(&bytes[..count]);
        input.at += count;
        output.out += count;
        self.state = if count == left { State::Block } else { State::Stored(left - count) };
        match () {
            () if count == left => Ok(None),
            () if output.out == output.end => Ok(Some(Stop::Output)),
            () if is_all => Err("it ends inside the compressed data"),
            () => Ok(Some(Stop::Input)),
        }
    }

    fn codes(
        &mut self,
        input: &mut Input<'_>,
        is_all: bool,
        output: &mut Output<'_>,
    ) -> Result<Option<Stop>, Damage> {
        loop {
            if self.fast(input, output)? {
                self.state = State::Block;
                return Ok(None);
            }
            if output.out == output.end {
                return Ok(Some(Stop::Output));
            }
            if !is_all && input.bytes.len() - input.at < SYMBOL_BYTES_MAX {
                return Ok(Some(Stop::Input));
            }
            // A symbol with all its extra bits takes at most 48 bits.
            input.refill();
            let (code, length) = input.code(&self.literals)?;
            if code.is(Code::LITERAL) {
                output.ring[output.out] = length as u8;
                output.out += 1;
                continue;
            }
            if code.is(Code::END) {
                self.state = State::Block;
                return Ok(None);
            }
            let (_, distance) = input.code(&self.distances)?;
            if distance > self.history + (output.out - output.at) {
                return Err(BEFORE_START);
            }
            if let Some(stop) = self.copy(length, distance, output) {
                return Ok(Some(stop));
            }
        }
    }

    /// Decodes symbols while there is input and room for any of them. Returns whether the block has ended.
    fn fast(&self, input: &mut Input<'_>, output: &mut Output<'_>) -> Result<bool, Damage> {
        let tables = (self.literals.first(), self.distances.first());
        let (Some(literals), Some(distances)) = tables else { return Err(DAMAGED) };
        let literals: &[Code; LITERALS] = literals;
        let distances: &[Code; DISTANCES] = distances;
        let (bytes, ring) = (input.bytes, &mut *output.ring);
        let Some(input_end) = bytes.len().checked_sub(FAST_INPUT_BYTES) else { return Ok(false) };
        let Some(output_end) = output.end.checked_sub(FAST_OUTPUT_BYTES) else { return Ok(false) };
        let (mut at, mut bits, mut count, mut out) =
            (input.at, input.bits, input.count, output.out);
        // The number of bytes before the first one in the ring.
        let history = self.history.wrapping_sub(output.at);
        let ended = loop {
            if at > input_end || out > output_end {
                break Ok(false);
            }
            (bits, at, count) = refilled(bytes, bits, at, count);
            let mut code = literals[bits as usize % LITERALS];
            if code.is(Code::LITERAL) {
                (bits, count) = (bits >> code.all_bits(), count - code.all_bits());
                ring[out] = code.value() as u8;
                out += 1;
                code = literals[bits as usize % LITERALS];
                if code.is(Code::LITERAL) {
                    (bits, count) = (bits >> code.all_bits(), count - code.all_bits());
                    ring[out] = code.value() as u8;
                    out += 1;
                    continue;
                }
                // Two codes, of up to 11 and 48 bits, may not fit.
                (bits, at, count) = refilled(bytes, bits, at, count);
            }
            if code.is(Code::LINK) {
                code = self.literals.linked(code, bits);
            }
            if !code.is(Code::NUMBER) {
                if code == Code::NOTHING {
                    break Err(DAMAGED);
                }
                (bits, count) = (bits >> code.all_bits(), count - code.all_bits());
                if code.is(Code::END) {
                    break Ok(true);
                }
                ring[out] = code.value() as u8;
                out += 1;
                continue;
            }
            let length = code.number_in(bits);
            (bits, count) = (bits >> code.all_bits(), count - code.all_bits());
            let mut code = distances[bits as usize % DISTANCES];
            if code.is(Code::LINK) {
                code = self.distances.linked(code, bits);
            }
            if code == Code::NOTHING {
                break Err(DAMAGED);
            }
            let distance = code.number_in(bits);
            (bits, count) = (bits >> code.all_bits(), count - code.all_bits());
            if distance > history.wrapping_add(out) {
                break Err(BEFORE_START);
            }
            copy_fast(ring, out, length, distance);
            out += length;
        };
        (input.at, input.bits, input.count, output.out) = (at, bits, count, out);
        ended
    }

    /// Copies `length` bytes, or as many as fit.
    fn copy(&mut self, length: usize, distance: usize, output: &mut Output<'_>) -> Option<Stop> {
        let Output { ring, out, end, .. } = output;
        let count = length.min(*end - *out);
        let from = *out + RING_BYTES - distance;
        for index in 0..count {
            ring[*out + index] = ring[(from + index) % RING_BYTES];
        }
        *out += count;
        self.state = State::Codes;
        (count < length).then(|| {
            self.state = State::Copy { length: length - count, distance };
            Stop::Output
        })
    }
}

const BEFORE_START: Damage = "it copies from before its start";

/// The bit buffer with at least 56 bits, and the new position in `bytes`, which has 8 more bytes.
#[inline(always)]
fn refilled(bytes: &[u8], bits: u64, at: usize, count: u32) -> (u64, usize, u32) {
    let mut next = [0; 8];
    next.copy_from_slice(&bytes[at..at + 8]);
    let bits = bits | u64::from_le_bytes(next) << count;
    (bits, at + ((63 - count) / 8) as usize, count | 56)
}

/// Copies a match of up to 258 bytes to `out`, and overwrites up to a chunk after it, which is more than
/// 32 KiB away from all bytes that matches can refer to.
#[inline(always)]
fn copy_fast(ring: &mut [u8; RING_BYTES], out: usize, length: usize, distance: usize) {
    let end = out + length;
    let from = (out + RING_BYTES - distance) % RING_BYTES;
    if from + length + CHUNK_BYTES > RING_BYTES {
        for index in 0..length {
            ring[out + index] = ring[(from + index) % RING_BYTES];
        }
    } else if distance >= CHUNK_BYTES {
        let (mut from, mut to) = (from, out);
        loop {
            ring.copy_within(from..from + CHUNK_BYTES, to);
            (from, to) = (from + CHUNK_BYTES, to + CHUNK_BYTES);
            if to >= end {
                break;
            }
        }
    } else if distance == 1 {
        let byte = ring[from];
        ring[out..end].fill(byte);
    } else {
        for index in 0..length {
            ring[out + index] = ring[from + index];
        }
    }
}
