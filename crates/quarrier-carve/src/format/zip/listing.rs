//! Lists the members of a whole archive, for unpacking.

use std::ops::Range;

use super::directory::{End, Entry};
use super::local::{BZIP2, DEFLATED, ENCRYPTED, LZMA, Local, STORED, XZ, ZSTD};
use crate::view::View;

/// A member of an archive.
#[derive(Debug)]
pub(crate) struct Listed<'n> {
    /// Its name in the directory.
    pub(crate) name: &'n [u8],
    /// The range of its compressed bytes in the file.
    pub(crate) data: Range<u64>,
    /// Its uncompressed length according to the directory.
    pub(crate) unpacked: u64,
    pub(crate) packing: Packing,
}

/// The compression of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Stored,
    Deflated,
    Bzip2,
    Lzma,
    Zstd,
    Xz,
    Encrypted,
    /// A method that is not supported here.
    Other,
    /// Its bytes are not at the offset in the directory.
    Lost,
}

/// Calls `take` with each member of the archive in `view`, in the order of its directory, until
/// `take` stops it. Returns whether there is a directory.
pub(crate) fn members(
    view: &mut View<'_>,
    take: &mut dyn FnMut(&mut View<'_>, &Listed<'_>) -> bool,
) -> bool {
    let Some(mut at) = directory_at(view) else { return false };
    while let Some(entry) = Entry::read(view, at) {
        at = entry.end;
        let Some(name) = view.take(entry.name_at, entry.name_bytes.into()) else { break };
        let name = name.to_vec();
        let data = Local::read(view, entry.offset)
            .and_then(|local| Some(local.data_at..local.data_at.checked_add(entry.packed)?));
        let packing = match entry.method {
            _ if data.is_none() => Packing::Lost,
            _ if entry.flags & ENCRYPTED != 0 => Packing::Encrypted,
            STORED => Packing::Stored,
            DEFLATED => Packing::Deflated,
            BZIP2 => Packing::Bzip2,
            LZMA => Packing::Lzma,
            ZSTD => Packing::Zstd,
            XZ => Packing::Xz,
            _ => Packing::Other,
        };
        let (data, unpacked) = (data.unwrap_or_default(), entry.unpacked);
        if !take(view, &Listed { name: &name, data, unpacked, packing }) {
            break;
        }
    }
    true
}

/// Returns the start of the directory in the archive that ends with `view`.
fn directory_at(view: &mut View<'_>) -> Option<u64> {
    let length = view.length();
    let mut at = length.checked_sub(super::directory::END_BYTES)?;
    let last = length.saturating_sub(super::directory::END_BYTES + 0xFFFF);
    loop {
        if let Some(end) = End::read_narrow(view, at)
            && end.end == length
        {
            let wide = at.checked_sub(20).filter(|at| view.is_at(*at, b"PK\x06\x07"));
            let at = wide.and_then(|at| view.u64_le(at + 8));
            let wide = at.and_then(|at| End::read(view, at));
            return Some(wide.unwrap_or(end).offset);
        }
        at = at.checked_sub(1).filter(|at| *at >= last)?;
    }
}
