//! A block's bitmap.

/// Words of a block's bitmap.
pub(crate) const WORDS: usize = quarrier_messages::column::raw::BLOCK_ROWS / super::WORD_ROWS;

/// One bit for each row of a block: bit `row % 64` of word `row / 64`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[repr(align(64))]
pub(crate) struct Bits(pub(crate) [u64; WORDS]);

/// Loops over whole bitmaps. Those that change a bitmap return a mask of its words that are not 0.
pub(crate) struct BitKernels {
    pub(super) all: unsafe fn(&mut Bits, &Bits) -> u64,
    pub(super) any: unsafe fn(&mut Bits, &Bits) -> u64,
    pub(super) without: unsafe fn(&mut Bits, &Bits) -> u64,
    pub(super) count: unsafe fn(&Bits) -> u32,
    pub(super) words: unsafe fn(&Bits) -> u64,
    pub(super) mask: unsafe fn(&mut Bits, &[u64], u64) -> u64,
}

impl BitKernels {
    /// Computes `into &= with`.
    pub(crate) fn all(&self, into: &mut Bits, with: &Bits) -> u64 {
        // SAFETY: `kernels` only returns loops whose features the CPU has, the only condition of
        // the call.
        unsafe { (self.all)(into, with) }
    }

    /// Computes `into |= with`.
    pub(crate) fn any(&self, into: &mut Bits, with: &Bits) -> u64 {
        // SAFETY: `kernels` only returns loops whose features the CPU has, the only condition of
        // the call.
        unsafe { (self.any)(into, with) }
    }

    /// Computes `into &= !with`.
    pub(crate) fn without(&self, into: &mut Bits, with: &Bits) -> u64 {
        // SAFETY: `kernels` only returns loops whose features the CPU has, the only condition of
        // the call.
        unsafe { (self.without)(into, with) }
    }

    /// Returns a mask of the words that are not 0.
    pub(crate) fn words(&self, bits: &Bits) -> u64 {
        // SAFETY: `kernels` only returns loops whose features the CPU has, the only condition of
        // the call.
        unsafe { (self.words)(bits) }
    }

    /// Computes `into &= with ^ flip`, where `with` may be shorter than `into`.
    pub(crate) fn mask(&self, into: &mut Bits, with: &[u64], flip: u64) -> u64 {
        // SAFETY: `kernels` only returns loops whose features the CPU has, the only condition of
        // the call.
        unsafe { (self.mask)(into, with, flip) }
    }

    /// Returns the number of rows in the bitmap.
    pub(crate) fn count(&self, bits: &Bits) -> u32 {
        // SAFETY: `kernels` only returns loops whose features the CPU has, the only condition of
        // the call.
        unsafe { (self.count)(bits) }
    }
}

impl Bits {
    /// No row.
    pub(crate) const NONE: Bits = Bits([0; WORDS]);

    /// Returns the bitmap of the first `rows` rows.
    pub(crate) fn first(rows: usize) -> Bits {
        let mut bits = Bits::NONE;
        bits.0[..rows / 64].fill(!0);
        if !rows.is_multiple_of(64) {
            bits.0[rows / 64] = (1 << (rows % 64)) - 1;
        }
        bits
    }

    /// Sets the bitmap to those of the first `rows` rows that are in `words`.
    pub(crate) fn set_words(&mut self, words: u64, rows: usize) {
        *self = Bits::first(rows);
        if words != Bits::first_words(rows) {
            for (at, word) in self.0.iter_mut().enumerate() {
                *word &= (words >> at & 1).wrapping_neg();
            }
        }
    }

    /// Returns a mask of the words that hold the first `rows` rows.
    pub(crate) fn first_words(rows: usize) -> u64 {
        match rows.div_ceil(64) {
            WORDS.. => !0,
            words => (1 << words) - 1,
        }
    }

    /// Returns a mask of the words that are not 0.
    #[inline(always)]
    pub(crate) fn words(&self) -> u64 {
        let mut words = 0;
        for (at, &word) in self.0.iter().enumerate() {
            words |= u64::from(word != 0) << at;
        }
        words
    }

    /// Yields the rows in the bitmap, in order.
    pub(crate) fn rows(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(at, &word)| ones(word).map(move |bit| at * 64 + bit))
    }
}

/// Yields the indexes of the bits that are set.
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
