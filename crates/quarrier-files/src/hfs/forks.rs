//! The locations of forks.

use std::cmp::Ordering;

use super::tree::Tree;
use super::volume::{Blocks, Fork, Volume, extents};
use crate::entry::Content;
use crate::error::Result;
use crate::part::{Part, be32};
use crate::walk::Walk;

/// The fork with a file's regular content.
pub(super) const DATA: u8 = 0;
/// The resource fork, which older programs use for icons and similar data.
pub(super) const RESOURCE: u8 = 0xFF;
const BEYOND: &str = "its blocks lie beyond the end of the volume";

/// Locates the bytes of forks.
pub(super) struct Forks<'v, 'p, 's> {
    part: &'p Part<'s>,
    volume: &'v Volume,
    overflow: Option<Tree<'p, 's>>,
}

impl<'v, 'p, 's> Forks<'v, 'p, 's> {
    pub(super) fn open(
        part: &'p Part<'s>,
        volume: &'v Volume,
        walk: &mut Walk<'_>,
    ) -> Result<Self> {
        let mut forks = Forks { part, volume, overflow: None };
        // The extents overflow file has no extents in itself.
        let content = forks.content(0, DATA, &volume.overflow, walk)?;
        forks.overflow = Tree::open(part, &content, "the extents overflow file")?;
        Ok(forks)
    }

    /// The content of a fork of file `id`.
    pub(super) fn content(
        &mut self,
        id: u32,
        which: u8,
        fork: &Fork,
        walk: &mut Walk<'_>,
    ) -> Result<Content> {
        let mut content = Content::default();
        let wanted = fork.size.div_ceil(self.volume.block_bytes);
        let most = u64::from(fork.blocks).max(wanted);
        let mut blocks = 0;
        let mut list = fork.extents;
        loop {
            let before = blocks;
            self.add(&list, &mut blocks, most, &mut content, walk)?;
            if blocks >= most || content.lost.is_some() {
                return Ok(content);
            }
            // A full extent record continues in the overflow file; one that adds nothing would loop for
            // ever.
            let is_over = list[list.len() - 1].1 == 0 || blocks == before;
            let later = if is_over { None } else { self.later(id, which, blocks, walk)? };
            match later {
                Some(later) => list = later,
                None => {
                    if blocks < wanted {
                        content.lost = Some("a part of its extent list is missing");
                    }
                    return Ok(content);
                }
            }
        }
    }

    fn add(
        &self,
        list: &[Blocks],
        blocks: &mut u64,
        most: u64,
        content: &mut Content,
        walk: &mut Walk<'_>,
    ) -> Result<()> {
        for &(start, count) in list.iter().take_while(|extent| extent.1 > 0) {
            walk.step(self.part)?;
            let (start, count) = (u64::from(start), u64::from(count).min(most - *blocks));
            if start + count > self.volume.blocks {
                content.lost = Some(BEYOND);
            } else if *blocks + count > self.volume.blocks {
                content.lost = Some("it has more blocks than the volume");
            }
            if content.lost.is_some() {
                return Ok(());
            }
            let each = self.volume.block_bytes;
            content.push(Some(self.part.place(start * each)), count * each);
            *blocks += count;
        }
        Ok(())
    }

    /// The extents of a fork from a block on, from the overflow file.
    fn later(
        &mut self,
        id: u32,
        which: u8,
        block: u64,
        walk: &mut Walk<'_>,
    ) -> Result<Option<[Blocks; super::volume::EXTENTS]>> {
        let Some(tree) = &mut self.overflow else { return Ok(None) };
        let compare = |key: &[u8]| -> Ordering {
            let fork = key.first().copied().unwrap_or(0);
            let found = (be32(key, 2), fork, u64::from(be32(key, 6)));
            found.cmp(&(id, which, block))
        };
        Ok(tree.find(walk, &compare)?.map(|(value, _)| extents(&value)))
    }
}
