//! Members of zip archives, by their directory.

use super::Walker;
use super::packed::{Method, decoder};
use super::reader::{Pieces, Reader};
use crate::format::zip::{Listed, Packing, members};
use crate::unpack::{ENCRYPTED, UNKNOWN};
use crate::view::View;

/// Passes on each member of the archive in `view`. If the outermost archive contains its bytes
/// verbatim, they begin at `base` there.
pub(super) fn walk(walker: &mut Walker<'_>, view: &mut View<'_>, base: Option<u64>, depth: usize) {
    let has_directory =
        members(view, &mut |view, listed| member(walker, view, listed, base, depth));
    if !has_directory {
        walker.damaged("the archive has no directory");
    }
}

/// Passes on a member. Returns whether to continue.
fn member(
    walker: &mut Walker<'_>,
    view: &mut View<'_>,
    listed: &Listed<'_>,
    base: Option<u64>,
    depth: usize,
) -> bool {
    let (start, end) = (listed.data.start, listed.data.end);
    let stop = walker.stop;
    let method = match listed.packing {
        Packing::Encrypted => return walker.unread(listed.name, ENCRYPTED),
        Packing::Other => return walker.unread(listed.name, UNKNOWN),
        Packing::Lost => {
            return walker.unread(listed.name, "its bytes are not where the archive says");
        }
        Packing::Stored => {
            let place = base.and_then(|base| base.checked_add(start));
            let mut raw = Reader::range(view, start, end, stop);
            return walker.listed(listed, &mut raw, place, depth);
        }
        Packing::Deflated => Method::Deflate,
        Packing::Bzip2 => Method::Bzip2,
        Packing::Xz => Method::Xz,
        Packing::Zstd => Method::Zstd,
        Packing::Lzma => Method::Lzma(listed.unpacked),
    };
    match decoder(method, view, start..end, walker.decoder_bytes_max(depth), stop) {
        Ok(reader) => walker.listed(listed, &mut Pieces::new(reader, stop), None, depth),
        Err(reason) => walker.unread(listed.name, reason),
    }
}
