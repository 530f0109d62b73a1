//! Btrfs: the extent tree lists allocated extents in chunks; space outside of chunks is free.

use std::ops::Range;

use super::free::Free;
use crate::btrfs::{Key, PLACES, Trees, extents, superblock};
use crate::error::Result;
use crate::part::{BOOT_BYTES, Part};
use crate::walk::{Walk, alone};

const EXTENT: u8 = 168;
/// The item type of a metadata extent, whose length is one node.
const NODE: u8 = 169;
/// The start of the device, which chunks never use.
const START_BYTES: u64 = 1 << 20;
/// Bytes reserved at each superblock.
const SUPERBLOCK_BYTES: u64 = 64 << 10;

pub(super) fn read(
    part: &Part<'_>,
    _boot: &[u8; BOOT_BYTES],
    free: &mut Free,
) -> Result<Option<&'static str>> {
    let Some(superblock) = superblock(part)? else { return Ok(None) };
    alone(part, |walk| {
        let mut trees = Trees::open(part, superblock.clone(), walk)?;
        chunks(part, &mut trees, free, walk)
    })?;
    Ok(Some("Btrfs"))
}

fn chunks(
    part: &Part<'_>,
    trees: &mut Trees<'_, '_>,
    free: &mut Free,
    walk: &mut Walk<'_>,
) -> Result<()> {
    let chunks = trees.chunks().clone();
    let device_bytes = trees.superblock().device_bytes;
    let mut own: Vec<Range<u64>> = chunks
        .all()
        .iter()
        .flat_map(|chunk| chunk.places.iter().map(|at| *at..at.saturating_add(chunk.length)))
        .collect();
    own.push(0..START_BYTES);
    own.sort_unstable_by_key(|range| range.start);
    let mut at = 0;
    for range in own {
        if at < range.start {
            add(part, free, at..range.start.min(device_bytes))?;
        }
        at = at.max(range.end);
    }
    add(part, free, at..device_bytes)?;
    free.add(part.place(device_bytes)..part.span().end, part)?;

    let missing = || part.refused(0, "a Btrfs volume without an extent tree");
    let root = extents(trees, walk)?.ok_or_else(missing)?;
    let node_bytes = trees.superblock().node_bytes();
    for chunk in chunks.all() {
        let end = chunk.start + chunk.length;
        let mut gaps = Vec::new();
        let mut at = chunk.start;
        let from = Key { object: chunk.start, kind: 0, offset: 0 };
        trees.range(root, from, walk, &mut |item| {
            let length = match item.key.kind {
                EXTENT => item.key.offset,
                NODE => node_bytes,
                _ => 0,
            };
            let start = item.key.object.min(end);
            if length > 0 && at < start {
                gaps.push(at..start);
            }
            if length > 0 {
                at = at.max(item.key.object.saturating_add(length));
            }
            item.key.object < end
        })?;
        if at < end {
            gaps.push(at..end);
        }
        for place in &chunk.places {
            for gap in &gaps {
                let [from, to] =
                    [gap.start, gap.end].map(|at| place.saturating_add(at - chunk.start));
                add(part, free, from..to)?;
            }
        }
    }
    Ok(())
}

/// Adds a range of the part, except superblocks.
fn add(part: &Part<'_>, free: &mut Free, range: Range<u64>) -> Result<()> {
    let mut at = range.start;
    let end = range.end.min(part.length());
    for place in PLACES {
        let superblock = place..place.saturating_add(SUPERBLOCK_BYTES);
        if superblock.start < end && at < superblock.end {
            free.add(part.place(at)..part.place(superblock.start.max(at)), part)?;
            at = superblock.end;
        }
    }
    if at < end { free.add(part.place(at)..part.place(end), part) } else { Ok(()) }
}
