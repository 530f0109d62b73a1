//! Huffman codes of scans, decoded by table lookups.

/// Bits per lookup of a single symbol.
const SHORT_BITS: u32 = 9;
/// Bits per lookup of all symbols in these bits.
pub(super) const GLANCE_BITS: u32 = 11;

/// The codes of one DHT table.
pub(super) struct Huffman {
    /// Length and symbol by the first `SHORT_BITS` bits; 0 if the code is longer.
    short: Box<[u16]>,
    /// By length: the first code after those of this length, in 16 bits, and the offset to its
    /// symbol.
    end: [u32; 17],
    place: [i32; 17],
    symbols: Vec<u8>,
}

impl Huffman {
    /// Parses the table in a DHT segment after its class; returns it and its length in bytes.
    /// `None` if it is invalid: more codes than possible, or a DC size beyond 15 bits.
    pub(super) fn parse(bytes: &[u8], is_dc: bool) -> Option<(Self, usize)> {
        let counts = bytes.get(..16)?;
        let total: usize = counts.iter().map(|count| usize::from(*count)).sum();
        let symbols = bytes.get(16..16 + total)?.to_vec();
        if total == 0 || total > 256 || (is_dc && symbols.iter().any(|symbol| *symbol > 15)) {
            return None;
        }
        let mut huffman = Huffman {
            short: vec![0; 1 << SHORT_BITS].into(),
            end: [0; 17],
            place: [0; 17],
            symbols,
        };
        let (mut code, mut index) = (0u32, 0usize);
        for length in 1..=16u32 {
            let count = u32::from(counts[length as usize - 1]);
            huffman.place[length as usize] = index as i32 - code as i32;
            if length <= SHORT_BITS {
                for (symbol, code) in huffman.symbols[index..].iter().zip(code..code + count) {
                    let first = (code << (SHORT_BITS - length)) as usize;
                    let entry = (length as u16) << 8 | u16::from(*symbol);
                    let same = 1usize << (SHORT_BITS - length);
                    huffman.short.get_mut(first..first + same)?.fill(entry);
                }
            }
            code += count;
            index += count as usize;
            if code > 1 << length {
                return None;
            }
            huffman.end[length as usize] = code << (16 - length);
            code <<= 1;
        }
        Some((huffman, 16 + total))
    }

    /// Decodes the code at the start of the 16 bits `peek`; returns its length and symbol.
    #[inline(always)]
    pub(super) fn symbol(&self, peek: u32) -> Option<(u32, u32)> {
        let entry = u32::from(self.short[(peek >> (16 - SHORT_BITS)) as usize & 511]);
        if entry != 0 {
            return Some((entry >> 8, entry & 255));
        }
        self.long_symbol(peek)
    }

    #[cold]
    fn long_symbol(&self, peek: u32) -> Option<(u32, u32)> {
        let length = (SHORT_BITS + 1..=16).find(|length| peek < self.end[*length as usize])?;
        let place = (peek >> (16 - length)) as i32 + self.place[length as usize];
        let symbol = self.symbols.get(usize::try_from(place).ok()?)?;
        Some((length, u32::from(*symbol)))
    }

    /// Whether endless zero bits decode to "no change" only.
    pub(super) fn is_zero_nothing(&self) -> bool {
        self.symbol(0).is_some_and(|(_, symbol)| symbol & 15 == 0 && symbol != 0xF0)
    }

    /// The meaning of the first [`GLANCE_BITS`] bits of AC codes; see [`Glance`].
    pub(super) fn glances(&self) -> Box<[Glance]> {
        (0..1u32 << GLANCE_BITS).map(|peek| self.glance(peek)).collect()
    }

    fn glance(&self, peek: u32) -> Glance {
        let (mut bits, mut step) = (0, 0);
        while bits < GLANCE_BITS {
            let rest = (peek << bits << (16 - GLANCE_BITS)) & 0xFFFF;
            let Some((length, symbol)) = self.symbol(rest) else { break };
            if bits + length > GLANCE_BITS {
                break;
            }
            let more = match (symbol >> 4, symbol & 15) {
                (15, 0) => 16,
                (_, 0) => return Glance::new(bits + length, step, true),
                (run, _) => run + 1,
            };
            if step + more > 64 {
                break;
            }
            step += more;
            bits += length + (symbol & 15);
        }
        Glance::new(bits, step, false)
    }
}

/// The meaning of the first few bits of AC codes: the number of bits that the codes and their
/// values take, the number of coefficients that they skip, and whether they end their block.
#[derive(Clone, Copy)]
pub(super) struct Glance(u16);

impl Glance {
    fn new(bits: u32, step: u32, ends: bool) -> Self {
        Glance((bits | step << 5 | u32::from(ends) << 12) as u16)
    }

    /// The number of bits including values; 0 if they hold no whole code.
    #[inline(always)]
    pub(super) fn bits(self) -> u32 {
        u32::from(self.0) & 31
    }

    #[inline(always)]
    pub(super) fn step(self) -> u32 {
        u32::from(self.0) >> 5 & 127
    }

    /// 1 if the block ends, else 0.
    #[inline(always)]
    pub(super) fn ends(self) -> u32 {
        u32::from(self.0) >> 12
    }
}
