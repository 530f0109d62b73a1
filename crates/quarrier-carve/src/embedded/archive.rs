//! Members of zip archives, by their directory.

use std::io::Read;

use flate2::bufread::DeflateDecoder;

use super::Walker;
use super::reader::Reader;
use crate::format::zip::{Listed, Packing, members};
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
    let mut raw = Reader::range(view, start, end, walker.stop);
    match listed.packing {
        Packing::Other => {
            walker.unread(listed.name, "encrypted, or packed in a way that is not unpacked")
        }
        Packing::Lost => walker.unread(listed.name, "its bytes are not where the archive says"),
        Packing::Stored => {
            let place = base.and_then(|base| base.checked_add(start));
            walker.listed(listed, &mut raw, place, depth)
        }
        Packing::Deflated => {
            let inflated: &mut dyn Read = &mut DeflateDecoder::new(raw);
            walker.listed(listed, inflated, None, depth)
        }
    }
}
