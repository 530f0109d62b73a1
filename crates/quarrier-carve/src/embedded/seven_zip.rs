//! Members of 7z archives.

use std::io;

use super::reader::Pieces;
use super::{Receiver, TOO_MUCH, UNREADABLE, Walker};
use crate::format::seven_zip::{Content, Listed, list};
use crate::unpack::Failed;
use crate::view::View;

/// Passes on each member of the archive in `view`. If the outermost archive contains its bytes
/// verbatim, they begin at `base` there.
pub(super) fn walk(walker: &mut Walker<'_>, view: &mut View<'_>, base: Option<u64>, depth: usize) {
    let memory_bytes_max = walker.decoder_bytes_max(depth);
    let listing = match list(view, memory_bytes_max) {
        Ok(listing) => listing,
        Err(Failed::NotRead(reason)) => return walker.damaged(reason),
        Err(Failed::Wrong(_)) => return walker.damaged("the archive has no readable directory"),
    };
    let stop = walker.stop;
    listing.each(view, memory_bytes_max, stop, &mut |listed| member(walker, listed, base, depth));
}

/// Passes on a member. Returns whether to continue.
fn member(
    walker: &mut Walker<'_>,
    listed: Listed<'_, '_>,
    base: Option<u64>,
    depth: usize,
) -> bool {
    let Listed { name, content } = listed;
    match content {
        Content::Unread(reason) => walker.unread(name, reason),
        // No validator recognises an empty file.
        Content::Empty if matches!(walker.receiver, Receiver::Recognised(_)) => true,
        Content::Empty => walker.member(name, &mut io::empty(), None, depth),
        Content::Bytes(file) => {
            let place = base.zip(file.place()).and_then(|(base, place)| base.checked_add(place));
            let stop = walker.stop;
            let mut reader = Pieces::new(&mut *file, stop);
            if !walker.member(name, &mut reader, place, depth) {
                return false;
            }
            // Members are compressed together: the next one begins where this one ends.
            let left = reader.into_inner().left_bytes();
            if file.is_failed() || left == 0 {
                return true;
            }
            match walker.pass(&mut Pieces::new(file, stop), left) {
                true if walker.has_room() => {}
                true => walker.skip_at(name, TOO_MUCH),
                false => walker.skip_at(name, UNREADABLE),
            }
            walker.may_continue()
        }
    }
}
