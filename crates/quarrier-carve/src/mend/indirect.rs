//! Files of ext2 and ext3 whose inodes are lost. Blocks with the numbers of blocks lie among the bytes of
//! such a file: after its first 12 blocks one with those of the next blocks, and after these one with the
//! numbers of further such lists.
//!
//! *The Second Extended File System* (Poirier), "i_block".

use crate::view::{Extent, SECTOR_BYTES, View};

/// Usual block sizes of these file systems, in bytes.
const BLOCK_BYTES: [u64; 3] = [1024, 2048, 4096];
/// Blocks whose numbers are in the inode.
const DIRECT_BLOCKS: u64 = 12;
/// Maximum number of extents of a file.
const EXTENTS_MAX: usize = 1 << 16;

/// A file without its lists of blocks.
pub(crate) struct Listed {
    /// Its extents, whole blocks.
    pub(crate) extents: Vec<Extent>,
    /// The number of their bytes; the file ends in the last block.
    pub(crate) bytes: u64,
    pub(crate) block_bytes: u64,
}

/// Returns the file at `offset` of the source for each block size for which lists of blocks follow its
/// 12th block. The view shows other extents afterwards.
pub(crate) fn listed(view: &mut View<'_>, offset: u64) -> Vec<Listed> {
    let sizes = BLOCK_BYTES.into_iter();
    sizes.filter_map(|block_bytes| Lists { view, block_bytes }.file(offset)).collect()
}

struct Lists<'v, 's> {
    view: &'v mut View<'s>,
    block_bytes: u64,
}

impl Lists<'_, '_> {
    fn file(&mut self, offset: u64) -> Option<Listed> {
        let block_bytes = self.block_bytes;
        let at = offset.checked_add(DIRECT_BLOCKS * block_bytes)?;
        if !offset.is_multiple_of(SECTOR_BYTES) {
            return None;
        }
        let list = self.list(at)?;
        // The first block that it lists is the one after it, which says where the blocks are counted from.
        let from = (at + block_bytes).checked_sub(u64::from(list[0]) * block_bytes)?;
        let place = |number: u32| from + u64::from(number) * block_bytes;
        let mut extents = vec![Extent { offset, length: DIRECT_BLOCKS * block_bytes }];
        self.push(&list, from, &mut extents)?;
        let per_list = (block_bytes / 4) as usize;
        if let Some(next) =
            list.last().filter(|_| list.len() == per_list).and_then(|n| n.checked_add(1))
            && let Some(lists) = self.list(place(next)).filter(|lists| lists[0] == next + 1)
        {
            for (index, number) in lists.iter().enumerate() {
                let list = self.list(place(*number))?;
                let is_last = index + 1 == lists.len();
                if !is_last && list.len() < per_list {
                    return None;
                }
                self.push(&list, from, &mut extents)?;
            }
        }
        let bytes = extents.iter().map(|extent| extent.length).sum();
        Some(Listed { extents, bytes, block_bytes })
    }

    /// Appends blocks whose numbers count from the offset `from` of the source.
    fn push(&self, list: &[u32], from: u64, extents: &mut Vec<Extent>) -> Option<()> {
        for number in list {
            let offset = from + u64::from(*number) * self.block_bytes;
            if let Some(last) = extents.last_mut()
                && last.end() == offset
            {
                last.length += self.block_bytes;
                continue;
            }
            if extents.len() == EXTENTS_MAX {
                return None;
            }
            extents.push(Extent { offset, length: self.block_bytes });
        }
        Some(())
    }

    /// Reads a list of blocks: ascending numbers, and zeros after them.
    fn list(&mut self, offset: u64) -> Option<Vec<u32>> {
        let length = self.block_bytes;
        self.view.look_at(&[Extent { offset, length }], length);
        // The first numbers of most blocks show that they are no list.
        let head = self.view.array::<8>(0)?;
        let number =
            |bytes: &[u8]| bytes.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
        let (first, second) = (number(&head), number(&head[4..]));
        if first == 0 || (second != 0 && second <= first) {
            return None;
        }
        self.view.look_at(&[Extent { offset, length }], length);
        let mut list: Vec<u32> =
            self.view.take(0, length as usize)?.chunks_exact(4).map(number).collect();
        let count = list.iter().position(|number| *number == 0).unwrap_or(list.len());
        let is_zero = list[count..].iter().all(|number| *number == 0);
        let is_ascending = list[..count].windows(2).all(|pair| pair[0] < pair[1]);
        list.truncate(count);
        (is_zero && is_ascending).then_some(list)
    }
}
