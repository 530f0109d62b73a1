//! Chunks, as workers see them: bytes with their offset in the source.

use std::ops::Range;

/// A piece of a source in memory.
///
/// `data` has the owned positions and the context that the kernel requested around them. Exactly
/// one chunk owns each position of the searched range, so a result belongs to the chunk that owns
/// the position where it *starts*.
#[derive(Debug, Clone)]
pub struct Chunk<'a> {
    /// 0, 1, 2 … in the order of the source.
    pub index: u64,
    /// Offset in the source of `data[0]`.
    pub offset: u64,
    /// The bytes.
    pub data: &'a [u8],
    /// The owned positions, as indexes into `data`.
    pub own: Range<usize>,
    /// Whether `data` begins where the searched range begins.
    pub at_start: bool,
    /// Whether `data` ends where the searched range ends.
    pub at_end: bool,
    /// Whether the source, a stream, had no more bytes available when the chunk was cut; results held
    /// back for more input must then be emitted.
    pub at_pause: bool,
    /// Whether `data` lies in a hole of the source, where all bytes are zero.
    pub is_hole: bool,
    /// Ranges of the source within `data` that could not be read; they are zero here.
    pub unreadable: &'a [Range<u64>],
}

impl<'a> Chunk<'a> {
    /// The owned bytes.
    pub fn owned(&self) -> &'a [u8] {
        &self.data[self.own.clone()]
    }

    /// Makes a chunk of a whole source in memory.
    pub fn whole(data: &'a [u8]) -> Self {
        Chunk {
            index: 0,
            offset: 0,
            data,
            own: 0..data.len(),
            at_start: true,
            at_end: true,
            at_pause: false,
            is_hole: false,
            unreadable: &[],
        }
    }
}
