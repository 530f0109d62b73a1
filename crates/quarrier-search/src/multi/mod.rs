//! Many needles at once: a filter finds positions that may begin a needle's *anchor* (its rarest
//! few bytes), and verification determines which needles match there.
//!
//! ```text
//!  needles ─→ anchors (assign) ─→ packed filter: 64 positions at a time (arch)
//!                             └─→ gram filter: hashed 4-byte windows at every s-th position
//!                                       │ candidate positions
//!                                       ▼
//!                               keys (verify): hash table of anchors ─→ compare whole needle
//! ```

mod assign;
mod dense;
mod gram;
mod packed;
mod verify;

pub(crate) use gram::{GramEngine, GramRarity};
pub(crate) use packed::PackedEngine;
pub(crate) use verify::{fold_of, load_word};

use std::ops::Range;

use crate::finding::Finding;

/// Number of positions to filter at a time, so that text and masks stay in the L1 cache.
pub(crate) const BLOCK_BYTES: usize = 64 * 1024;

/// The text to search, as all engines see it.
#[derive(Clone)]
pub(crate) struct Haystack<'t> {
    pub(crate) text: &'t [u8],
    /// Positions at which findings may start.
    pub(crate) own: Range<usize>,
    /// Offset in the source of `text[0]`.
    pub(crate) offset: u64,
}

impl Haystack<'_> {
    pub(crate) fn finding(&self, start: usize, pattern: u32, length: usize) -> Finding {
        Finding { offset: self.offset + start as u64, pattern, length: length as u32 }
    }
}
