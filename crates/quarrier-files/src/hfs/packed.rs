//! The attribute of compressed files.

use std::cmp::Ordering;

use super::forks::{Forks, RESOURCE};
use super::record::Item;
use super::tree::Tree;
use super::volume::name_units;
use crate::decmpfs;
use crate::entry::Content;
use crate::error::Result;
use crate::part::{Part, be32};
use crate::walk::Walk;

const INLINE: u32 = 0x10;
const HEAD_BYTES: usize = 16;

/// The size and locations of a compressed file; `None` if it has no such attribute.
pub(super) fn packed(
    part: &Part<'_>,
    forks: &mut Forks<'_, '_, '_>,
    attributes: &mut Tree<'_, '_>,
    item: &Item,
    walk: &mut Walk<'_>,
) -> Result<Option<(u64, Content)>> {
    let wanted: Vec<u16> = decmpfs::ATTRIBUTE.encode_utf16().collect();
    let compare = |key: &[u8]| -> Ordering {
        let name = key.get(10..).and_then(name_units).unwrap_or_default();
        be32(key, 2).cmp(&item.id).then(name.cmp(&wanted)).then(be32(key, 6).cmp(&0))
    };
    let Some((record, place)) = attributes.find(walk, &compare)? else { return Ok(None) };
    let size = be32(&record, 12) as usize;
    let bytes = record.get(HEAD_BYTES..).and_then(|bytes| bytes.get(..size));
    let Some(bytes) = bytes.filter(|_| be32(&record, 0) == INLINE) else {
        return Ok(Some((0, Content::lost("its attribute does not name the compression"))));
    };
    let place = part.place(place).checked_add(HEAD_BYTES as u64);
    decmpfs::content(part, bytes, place, &mut || {
        let resource = &item.resource;
        Ok((forks.content(item.id, RESOURCE, resource, walk)?, resource.size))
    })
}
