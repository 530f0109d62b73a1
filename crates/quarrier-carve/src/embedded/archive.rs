//! Members of zip archives, by their directory.

use std::io::Read;

use flate2::bufread::DeflateDecoder;

use super::Walker;
use super::reader::Reader;
use crate::format::zip::{Packing, members};
use crate::view::View;

/// Passes on each member of the archive in `view`.
pub(super) fn walk(walker: &mut Walker<'_>, view: &mut View<'_>, depth: usize) {
    members(view, &mut |view, member| {
        let raw = Reader::range(view, member.data.start, member.data.end);
        let mut stored;
        let mut inflated;
        let reader: &mut dyn Read = match member.packing {
            Packing::Stored => {
                stored = raw;
                &mut stored
            }
            Packing::Deflated => {
                inflated = DeflateDecoder::new(raw);
                &mut inflated
            }
            Packing::Other => &mut std::io::empty(),
        };
        walker.member(member.name, reader, depth)
    });
}
