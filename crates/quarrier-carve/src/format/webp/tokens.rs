//! The coefficients of macroblocks of VP8: RFC 6386, section 13.

use super::bools::Bools;
use super::tables::{COEFFICIENTS, UPDATES};

/// Probabilities of one context, padded for quick indexing.
type Branches = [u8; 16];

/// The probabilities of tokens' branches: by kind of block, position of the coefficient, and
/// context.
pub(super) struct Likelihoods([[[Branches; 3]; 17]; 4]);

/// The band of each of the 16 coefficients; the last entry is never read.
const BANDS: [usize; 17] = [0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 0];

/// Additional bits of the largest values.
const LARGE: [&[u8]; 4] = [
    &[173, 148, 140],
    &[176, 155, 140, 135],
    &[180, 157, 141, 134, 130],
    &[254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129],
];

const LUMA_AFTER_DC: usize = 0;
const DC: usize = 1;
const CHROMA: usize = 2;
const LUMA: usize = 3;

/// Whether the blocks at a macroblock's edge had any coefficients: 4 of luma, 2 and 2 of chroma,
/// and 1 of DC.
pub(super) type Edge = [u8; 9];

impl Likelihoods {
    /// Reads a frame's changes of the default probabilities.
    pub(super) fn read(bools: &mut Bools<'_>) -> Box<Self> {
        let mut changed = COEFFICIENTS;
        for (likely, update) in changed.iter_mut().zip(&UPDATES) {
            if bools.read(*update) {
                *likely = bools.number(8) as u8;
            }
        }
        let mut all = Box::new(Likelihoods([[[[0; 16]; 3]; 17]; 4]));
        for (kind, places) in all.0.iter_mut().enumerate() {
            for (place, band) in places.iter_mut().zip(BANDS) {
                for (context, branches) in place.iter_mut().enumerate() {
                    let from = ((kind * 8 + band) * 3 + context) * 11;
                    branches[..11].copy_from_slice(&changed[from..from + 11]);
                }
            }
        }
        all
    }

    /// Reads the coefficients of a macroblock.
    #[inline(always)]
    pub(super) fn macroblock(
        &self,
        bools: &mut Bools<'_>,
        is_split: bool,
        top: &mut Edge,
        left: &mut Edge,
    ) {
        let luma = if is_split {
            LUMA
        } else {
            let some = self.block(bools, DC, 0, top[8] + left[8]);
            (top[8], left[8]) = (some, some);
            LUMA_AFTER_DC
        };
        let first = usize::from(!is_split);
        let planes = [(luma, first, 0..4), (CHROMA, 0, 4..6), (CHROMA, 0, 6..8)];
        for (kind, first, plane) in planes {
            for left in &mut left[plane.clone()] {
                for top in &mut top[plane.clone()] {
                    *left = self.block(bools, kind, first, *top + *left);
                    *top = *left;
                }
            }
        }
    }

    /// Reads the coefficients of a block from `first` on; returns 1 if there are any, else 0.
    #[inline(always)]
    fn block(&self, outer: &mut Bools<'_>, kind: usize, first: usize, context: u8) -> u8 {
        // A local copy stays in registers.
        let mut bools = *outer;
        let some = self.numbers(&mut bools, kind, first, context);
        *outer = bools;
        some
    }

    #[inline(always)]
    fn numbers(&self, bools: &mut Bools<'_>, kind: usize, first: usize, context: u8) -> u8 {
        let places = &self.0[kind];
        let mut branches = &places[first][usize::from(context).min(2)];
        let mut place = first;
        while place < 16 {
            if !bools.read(branches[0]) {
                return u8::from(place > first);
            }
            while !bools.read(branches[1]) {
                place += 1;
                if place == 16 {
                    return 1;
                }
                branches = &places[place][0];
            }
            let context = if bools.read(branches[2]) {
                large(bools, branches);
                2
            } else {
                1
            };
            bools.skip_even();
            place += 1;
            branches = &places[place][context];
        }
        1
    }
}

/// Reads the rest of a value above 1.
#[inline(always)]
fn large(bools: &mut Bools<'_>, branches: &Branches) {
    if !bools.read(branches[3]) {
        if bools.read(branches[4]) {
            bools.skip(branches[5]);
        }
    } else if !bools.read(branches[6]) {
        if bools.read(branches[7]) {
            bools.skip(165);
            bools.skip(145);
        } else {
            bools.skip(159);
        }
    } else {
        let high = bools.read(branches[8]);
        let low = bools.read(branches[9 + usize::from(high)]);
        for likely in LARGE[2 * usize::from(high) + usize::from(low)] {
            bools.skip(*likely);
        }
    }
}
