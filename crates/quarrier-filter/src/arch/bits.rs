//! A block's bitmap.

/// Words of a block's bitmap.
pub(crate) const WORDS: usize = quarrier_messages::column::raw::BLOCK_ROWS / super::WORD_ROWS;

/// One bit for each row of a block: bit `row % 64` of word `row / 64`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Bits(pub(crate) [u64; WORDS]);

/// Loops over whole bitmaps. Each gives the bitmap of words that are not 0 afterwards.
pub(crate) struct BitKernels {
    pub(super) all: unsafe fn(&mut Bits, &Bits) -> u64,
    pub(super) any: unsafe fn(&mut Bits, &Bits) -> u64,
    pub(super) without: unsafe fn(&mut Bits, &Bits) -> u64,
    pub(super) count: unsafe fn(&Bits) -> u32,
    pub(super) words: unsafe fn(&Bits) -> u64,
    pub(super) mask: unsafe fn(&mut Bits, &[u64], u64) -> u64,
}

impl BitKernels {
    /// `into &= with`.
    pub(crate) fn all(&self, into: &mut Bits, with: &Bits) -> u64 {
        // SAFETY: kernels are handed out for what the CPU has.
        unsafe { (self.all)(into, with) }
    }

    /// `into |= with`.
    pub(crate) fn any(&self, into: &mut Bits, with: &Bits) -> u64 {
        // SAFETY: as above.
        unsafe { (self.any)(into, with) }
    }

    /// `into &= !with`.
    pub(crate) fn without(&self, into: &mut Bits, with: &Bits) -> u64 {
        // SAFETY: as above.
        unsafe { (self.without)(into, with) }
    }

    /// The words that are not 0.
    pub(crate) fn words(&self, bits: &Bits) -> u64 {
        // SAFETY: as above.
        unsafe { (self.words)(bits) }
    }

    /// `into &= with ^ flip`, where `with` may end early.
    pub(crate) fn mask(&self, into: &mut Bits, with: &[u64], flip: u64) -> u64 {
        // SAFETY: as above.
        unsafe { (self.mask)(into, with, flip) }
    }

    /// How many rows there are in it.
    pub(crate) fn count(&self, bits: &Bits) -> u32 {
        // SAFETY: as above.
        unsafe { (self.count)(bits) }
    }
}

impl Bits {
    /// No row.
    pub(crate) const NONE: Bits = Bits([0; WORDS]);

    /// The first `rows` rows.
    pub(crate) fn first(rows: usize) -> Bits {
        let mut bits = Bits::NONE;
        bits.0[..rows / 64].fill(!0);
        if !rows.is_multiple_of(64) {
            bits.0[rows / 64] = (1 << (rows % 64)) - 1;
        }
        bits
    }

    /// Leaves the first `rows` rows, and of them those in `words`.
    pub(crate) fn set_words(&mut self, words: u64, rows: usize) {
        *self = Bits::first(rows);
        if words != Bits::first_words(rows) {
            for (at, word) in self.0.iter_mut().enumerate() {
                *word &= (words >> at & 1).wrapping_neg();
            }
        }
    }

    /// The words of the first `rows` rows.
    pub(crate) fn first_words(rows: usize) -> u64 {
        match rows.div_ceil(64) {
            WORDS.. => !0,
            words => (1 << words) - 1,
        }
    }

    /// Which words are not 0.
    #[inline(always)]
    pub(crate) fn words(&self) -> u64 {
        let mut words = 0;
        for (at, &word) in self.0.iter().enumerate() {
            words |= u64::from(word != 0) << at;
        }
        words
    }

    /// The rows in it, in order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, &word)| ones(word).map(move |bit| at * 64 + bit))
    }
}

/// The places of the bits set.
#[inline(always)]
pub(crate) fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if word == 0 {
            return None;
        }
        let bit = word.trailing_zeros() as usize;
        word &= word - 1;
        Some(bit)
    })
}

#[inline(always)]
pub(super) fn all(into: &mut Bits, with: &Bits) -> u64 {
    for (into, with) in into.0.iter_mut().zip(&with.0) {
        *into &= with;
    }
    into.words()
}

#[inline(always)]
pub(super) fn any(into: &mut Bits, with: &Bits) -> u64 {
    for (into, with) in into.0.iter_mut().zip(&with.0) {
        *into |= with;
    }
    into.words()
}

#[inline(always)]
pub(super) fn without(into: &mut Bits, with: &Bits) -> u64 {
    for (into, with) in into.0.iter_mut().zip(&with.0) {
        *into &= !with;
    }
    into.words()
}

#[inline(always)]
pub(super) fn mask(into: &mut Bits, with: &[u64], flip: u64) -> u64 {
    for (into, with) in into.0.iter_mut().zip(with) {
        *into &= with ^ flip;
    }
    into.words()
}

#[inline(always)]
pub(super) fn count(bits: &Bits) -> u32 {
    bits.0.iter().map(|word| word.count_ones()).sum()
}
