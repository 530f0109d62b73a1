//! A stride of a source, copied into memory.
//!
//! To map pages of the page cache, each of which is looked at once, costs more than to copy them;
//! and who judges what was found there has them at hand.

use std::io;
use std::ops::Range;

use quarrier_core::region::Region;
use quarrier_core::source::{Source, read_full_at};

use crate::view::View;

/// What is read behind a stride: of most files that begin at its end, all.
const BEHIND_BYTES: u64 = 128 << 10;

/// Bytes of a source, where they lie in it. It ends where they do.
pub(super) struct Piece<'b> {
    name: &'b str,
    from: u64,
    bytes: &'b [u8],
}

/// Has the bytes of `range` and some behind at hand in `view`; false where not all can be read.
pub(super) fn hold(source: &dyn Source, range: Range<u64>, view: &mut View<'_>) -> bool {
    let mut bytes = view.hold(0, Vec::new());
    let length = range.end.saturating_add(BEHIND_BYTES).min(source.length()) - range.start;
    bytes.resize(length as usize, 0);
    let is_read =
        read_full_at(source, range.start, &mut bytes).is_ok_and(|read| read == bytes.len());
    if !is_read {
        bytes.clear();
    }
    view.hold(range.start, bytes);
    is_read
}

impl<'b> Piece<'b> {
    /// What `view` has at hand of `source`.
    pub(super) fn of(source: &'b dyn Source, view: &'b View<'_>) -> Self {
        let (from, bytes) = view.held();
        Piece { name: source.name(), from, bytes }
    }

    fn get(&self, range: Range<u64>) -> Option<&[u8]> {
        let start = usize::try_from(range.start.checked_sub(self.from)?).ok()?;
        let end = usize::try_from(range.end.checked_sub(self.from)?).ok()?;
        self.bytes.get(start..end)
    }
}

impl Source for Piece<'_> {
    fn name(&self) -> &str {
        self.name
    }

    fn length(&self) -> u64 {
        self.from + self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let count = (self.length().saturating_sub(offset)).min(buffer.len() as u64);
        let bytes = self.get(offset..offset + count).ok_or(io::ErrorKind::InvalidInput)?;
        buffer[..bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    }

    fn window(&self, range: Range<u64>) -> Option<io::Result<Region<'_>>> {
        let bytes = self.get(range).ok_or_else(|| io::ErrorKind::UnexpectedEof.into());
        Some(bytes.map(Region::Borrowed))
    }

    fn is_resident(&self) -> bool {
        true
    }
}
