//! Chunks of RIFF files: four letters, a length, bytes, and a padding byte if the length is odd.

use crate::view::View;

/// Size of a chunk's name and length.
pub(super) const HEADER_BYTES: u64 = 8;

/// The header of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) name: [u8; 4],
    /// Its size without header and padding, in bytes.
    pub(super) bytes: u64,
}

impl Chunk {
    /// Reads the chunk whose header begins at `at`, if its name has valid characters.
    pub(super) fn read(view: &mut View<'_>, at: u64) -> Option<Chunk> {
        let header = view.array::<8>(at)?;
        let [a, b, c, d, l0, l1, l2, l3] = header;
        let name = [a, b, c, d];
        let is_name = name.iter().all(|letter| (0x20..0x7F).contains(letter));
        let bytes = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
        is_name.then_some(Chunk { name, bytes })
    }

    /// Returns the end of the data of a chunk that begins at `at`.
    pub(super) fn end(&self, at: u64) -> u64 {
        at.saturating_add(HEADER_BYTES).saturating_add(self.bytes)
    }

    /// Returns the start of the chunk after one that begins at `at`.
    pub(super) fn next(&self, at: u64) -> u64 {
        self.end(at).saturating_add(self.bytes % 2)
    }
}
