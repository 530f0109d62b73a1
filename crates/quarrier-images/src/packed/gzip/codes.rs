//! Decoding tables of Deflate's codes.

/// A description of damage.
pub(super) type Damage = &'static str;

pub(super) const DAMAGED: Damage = "the compressed data is damaged";

/// Bits that index the first table; the tables are always that large, so that lookups need no check.
pub(super) const LITERAL_BITS: u32 = 11;
pub(super) const DISTANCE_BITS: u32 = 9;
pub(super) const LITERALS: usize = 1 << LITERAL_BITS;
pub(super) const DISTANCES: usize = 1 << DISTANCE_BITS;

/// An entry of a decoding table. From its lowest bit: the length of the code with its extra bits, the
/// length of the code alone, flags, and 16 bits of the value: a literal, a base value, or the index of a
/// subtable, which is indexed by the following bits. Zero means that no code begins so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Code(u32);

impl Code {
    pub(super) const NOTHING: Code = Code(0);
    pub(super) const LITERAL: u32 = 1 << 12;
    pub(super) const NUMBER: u32 = 1 << 13;
    pub(super) const LINK: u32 = 1 << 14;
    pub(super) const END: u32 = 1 << 15;

    /// Adds the length of the code to the meaning of its symbol.
    fn of_length(self, length: u8) -> Code {
        Code(self.0 + u32::from(length) + (u32::from(length) << 8))
    }

    /// The meaning of a symbol with extra bits.
    pub(super) fn number(base: usize, extra_bits: usize) -> Code {
        Code((base as u32) << 16 | Code::NUMBER | extra_bits as u32)
    }

    pub(super) fn is(self, flag: u32) -> bool {
        self.0 & flag != 0
    }

    /// The length of the code and its extra bits.
    pub(super) fn all_bits(self) -> u32 {
        self.0 & 0x1F
    }

    /// The length of the code alone.
    fn code_bits(self) -> u32 {
        self.0 >> 8 & 0xF
    }

    pub(super) fn value(self) -> usize {
        (self.0 >> 16) as usize
    }

    /// The base value and the extra bits, if `bits` begins with the code.
    pub(super) fn number_in(self, bits: u64) -> usize {
        self.value() + ((bits & ((1 << self.all_bits()) - 1)) >> self.code_bits()) as usize
    }
}

/// A decoding table indexed by bits; longer codes are in subtables of equal size after it.
#[derive(Default)]
pub(super) struct Table {
    codes: Vec<Code>,
    first_bits: u32,
    more_bits: u32,
}

impl Table {
    /// Builds a table from code lengths; `meaning` interprets each symbol. The code must be complete,
    /// except that a single code may stand alone.
    pub(super) fn build(
        &mut self,
        lengths: &[u8],
        (first_bits, may_be_one): (u32, bool),
        meaning: fn(usize) -> Code,
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
        self.first_bits = first_bits;
        self.more_bits = (longest as u32).saturating_sub(first_bits);
        let first = 1usize << first_bits;
        self.codes.clear();
        self.codes.resize(first, Code::NOTHING);
        for (symbol, &length) in lengths.iter().enumerate().filter(|(_, length)| **length > 0) {
            let code = next[usize::from(length)];
            next[usize::from(length)] += 1;
            let reversed = (code.reverse_bits() >> (32 - u32::from(length))) as usize;
            let new = match meaning(symbol) {
                Code::NOTHING => Code::NOTHING,
                meaning => meaning.of_length(length),
            };
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

    /// The first table, if it has `N` entries.
    pub(super) fn first<const N: usize>(&self) -> Option<&[Code; N]> {
        self.codes.first_chunk()
    }

    /// The subtable for longer codes with this prefix; adds it if missing.
    fn part(&mut self, beginning: usize) -> usize {
        let link = self.codes[beginning];
        if link.is(Code::LINK) {
            return link.value();
        }
        let start = self.codes.len();
        self.codes.resize(start + (1 << self.more_bits), Code::NOTHING);
        // At most 300 subtables of up to 64 codes, so the index fits.
        self.codes[beginning] = Code((start as u32) << 16 | Code::LINK);
        start
    }

    /// The code with which `bits` begins.
    pub(super) fn code(&self, bits: u64) -> Code {
        match self.codes[bits as usize & ((1 << self.first_bits) - 1)] {
            code if code.is(Code::LINK) => self.linked(code, bits),
            code => code,
        }
    }

    /// The longer code that begins as `link`.
    #[cold]
    pub(super) fn linked(&self, link: Code, bits: u64) -> Code {
        let further = (bits >> self.first_bits) as usize & ((1 << self.more_bits) - 1);
        self.codes[link.value() + further]
    }
}

/// The meaning of a literal or length symbol.
pub(super) fn literal(symbol: usize) -> Code {
    match symbol {
        0..256 => Code((symbol as u32) << 16 | Code::LITERAL),
        256 => Code(Code::END),
        257..265 => Code::number(symbol - 254, 0),
        285 => Code::number(258, 0),
        265..285 => {
            let more = (symbol - 261) / 4;
            Code::number(3 + ((4 + (symbol - 257) % 4) << more), more)
        }
        _ => Code::NOTHING,
    }
}

/// The meaning of a distance symbol.
pub(super) fn distance(symbol: usize) -> Code {
    match symbol {
        0..4 => Code::number(symbol + 1, 0),
        4..30 => {
            let more = (symbol - 2) / 2;
            Code::number(1 + ((2 + symbol % 2) << more), more)
        }
        _ => Code::NOTHING,
    }
}
